package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestConnectionIsHandedToItsListener(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	var accepted *host.Listener
	c := l.dial(config(t), zeroPort, service)
	require.Zero(t, ln.Pending())
	l.server.deliver(copyOf(l.client.poll()))
	l.client.deliver(copyOf(l.server.poll()))
	l.server.deliver(copyOf(l.client.poll()))
	for _, s := range l.server.conns {
		accepted = l.server.Step(l.now, s)
	}
	require.Same(t, ln, accepted, "Step names the listener that has a new connection")
	require.Equal(t, 1, ln.Pending())
	l.run()
	s, ok := ln.Accept()
	require.True(t, ok)
	require.Equal(t, c.LocalAddr(), s.RemoteAddr())
	require.Equal(t, service, s.LocalAddr())
	require.True(t, c.IsMPTCP() && s.IsMPTCP())
	require.Equal(t, 1, l.client.Counters().Conns)
	require.Equal(t, uint64(1), l.server.Counters().Accepted)

	_, ok = ln.Accept()
	require.False(t, ok)
}

func TestConnectionThatEndsLeavesTheTables(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	c.Close(l.now)
	l.run()
	s.Close(l.now)
	l.advance(time.Second)
	require.True(t, c.Closed() && s.Closed())
	require.Equal(t, reason.CloseDone, c.Err())
	for _, n := range []*node{l.client, l.server} {
		require.Zero(t, n.Counters().Conns)
	}
	require.NotZero(t, l.client.Counters().TimeWait+l.server.Counters().TimeWait)
	_, _, ok := l.client.LookupICMP(c.LocalAddr(), service)
	require.False(t, ok)

	l.advance(2 * time.Minute)
	require.Zero(t, l.client.Counters().TimeWait+l.server.Counters().TimeWait)
	require.Zero(t, l.client.Deadline())
}

func TestBacklogBoundsHalfOpenConnections(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 3)
	for port := uint16(1000); port < 1010; port++ {
		v := l.server.deliver(synFrom(port))
		if port < 1002 {
			require.Equal(t, host.VerdictAccept, v.Kind)
		} else {
			require.Equal(t, host.Verdict{Kind: host.VerdictReply}, v, "a cookie")
		}
	}
	require.Equal(t, 2, l.server.Counters().Conns)
	require.Equal(t, uint64(8), l.server.Counters().MIB[host.MIBSyncookiesSent])

	// The peer of one gives up: its place is free again.
	synAck := l.server.poll()
	rst := synFrom(synAck.Dst.Port())
	rst.Seq, rst.Flags = synAck.Ack, wire.RST
	l.server.deliver(rst)
	for l.server.poll() != nil {
	}
	require.Equal(t, 1, l.server.Counters().Conns)
	require.Equal(t, host.VerdictAccept, l.server.deliver(synFrom(2000)).Kind)
	require.Equal(t, host.VerdictReply, l.server.deliver(synFrom(2001)).Kind)
}

func TestBacklogCountsConnectionsNotYetAccepted(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 2)
	for range 2 {
		l.dial(config(t), zeroPort, service)
		l.run()
	}
	late := l.dial(config(t), zeroPort, service)
	l.run()
	require.False(t, late.Connected(), "its SYN is ignored")
	require.Equal(t, 2, ln.Pending())
	_, ok := ln.Accept()
	require.True(t, ok)
	l.advance(2 * time.Second) // the third SYN comes again
	require.True(t, late.Connected())
	require.Equal(t, 2, ln.Pending())
}

func TestHalfOpenConnectionsAreForgotten(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = func(*wire.Segment) bool { return true }
	l.server.deliver(synFrom(1000))
	require.Equal(t, 1, l.server.Counters().Conns)
	l.advance(5 * time.Minute)
	require.Zero(t, l.server.Counters().Conns)
}

func TestConnectionResetBeforeAcceptIsNotHandedOut(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	c := l.dial(config(t), zeroPort, service)
	l.run()
	require.Equal(t, 1, ln.Pending())
	c.Abort(l.now)
	l.run()
	require.Zero(t, ln.Pending())
	require.Zero(t, l.server.Counters().Conns)
}

