package mptcp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// stripMPTCP is a box on the way that removes what it does not know.
func stripMPTCP(seg *wire.Segment) bool {
	seg.Has &^= wire.OptMPTCP
	return true
}

func TestPlainTCP(t *testing.T) {
	plain := &mptcp.Config{Plain: true}
	for _, tt := range []struct {
		name           string
		client, server *mptcp.Config
		strip          bool
	}{
		{name: "client asks for it", client: plain},
		{name: "server asks for it", server: plain},
		{name: "both ask for it", client: plain, server: plain},
		{name: "options are stripped", strip: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := setup{client: tt.client, server: tt.server, links: []link.Config{delayed, delayed}}
			inBubble(t, s, func(p *pair) {
				if tt.strip {
					p.links[0].SetFilter(stripMPTCP)
				}
				client, server := p.connect()
				p.transfer(client, server, pattern(1<<20))
				p.transfer(server, client, pattern(1<<20))
				for _, c := range []*mptcp.Conn{client, server} {
					mp, err := c.MultipathTCP()
					require.NoError(p, err)
					require.False(p, mp)
					require.NotEmpty(p, c.Info().Fallback)
					require.Len(p, c.Subflows(), 1)
					_, err = c.AddSubflow(p.Context(), mptcp.SubflowConfig{})
					require.ErrorIs(p, err, mptcp.ErrFallback)
				}
				require.NoError(p, client.Close())
				require.NoError(p, server.Close())
				settle(2 * time.Minute)
				require.Zero(p, p.client.Counters().Conns)
				require.Zero(p, p.server.Counters().Conns)
			})
		})
	}
}

func TestFallbackIsToldWaitingAddSubflow(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		// Options vanish after the handshake.
		p.links[0].SetFilter(func(seg *wire.Segment) bool {
			return seg.Flags.Has(wire.SYN) || stripMPTCP(seg)
		})
		client, server := p.connect()
		added := goResult(func() (int, error) { return client.AddSubflow(p.Context(), mptcp.SubflowConfig{}) })
		settle(time.Second)
		p.exchange(client, server)
		require.ErrorIs(p, (<-added).err, mptcp.ErrFallback)
	})
}

func TestFallbackRefused(t *testing.T) {
	refuse := &mptcp.Config{Fallback: mptcp.FallbackRefuse}
	inBubble(t, setup{client: refuse, links: []link.Config{delayed}}, func(p *pair) {
		p.links[0].SetFilter(stripMPTCP)
		p.listen()
		_, err := p.client.Dial("mptcp", p.target().String())
		require.ErrorIs(p, err, mptcp.ErrFallback)
		settle(time.Minute)
		require.Zero(p, p.client.Counters().Conns)
	})
	inBubble(t, setup{server: refuse, links: []link.Config{delayed}}, func(p *pair) {
		p.links[0].SetFilter(stripMPTCP)
		p.listen()
		_, err := p.client.Dial("mptcp", p.target().String())
		require.Error(p, err)
	})
}

// TestFallbackRefusedWhereMPTCPIsDropped: a dial that must be MPTCP offers
// nothing else, even where others have learnt to.
func TestFallbackRefusedWhereMPTCPIsDropped(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		p.links[0].SetFilter(func(seg *wire.Segment) bool {
			return seg.Flags != wire.SYN || seg.Has&wire.OptMPCapable == 0
		})
		l := p.listen()
		defer l.Close()
		p.dial()
		d := mptcp.Dialer{Stack: p.client.Stack, Config: &mptcp.Config{Fallback: mptcp.FallbackRefuse}}
		_, err := d.DialContext(p.Context(), "mptcp", p.target().String())
		require.ErrorIs(p, err, mptcp.ErrFallback)
		p.links[0].SetFilter(nil)
		c, err := d.DialMPTCP(p.Context(), p.target())
		require.NoError(p, err)
		p.conns = append(p.conns, c)
		require.True(p, c.Info().MPTCP)
	})
}

func TestFallbackIsLogged(t *testing.T) {
	var reasons []string
	cfg := &mptcp.Config{Trace: &mptcp.Trace{
		Fallback: func(e mptcp.ConnEvent) { reasons = append(reasons, e.Reason) },
	}}
	inBubble(t, setup{client: cfg, server: &mptcp.Config{Plain: true}}, func(p *pair) {
		client, _ := p.connect()
		require.Equal(p, []string{client.Info().Fallback}, reasons)
	})
}

// A dial with an ordinary timeout gets through where SYNs with MPTCP are
// dropped. Guard: Dialer tells the host how long the dial may take.
func TestShortDialFindsBlackHole(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second} {
		inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
			p.links[0].SetFilter(func(seg *wire.Segment) bool {
				return !seg.Flags.Has(wire.SYN) || seg.Has&wire.OptMPTCP == 0
			})
			l := p.listen()
			defer l.Close()
			d := mptcp.Dialer{Stack: p.client.Stack, Timeout: timeout}
			c, err := d.DialMPTCP(p.Context(), p.target())
			require.NoError(p, err, "timeout %v", timeout)
			p.conns = append(p.conns, c)
			require.NotEmpty(p, c.Info().Fallback)
			server, err := l.AcceptMPTCP()
			require.NoError(p, err)
			p.conns = append(p.conns, server)
		})
	}
}
