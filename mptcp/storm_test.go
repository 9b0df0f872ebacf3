package mptcp_test

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// storm opens connections, ends each in another way at another moment, and
// returns pointers to them that keep nothing alive.
func (p *pair) storm(l *mptcp.Listener, rng *rand.Rand) (left []weak.Pointer[mptcp.Conn]) {
	for i := range 60 {
		ctx, cancel := context.WithTimeout(p.Context(), time.Duration(1+rng.IntN(100))*time.Millisecond)
		d := mptcp.Dialer{Stack: p.client.Stack}
		client, err := d.DialMPTCP(ctx, p.target())
		cancel()
		if err != nil {
			continue
		}
		server, err := l.AcceptMPTCP()
		require.NoError(p, err)
		left = append(left, weak.Make(client), weak.Make(server))
		client.Write(pattern(1000 * (i % 5)))
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		ends := []*mptcp.Conn{client, server}
		if rng.IntN(2) == 0 {
			ends[0], ends[1] = ends[1], ends[0]
		}
		switch rng.IntN(4) {
		case 0:
			ends[0].SetLinger(0)
		case 1:
			ends[0].CloseWrite()
		case 2:
			ends[0].SetReadDeadline(time.Now())
			io.Copy(io.Discard, ends[0])
		}
		ends[0].Close()
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		ends[1].Close()
	}
	return left
}

// After connections were opened and closed in every way nothing is left of them:
// no entry in a table, no packet, and no memory, which timers or queues could
// still refer to. Guards: Step unregisters what is over; Close gives up the inbox
// and the timer.
func TestCloseStormLeavesNothing(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		l := p.listen()
		left := p.storm(l, rand.New(rand.NewPCG(15, 1)))
		require.Greater(p, len(left), 60)
		require.NoError(p, l.Close())
		settle(5 * time.Minute)
		for _, n := range []mptcp.Counters{p.client.Counters(), p.server.Counters()} {
			require.Zero(p, n.Conns+n.TimeWait+n.HalfOpen+n.HalfOpenJoins)
		}
		require.Zero(p, p.net.Held())
		runtime.GC()
		runtime.GC()
		alive := 0
		for _, w := range left {
			if w.Value() != nil {
				alive++
			}
		}
		// The last one may live on in a register or a scratch slice.
		require.LessOrEqual(p, alive, 2, "of %d", len(left))
	})
}

// One listener takes connections that speak MPTCP, such that never did, and such
// that had to fall back, at the same time; each is what it is, and knows why.
// Guards: acceptCapable and capableSYNACK decide for each connection by what its
// peer sent, and MultipathTCP asks the connection, not the configuration.
func TestListenerTakesAMix(t *testing.T) {
	inBubble(t, setup{links: twoLinks[:1]}, func(p *pair) {
		l := p.listen()
		defer l.Close()
		kinds := []struct {
			cfg   *mptcp.Config
			strip bool
			mptcp bool
			why   reason.Fallback // of the side that accepts
		}{
			{nil, false, true, reason.FallbackNone},
			{&mptcp.Config{Plain: true}, false, false, reason.FallbackPeerSYN},
			{nil, true, false, reason.FallbackPeerSYN},
		}
		var clients, servers []*mptcp.Conn
		for i := range 9 {
			k := kinds[i%3]
			p.links[0].SetFilter(func(seg *wire.Segment) bool {
				if k.strip && seg.Flags.Has(wire.SYN) {
					seg.Has &^= wire.OptMPTCP
				}
				return true
			})
			d := mptcp.Dialer{Stack: p.client.Stack, Config: k.cfg}
			client, err := d.DialMPTCP(p.Context(), p.target())
			require.NoError(p, err)
			server, err := l.AcceptMPTCP()
			require.NoError(p, err)
			clients, servers = append(clients, client), append(servers, server)
			p.conns = append(p.conns, client, server)
		}
		for i := range clients {
			p.transfer(clients[i], servers[i], pattern(20_000))
			p.transfer(servers[i], clients[i], pattern(20_000))
			if why := kinds[i%3].why; why != reason.FallbackNone {
				require.Equal(p, why.String(), servers[i].Info().Fallback, "connection %d", i)
			}
			for _, c := range []*mptcp.Conn{clients[i], servers[i]} {
				mp, err := c.MultipathTCP()
				require.NoError(p, err)
				require.Equal(p, kinds[i%3].mptcp, mp, "connection %d", i)
			}
		}
	})
}