func TestListenerOnOneAddressComesBeforeOneOnAll(t *testing.T) {
	l := newLab(t, host.Config{})
	every, err := l.server.Listen(netip.AddrPortFrom(netip.Addr{}, serverPort), 0, config(t))
	require.NoError(t, err)
	l.reach(every)

	family, err := l.server.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), serverPort), 0, config(t))
	require.NoError(t, err)
	l.reach(family)

	exact := l.listen(config(t), 0)
	l.reach(exact)
	_, err = l.server.Listen(service, 0, config(t))
	require.ErrorIs(t, err, host.ErrAddrInUse)

	l.server.CloseListener(exact)
	l.server.CloseListener(family)
	l.reach(every)
}

// reach checks that a connection to the service is given to ln.
func (l *lab) reach(ln *host.Listener) {
	l.t.Helper()
	l.dial(config(l.t), zeroPort, service)
	l.run()
	s, ok := ln.Accept()
	require.True(l.t, ok)
	require.Equal(l.t, service, s.LocalAddr())
}

func TestListenChoosesAPort(t *testing.T) {
	l := newLab(t, host.Config{EphemeralLo: 40000, EphemeralHi: 40001})
	a, err := l.server.Listen(netip.AddrPortFrom(serverAddr, 0), 0, config(t))
	require.NoError(t, err)
	b, err := l.server.Listen(netip.AddrPortFrom(serverAddr, 0), 0, config(t))
	require.NoError(t, err)
	require.ElementsMatch(t, []uint16{40000, 40001}, []uint16{a.Addr().Port(), b.Addr().Port()})
	_, err = l.server.Listen(netip.AddrPortFrom(serverAddr, 0), 0, config(t))
	require.ErrorIs(t, err, host.ErrNoPort)

	l.server.CloseListener(a)
	c, err := l.server.Listen(netip.AddrPortFrom(serverAddr, 0), 0, config(t))
	require.NoError(t, err)
	require.Equal(t, a.Addr(), c.Addr())
}

func TestClosedListenerReturnsWhatItHeld(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	c := l.dial(config(t), zeroPort, service)
	l.run()
	l.server.deliver(synFrom(1000))
	left := l.server.CloseListener(ln)
	require.Len(t, left, 2, "one is ready, one half open")
	for _, s := range left {
		s.Abort(l.now)
	}
	l.run()
	require.Equal(t, reason.CloseFastClose, c.Err())
	require.Zero(t, l.server.Counters().Conns)
	require.Empty(t, l.server.CloseListener(ln))

	l.dial(config(t), zeroPort, service)
	l.run()
	require.Zero(t, l.server.Counters().Conns)
}

func TestMPTCPCanBeRequired(t *testing.T) {
	must, plain := config(t), config(t)
	must.RequireMPTCP, plain.Plain = true, true

	t.Run("of peers", func(t *testing.T) {
		l := newLab(t, host.Config{})
		ln := l.listen(must, 0)
		c := l.dial(plain, zeroPort, service)
		l.run()
		require.Equal(t, reason.CloseRefused, c.Err())
		require.Zero(t, ln.Pending())
		l.connect(config(t), ln)
	})
	t.Run("of servers", func(t *testing.T) {
		l := newLab(t, host.Config{})
		l.listen(plain, 0)
		c := l.dial(must, zeroPort, service)
		l.run()
		require.Equal(t, reason.CloseLocalReset, c.Err())
		require.Equal(t, reason.FallbackPeerSYNACK, c.Fallback())
		require.Zero(t, l.server.Counters().Conns)
	})
}

func TestSYNWithFINOpensNothing(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	seg := synFrom(1000)
	seg.Flags |= wire.FIN
	require.Equal(t, host.VerdictDrop, l.server.deliver(seg).Kind)
	require.Nil(t, l.server.poll())
}
