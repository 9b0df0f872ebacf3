package mptcp_test

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

func TestStackCloseEndsEverything(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		l := p.listen()
		read := goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		accepted := goResult(func() (net.Conn, error) { return l.Accept() })
		p.links[0].SetUp(true)
		dialed := goResult(func() (net.Conn, error) { return p.client.Dial("mptcp", "10.0.0.2:81") })
		added := goResult(func() (int, error) { return client.AddSubflow(p.Context(), mptcp.SubflowConfig{}) })
		synctest.Wait()

		require.NoError(p, p.client.Stack.Close())
		require.NoError(p, p.client.Stack.Close(), "a second Close")
		require.ErrorIs(p, (<-read).err, net.ErrClosed)
		require.ErrorIs(p, (<-added).err, net.ErrClosed)
		require.ErrorIs(p, (<-dialed).err, net.ErrClosed)
		_, err := server.Read(make([]byte, 1))
		requireReset(p.T, err, true)
		require.NoError(p, client.Close())
		require.ErrorIs(p, client.Close(), net.ErrClosed)
		require.Equal(p, "CLOSED", client.Info().State)

		require.NoError(p, p.server.Stack.Close())
		require.ErrorIs(p, (<-accepted).err, net.ErrClosed)
		for _, s := range []*mptcp.Stack{p.client.Stack, p.server.Stack} {
			_, err = s.Dial("mptcp", p.target().String())
			require.ErrorIs(p, err, net.ErrClosed)
			_, err = s.Listen("mptcp", ":80")
			require.ErrorIs(p, err, net.ErrClosed)
		}
	})
}

func TestStackCountsAndIgnoresRubbish(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		from, to := netip.AddrPortFrom(clientAddr(0), 9), p.target()
		freed := 0
		for _, header := range [][]byte{nil, {1}, make([]byte, 20), make([]byte, 60)} {
			p.server.Deliver([]mptcp.Packet{{Src: from, Dst: to, Header: header, Owner: owner(func() { freed++ })}})
		}
		require.Equal(p, 4, freed)
		drops := p.server.Counters().Drops
		require.EqualValues(p, 2, drops["short header"])
		require.EqualValues(p, 2, drops["bad data offset"])
		p.server.HandlePacketTooBig(to, from, 1, 1000)
		p.server.HandleUnreachable(to, from, 1, true)
		p.exchange(client, server)
	})
}

type owner func()

func (f owner) DecRef() { f() }

// TestFloodIsDroppedWhileAConnectionIsBusy: Deliver neither waits for the
// connection nor keeps everything.
func TestFloodIsDroppedWhileAConnectionIsBusy(t *testing.T) {
	var enter, leave chan struct{}
	busy := false
	server := &mptcp.Config{Trace: &mptcp.Trace{SegmentReceived: func(mptcp.SegmentInfo) {
		if busy {
			busy = false
			enter <- struct{}{}
			<-leave
		}
	}}}
	inBubble(t, setup{server: server}, func(p *pair) {
		enter, leave = make(chan struct{}, 1), make(chan struct{})
		c, s := p.connect()
		settle(time.Second)
		busy = true
		header := make([]byte, 20)
		header[12] = 5 << 4
		stray := mptcp.Packet{Src: c.LocalAddr().(*net.TCPAddr).AddrPort(), Dst: p.target(), Header: header}
		go p.server.Deliver([]mptcp.Packet{stray})
		<-enter
		for range 3000 {
			p.server.Deliver([]mptcp.Packet{stray})
		}
		require.EqualValues(p, 3000-2048, p.server.Counters().Drops["inbox full"])
		close(leave)
		p.exchange(c, s)
	})
}

func TestStrayUnreachableDoesNotHurtAConnection(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		local := client.LocalAddr().(*net.TCPAddr).AddrPort()
		p.client.HandleUnreachable(local, p.target(), 12345, true)
		p.client.HandlePacketTooBig(local, p.target(), 12345, 60)
		p.transfer(client, server, pattern(100_000))
	})
}

func TestUnreachableEndsADial(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		var syn mptcp.SegmentInfo
		cfg := &mptcp.Config{Trace: &mptcp.Trace{SegmentSent: func(s mptcp.SegmentInfo) { syn = s }}}
		p.links[0].SetUp(false)
		d := mptcp.Dialer{Stack: p.client.Stack, Config: cfg}
		dialed := goResult(func() (net.Conn, error) { return d.Dial("mptcp", p.target().String()) })
		synctest.Wait()
		p.client.HandleUnreachable(syn.Src, syn.Dst, syn.Seq, true)
		r := <-dialed
		require.Error(p, r.err)
		require.Less(p, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Second)
	})
}

func TestManyConnectionsAtOnce(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		go echoAll(p.listenWith(&mptcp.ListenConfig{Stack: p.server.Stack, Backlog: 1000}))
		const n = 200
		results := make(chan error, n)
		for range n {
			go func() { results <- p.echo(pattern(10_000)) }()
		}
		for range n {
			require.NoError(p, <-results)
		}
		settle(3 * time.Minute)
		require.Zero(p, p.client.Counters().Conns)
		require.Zero(p, p.server.Counters().Conns)
		require.Zero(p, p.client.Counters().TimeWait)
	})
}

func TestConfigValidate(t *testing.T) {
	for field, cfg := range map[string]mptcp.Config{
		"MaxSubflows": {MaxSubflows: 65},
		"MaxRemotes":  {MaxRemotes: -1},
		"ReadBuffer":  {ReadBuffer: 100},
		"WriteBuffer": {WriteBuffer: 1 << 40},
		"Fallback":    {Fallback: 7},
	} {
		require.ErrorContains(t, cfg.Validate(), "Config."+field)
	}
	zero := &mptcp.Config{}
	require.NoError(t, zero.Validate())
	clone := zero.Clone()
	clone.MaxSubflows = 3
	require.Zero(t, zero.MaxSubflows)
}

func TestInvalidConfigOfAStackIsReported(t *testing.T) {
	inBubble(t, setup{client: &mptcp.Config{MaxRemotes: -1}}, func(p *pair) {
		_, err := p.client.Dial("mptcp", p.target().String())
		require.ErrorContains(p, err, "MaxRemotes")
		_, err = p.client.Listen("mptcp", ":0")
		require.ErrorContains(p, err, "MaxRemotes")
	})
}
