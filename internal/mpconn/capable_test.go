package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// carrying returns the segments of an end that carry an option.
func (e *end) carrying(o wire.OptionSet) []wire.Segment {
	var out []wire.Segment
	for _, s := range e.sent {
		if s.Has&o != 0 {
			out = append(out, s)
		}
	}
	return out
}

// RFC 8684, Section 3.1: MP_CAPABLE has no key on the SYN, one on the
// SYN/ACK, both on the third ACK, and a length beside them with the first
// data.
func TestMPCapableForms(t *testing.T) {
	l := newLab(t, 1, 1)
	l.connect()
	l.prove()

	a, b := l.a.carrying(wire.OptMPCapable), l.b.carrying(wire.OptMPCapable)
	require.Len(t, a, 3, "SYN, third ACK, first data")
	require.Len(t, b, 1, "SYN/ACK")
	require.Equal(t, wire.MPCapable{Version: 1, Flags: wire.CapHMACSHA256, Keys: 0}, withoutKeys(a[0]))
	require.Equal(t, [8]byte(keyB), b[0].Capable.SenderKey)
	require.EqualValues(t, 1, b[0].Capable.Keys)
	for _, s := range a[1:] {
		require.EqualValues(t, 2, s.Capable.Keys)
		require.Equal(t, [8]byte(keyA), s.Capable.SenderKey)
		require.Equal(t, [8]byte(keyB), s.Capable.ReceiverKey)
	}
	require.False(t, a[1].Capable.HasData)
	require.True(t, a[2].Capable.HasData)
	require.EqualValues(t, 1, a[2].Capable.DataLen)
	require.True(t, l.a.conn.IsMPTCP() && l.b.conn.IsMPTCP())
}

func withoutKeys(s wire.Segment) wire.MPCapable {
	c := s.Capable
	if c.Keys == 0 {
		c.SenderKey, c.ReceiverKey = [8]byte{}, [8]byte{}
	}
	return c
}

// RFC 8684, Section 3.1: IDSN is the low half of SHA-256 of the key, so the
// first byte has IDSN+1. The values were computed apart from this code.
func TestFirstDSN(t *testing.T) {
	const idsnA, idsnB = 0xf5a101d3d29d6f72, 0x535beea38e087c8e
	l := newLab(t, 1, 1)
	l.connect()
	l.prove()

	var first *wire.Segment
	for _, s := range l.b.carrying(wire.OptDSS) {
		if s.DSS.Flags&wire.DSSMap != 0 {
			first = &s
			break
		}
	}
	require.NotNil(t, first)
	require.EqualValues(t, uint64(idsnB+1), first.DSS.DSN)
	require.EqualValues(t, 1, first.DSS.SSN)
	require.EqualValues(t, uint64(idsnA+1), first.DSS.Ack, "nothing of a was received yet")
}

// RFC 8684, Section 3.1: joins only after a DSS was received.
func TestNoJoinBeforeDSS(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	_, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(1)})
	require.False(t, ok)
	require.Zero(t, l.a.count(EventJoinable))
	l.prove()
	require.Equal(t, 1, l.a.count(EventJoinable))
	require.Equal(t, 1, l.b.count(EventJoinable))
	l.join(1)
}

// A third ACK that is lost is repeated with the first data.
func TestThirdACKLost(t *testing.T) {
	l := newLab(t, 1, 1)
	n := 0
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.Has&wire.OptMPCapable != 0 && seg.Flags&wire.SYN == 0 {
			n++
			return n != 1
		}
		return true
	}
	l.dial()
	l.run("a connected", time.Second, func() bool { return l.a.conn.Connected() })
	l.a.write(10)
	l.run("data", 10*time.Second, func() bool { l.b.readAll(); return l.b.read == 10 })
	require.True(t, l.b.conn.IsMPTCP())
}

// A DSS that overtakes the third ACK must not make a plain connection.
func TestDSSOvertakesThirdACK(t *testing.T) {
	l := newLab(t, 1, 1)
	dropped := 0
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.Has&wire.OptMPCapable != 0 && seg.Flags&wire.SYN == 0 && dropped < 2 {
			dropped++
			return false
		}
		return true
	}
	l.dial()
	l.run("a connected", time.Second, func() bool { return l.a.conn.Connected() })
	l.a.write(9000)
	l.run("data", 10*time.Second, func() bool { l.b.readAll(); return l.b.read == 9000 })
	require.Equal(t, 2, dropped)
	require.True(t, l.b.conn.IsMPTCP())
}

// RFC 8684, Section 3.1: "if either host requires the use of checksums,
// checksums MUST be used."
func TestChecksumWanted(t *testing.T) {
	for _, who := range []string{"a", "b"} {
		l := newLab(t, 1, 1)
		if who == "a" {
			l.a.cfg.Checksum = true
		} else {
			l.b.cfg.Checksum = true
		}
		l.connect()
		l.prove()
		l.transfer(l.a, l.b, 100_000, time.Minute, nil)
		for _, e := range []*end{l.a, l.b} {
			for _, s := range e.carrying(wire.OptDSS) {
				if s.DSS.Flags&wire.DSSMap != 0 {
					require.True(t, s.DSS.HasChecksum, who)
				}
			}
		}
		third := l.a.carrying(wire.OptMPCapable)[1]
		require.NotZero(t, third.Capable.Flags&wire.CapChecksum, "the third ACK repeats the result")
		require.Zero(t, l.b.conn.Info().Stats.ChecksumErrors)
	}
}

