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

// dropsCapableSYN is a box that drops SYNs with an option unknown to it.
func dropsCapableSYN(seg *wire.Segment) bool {
	return seg.Flags.Has(wire.SYN) && !seg.Flags.Has(wire.ACK) && seg.Has&wire.OptMPCapable != 0
}

// dialOnce dials the service, lets the handshake take its time, ends the
// connection, and returns how many SYNs of it offered MPTCP and what it fell
// back for.
func (l *lab) dialOnce(cfg host.ConnConfig, remote netip.AddrPort) (offers int, why reason.Fallback) {
	l.t.Helper()
	from := len(l.client.sent)
	c := l.dial(cfg, zeroPort, remote)
	l.advance(20 * time.Second)
	require.True(l.t, c.Connected())
	why = c.Fallback()
	for _, seg := range l.client.sent[from:] {
		if seg.Flags.Has(wire.SYN) && seg.Has&wire.OptMPCapable != 0 {
			offers++
		}
	}
	c.Abort(l.now)
	l.run()
	return offers, why
}

func TestBlackHolesAreRemembered(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	begun := l.now
	offers, why := l.dialOnce(config(t), service)
	require.Equal(t, reason.FallbackSYNTimeout, why)
	require.Equal(t, 3, offers)
	require.Equal(t, uint64(1), l.client.Counters().MIB[host.MIBBlackhole])

	offers, why = l.dialOnce(config(t), service)
	require.Equal(t, reason.FallbackBlackhole, why)
	require.Zero(t, offers, "dials are plain at once")

	// After a minute one SYN probes; its failure doubles the time.
	for _, period := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		l.advance(max(0, begun.Add(70*time.Second).Sub(l.now)))
		offers, why = l.dialOnce(config(t), service)
		require.Equal(t, reason.FallbackSYNTimeout, why)
		require.Equal(t, 1, offers)
		l.advance(period - time.Minute)
		offers, why = l.dialOnce(config(t), service)
		require.Equal(t, reason.FallbackBlackhole, why)
		require.Zero(t, offers)
		begun = l.now
	}
	require.Equal(t, uint64(1), l.client.Counters().MIB[host.MIBBlackhole], "a probe that fails is no news")

	// The box is gone: the probe finds out, and MPTCP is back.
	l.lost = nil
	l.advance(8 * time.Minute)
	for range 2 {
		offers, why = l.dialOnce(config(t), service)
		require.Equal(t, reason.FallbackNone, why)
		require.Equal(t, 1, offers)
	}
}

func TestBlackHoleProbesReachAtMostAnHourApart(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	for range 10 {
		l.dialOnce(config(t), service)
		l.advance(time.Hour)
	}
	offers, why := l.dialOnce(config(t), service)
	require.Equal(t, 1, offers)
	require.Equal(t, reason.FallbackSYNTimeout, why)
}

func TestOnlyOneDialProbesABlackHole(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	l.dialOnce(config(t), service)
	l.advance(time.Minute)
	probe := l.dial(config(t), zeroPort, service)
	other := l.dial(config(t), zeroPort, service)
	l.run()
	require.False(t, probe.Connected())
	require.True(t, other.Connected())
	require.Equal(t, reason.FallbackBlackhole, other.Fallback())
}

func TestBlackHolesSpoilAPrefixAndASource(t *testing.T) {
	l := newLab(t, host.Config{})
	near, far := netip.MustParseAddr("10.0.0.77"), netip.MustParseAddr("10.0.9.2")
	_, err := l.server.Listen(netip.AddrPortFrom(netip.Addr{}, serverPort), 0, config(t))
	require.NoError(t, err)
	l.lost = dropsCapableSYN
	l.dialOnce(config(t), service)

	_, why := l.dialOnce(config(t), netip.AddrPortFrom(near, serverPort))
	require.Equal(t, reason.FallbackBlackhole, why, "the same /24")
	offers, _ := l.dialOnce(config(t), netip.AddrPortFrom(far, serverPort))
	require.Equal(t, 3, offers, "another /24")
	l.client.locals = l.client.locals[1:]
	offers, _ = l.dialOnce(config(t), service)
	require.Equal(t, 3, offers, "another source address")
}