// What an active opener, or its path, may do to MP_CAPABLE, and where the
// connection ends up.
func TestFallbackAtStart(t *testing.T) {
	strip := func(match func(l *lab, from *end, seg *wire.Segment) bool) func(l *lab) {
		return func(l *lab) {
			l.paths[0].box = func(from *end, seg *wire.Segment) bool {
				if match(l, from, seg) {
					seg.Has &^= wire.OptMPTCP
				}
				return true
			}
		}
	}
	cases := []struct {
		name  string
		setUp func(l *lab)
		a, b  reason.Fallback
	}{
		{"plain client", func(l *lab) { l.a.cfg.Plain = true }, reason.FallbackRequested, reason.FallbackPeerSYN},
		{"plain server", func(l *lab) { l.b.cfg.Plain = true }, reason.FallbackPeerSYNACK, reason.FallbackRequested},
		{"syn stripped", strip(func(l *lab, from *end, seg *wire.Segment) bool {
			return from == l.a && seg.Flags&wire.SYN != 0
		}), reason.FallbackPeerSYNACK, reason.FallbackPeerSYN},
		{"syn/ack stripped", strip(func(l *lab, from *end, seg *wire.Segment) bool {
			return from == l.b && seg.Flags&wire.SYN != 0
		}), reason.FallbackPeerSYNACK, reason.FallbackThirdACK},
		{"all but syns stripped from client", strip(func(l *lab, from *end, seg *wire.Segment) bool {
			return from == l.a && seg.Flags&wire.SYN == 0
		}), reason.FallbackNoDataACK, reason.FallbackThirdACK},
		{"all but syns stripped", strip(func(_ *lab, _ *end, seg *wire.Segment) bool {
			return seg.Flags&wire.SYN == 0
		}), reason.FallbackNoDataACK, reason.FallbackThirdACK},
		// A SYN without MP_CAPABLE says that the peer does without: answered with
		// it, none of the answers would arrive. Guard: admit.
		{"syn/acks with mp_capable are dropped", func(l *lab) {
			l.paths[0].box = func(from *end, seg *wire.Segment) bool {
				return from == l.a || seg.Flags&wire.SYN == 0 || seg.Has&wire.OptMPCapable == 0
			}
		}, reason.FallbackSYNTimeout, reason.FallbackPeerSYN},
		// Guard: the fallback in unmapped.
		{"data stripped from client", strip(func(_ *lab, from *end, seg *wire.Segment) bool {
			return seg.PayloadLen() > 0 || from.name == "b" && seg.Flags&wire.SYN == 0
		}), reason.FallbackNoDataACK, reason.FallbackNoMapping},
		{"third ack echoes another key", func(l *lab) {
			l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
				if seg.Has&wire.OptMPCapable != 0 && seg.Capable.Keys == 2 {
					seg.Capable.ReceiverKey[0] ^= 1
				}
				return true
			}
		}, reason.FallbackNoDataACK, reason.FallbackBadKeys},
		{"syns with mp_capable are dropped", func(l *lab) {
			l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
				return seg.Flags&wire.SYN == 0 || seg.Has&wire.OptMPCapable == 0
			}
		}, reason.FallbackSYNTimeout, reason.FallbackPeerSYN},
		{"no algorithm in common", func(l *lab) {
			l.paths[0].box = func(from *end, seg *wire.Segment) bool {
				if from == l.a && seg.Has&wire.OptMPCapable != 0 {
					seg.Capable.Flags &^= wire.CapHMACSHA256
				}
				return true
			}
		}, reason.FallbackPeerSYNACK, reason.FallbackPeerSYN},
		{"extension bit", func(l *lab) {
			l.paths[0].box = func(from *end, seg *wire.Segment) bool {
				if from == l.a && seg.Has&wire.OptMPCapable != 0 {
					seg.Capable.Flags |= wire.CapExtension
				}
				return true
			}
		}, reason.FallbackPeerSYNACK, reason.FallbackPeerSYN},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 1)
			c.setUp(l)
			l.connect()
			l.transfer(l.a, l.b, 300_000, time.Minute, nil)
			l.transfer(l.b, l.a, 300_000, time.Minute, nil)
			require.Equal(t, c.a.String(), l.a.conn.Fallback().String(), "a")
			require.Equal(t, c.b.String(), l.b.conn.Fallback().String(), "b")
			require.False(t, l.a.conn.IsMPTCP() || l.b.conn.IsMPTCP())
			l.a.conn.Close(l.now)
			l.a.pump()
			l.b.conn.Close(l.now)
			l.b.pump()
			l.wantClosed(reason.CloseDone, reason.CloseDone)
		})
	}
}

// RFC 8684, Section 3.7: after a fallback no segment carries an MPTCP option,
// but for one infinite mapping.
func TestNoOptionsAfterFallback(t *testing.T) {
	l := newLab(t, 1, 1)
	l.b.cfg.Plain = true
	l.connect()
	l.transfer(l.a, l.b, 50_000, time.Minute, nil)
	require.Len(t, l.a.carrying(wire.OptMPTCP), 1, "the SYN")
	require.Empty(t, l.b.carrying(wire.OptMPTCP))
}