func TestRequiredMPTCPIgnoresBlackHoles(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	l.dialOnce(config(t), service)
	l.lost = nil
	must := config(t)
	must.RequireMPTCP = true
	offers, why := l.dialOnce(must, service)
	require.Equal(t, reason.FallbackNone, why)
	require.Equal(t, 1, offers)
	_, why = l.dialOnce(config(t), service)
	require.Equal(t, reason.FallbackNone, why, "its success shows that the hole is gone")
}

func TestUnansweredDialsAreNoBlackHoles(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = func(*wire.Segment) bool { return true }
	c := l.dial(config(t), zeroPort, service)
	l.advance(5 * time.Minute)
	require.True(t, c.Closed())
	l.lost = nil
	_, why := l.dialOnce(config(t), service)
	require.Equal(t, reason.FallbackNone, why)
}

// A dial with little time tries plain SYNs before half of it is over, but not
// before the first retransmission. The schedule of the SYNs themselves is that
// of RFC 6298: after 1, 3 and 7 s.
func TestHurriedDialsOfferLess(t *testing.T) {
	for within, want := range map[time.Duration]struct {
		offers int
		plain  time.Duration // when the first plain SYN goes
	}{
		0:                       {3, 7 * time.Second},
		time.Minute:             {3, 7 * time.Second},
		14 * time.Second:        {3, 7 * time.Second},
		13 * time.Second:        {2, 3 * time.Second},
		6 * time.Second:         {2, 3 * time.Second},
		5 * time.Second:         {1, time.Second},
		1500 * time.Millisecond: {1, time.Second},
	} {
		l := newLab(t, host.Config{})
		l.listen(config(t), 0)
		l.lost = dropsCapableSYN
		start := l.now
		c, err := l.client.Dial(l.now, host.DialArgs{Remote: service, Within: within, Conn: config(t)})
		require.NoError(t, err)
		l.client.conns = append(l.client.conns, c)
		for !c.Connected() {
			require.Less(t, l.now.Sub(start), 20*time.Second)
			l.advance(10 * time.Millisecond)
		}
		require.InDelta(t, want.plain.Seconds(), l.now.Sub(start).Seconds(), 0.02, "within %v", within)
		offers := 0
		for _, seg := range l.client.sent {
			if seg.Flags.Has(wire.SYN) && seg.Has&wire.OptMPCapable != 0 {
				offers++
			}
		}
		require.Equal(t, want.offers, offers, "within %v", within)
	}
}

// What a hurried dial finds may be the accident of a lost SYN: the next dial
// offers MPTCP once more, and only its failure has later ones go plain.
func TestHurriedDialsAreConfirmed(t *testing.T) {
	dial := func(l *lab) reason.Fallback {
		c, err := l.client.Dial(l.now, host.DialArgs{Remote: service, Within: 5 * time.Second, Conn: config(t)})
		require.NoError(t, err)
		l.client.conns = append(l.client.conns, c)
		l.advance(5 * time.Second)
		require.True(t, c.Connected())
		why := c.Fallback()
		c.Abort(l.now)
		l.run()
		return why
	}
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	require.Equal(t, reason.FallbackSYNTimeout, dial(l))
	require.Zero(t, l.client.mib()["Blackhole"])
	require.Equal(t, reason.FallbackSYNTimeout, dial(l), "the probe")
	require.Equal(t, uint64(1), l.client.mib()["Blackhole"])
	require.Equal(t, reason.FallbackBlackhole, dial(l))
	l.advance(time.Minute)
	require.Equal(t, reason.FallbackSYNTimeout, dial(l), "the first period is a minute")

	l = newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.lost = dropsCapableSYN
	require.Equal(t, reason.FallbackSYNTimeout, dial(l))
	l.lost = nil
	require.Equal(t, reason.FallbackNone, dial(l))
	require.Equal(t, reason.FallbackNone, dial(l))
	require.Zero(t, l.client.mib()["Blackhole"])
}
