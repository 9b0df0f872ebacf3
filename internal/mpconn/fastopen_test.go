package mpconn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// fastLab returns a lab in which a has a cookie that b takes.
func fastLab(t testing.TB, paths int) *lab {
	l := newLab(t, 1, paths)
	l.a.cfg.FastOpen = subflow.FastOpen{Send: true, Cookie: wire.FastOpen{Len: 8}, MSS: 1460}
	l.a.cfg.Hold = true
	l.b.cfg.FastOpen.Take = true
	return l
}

// fastDial dials and writes n bytes, which is when the SYN leaves.
func (l *lab) fastDial(n int) {
	l.t.Helper()
	l.dial()
	require.Empty(l.t, l.a.sent, "the SYN waits for data")
	require.True(l.t, l.a.conn.Held())
	l.a.write(n)
	require.False(l.t, l.a.conn.Held())
}

// dsnOf returns the number of the n-th byte of the data sequence space of the
// end with key k: n = 1 is the first behind the SYN.
func dsnOf(k key.Key, n int) uint64 { return uint64(k.IDSN().Add(n)) }

// withMapping returns the segments with a mapping that an end sent.
func (e *end) withMapping() (all []wire.Segment) {
	for _, s := range e.sent {
		if s.Has&wire.OptDSS != 0 && s.DSS.Flags&wire.DSSMap != 0 || s.Has&wire.OptMPCapable != 0 && s.Capable.HasData {
			all = append(all, s)
		}
	}
	return all
}

// relative returns the number of a segment counted from its sender's SYN.
func (e *end) relative(s *wire.Segment) int { return s.Seq.Diff(e.sent[0].Seq) }

// RFC 8684, Appendix B.3, Figure 19: the listener takes the data and answers at
// once. "Note that the last segment in the figure has a TCP sequence number of
// 21, while the DSS subflow sequence number is 1 (because the TFO data is not
// part of the data sequence number space".
func TestFastOpenFigure19(t *testing.T) {
	for _, sum := range []bool{false, true} {
		l := fastLab(t, 1)
		l.a.cfg.Checksum = sum
		l.fastDial(20)
		start := l.now
		l.run("data on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 20 })
		require.Equal(t, 10*time.Millisecond, l.now.Sub(start), "half a round trip")
		require.True(t, l.b.conn.Connected())
		require.Equal(t, 1, l.b.count(EventConnected))
		require.False(t, l.b.conn.IsMPTCP(), "the keys are not known")
		l.b.write(100)
		l.run("answer", time.Second, func() bool { l.a.readAll(); return l.a.read == 100 })
		require.Equal(t, 20*time.Millisecond, l.now.Sub(start), "one round trip")

		synAck, early := l.b.sent[0], l.b.withMapping()[0]
		require.Equal(t, l.a.sent[0].Seq.Add(21), synAck.Ack)
		require.Equal(t, 1, l.b.relative(&early))
		require.Equal(t, wire.DSSMap|wire.DSSDSN8, early.DSS.Flags, "no DATA_ACK")
		require.Equal(t, dsnOf(keyB, 1), early.DSS.DSN)
		require.EqualValues(t, 1, early.DSS.SSN)
		require.EqualValues(t, 100, early.DSS.Len)
		require.Equal(t, sum, early.DSS.HasChecksum)
		third := l.a.sent[1]
		require.Equal(t, 21, l.a.relative(&third))
		require.EqualValues(t, 2, third.Capable.Keys)
		require.NotZero(t, third.Has&wire.OptMPCapable)

		l.a.write(20)
		l.run("data after that on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 40 })
		first := l.a.withMapping()[0]
		require.Equal(t, 21, l.a.relative(&first))
		if first.Has&wire.OptMPCapable == 0 {
			require.Equal(t, dsnOf(keyA, 1), first.DSS.DSN)
			require.EqualValues(t, 1, first.DSS.SSN)
		}
		l.idle(100 * time.Millisecond)
		require.EqualValues(t, dsnOf(keyB, 101), l.a.conn.Info().NextAck)
		require.EqualValues(t, dsnOf(keyA, 21), l.b.conn.Info().NextAck)
		for _, e := range []*end{l.a, l.b} {
			i := e.conn.Info()
			require.True(t, i.MPTCP && i.Joinable, e.name)
			require.Equal(t, sum, i.Checksum)
			require.Equal(t, 20, i.SYNData)
			require.Zero(t, i.Unacked, e.name)
			require.Equal(t, reason.FallbackNone, i.Fallback)
			require.Zero(t, i.Stats.Drops)
		}
	}
}

// Figure 20: "The initiator detects that no state is created in the listener (as
// no data is ACKed) and now sends the MP_CAPABLE in the third packet", and "the
// TFO data, when retransmitted, becomes part of the Data Sequence Mapping".
// Figure 21: so does what of it was not acknowledged.
func TestFastOpenFigures20And21(t *testing.T) {
	for _, acked := range []int{0, 500} {
		t.Run(fmt.Sprint(acked), func(t *testing.T) {
			l := fastLab(t, 1)
			l.a.cfg.Checksum = true
			l.b.cfg.FastOpen.Take = acked > 0
			l.b.cfg.Subflow.MaxWindow = acked // 0 = as the buffer
			l.fastDial(1000)
			l.run("data", time.Second, func() bool { l.b.readAll(); return l.b.read == 1000 })
			require.Equal(t, l.a.sent[0].Seq.Add(1+acked), l.b.sent[0].Ack)
			first := l.a.withMapping()[0]
			require.Equal(t, 1+acked, l.a.relative(&first))
			require.NotZero(t, first.Has&wire.OptMPCapable, "the mapping is that of MP_CAPABLE: IDSN+1, SSN 1")
			require.EqualValues(t, min(1000-acked, 1000), first.Capable.DataLen)
			l.b.write(30)
			l.run("answer", time.Second, func() bool { l.a.readAll(); return l.a.read == 30 })
			l.idle(100 * time.Millisecond)
			require.EqualValues(t, dsnOf(keyA, 1+1000-acked), l.b.conn.Info().NextAck)
			require.Equal(t, acked, l.a.conn.Info().SYNData)
			require.Equal(t, acked, l.b.conn.Info().SYNData)
			require.True(t, l.a.conn.Joinable())
		})
	}
}

// What boxes do to a fast open, with MPTCP and without: everything arrives, once
// and in order, in both directions.
func TestFastOpenMeetsBoxes(t *testing.T) {
	type verdict func(from *end, seg *wire.Segment, nth int) bool // nth segment of the sender, from 1 on
	for name, c := range map[string]struct {
		box  verdict
		syn  int // data that goes along with the SYN
		mode mode
	}{
		"nothing":                 {func(*end, *wire.Segment, int) bool { return true }, 700, modeMPTCP},
		"SYN lost":                {func(e *end, _ *wire.Segment, n int) bool { return e.name != "a" || n > 1 }, 0, modeMPTCP},
		"SYN/ACK lost":            {func(e *end, _ *wire.Segment, n int) bool { return e.name != "b" || n > 1 }, 700, modeMPTCP},
		"first early data lost":   {func(e *end, _ *wire.Segment, n int) bool { return e.name != "b" || n != 2 }, 700, modeMPTCP},
		"all early data lost":     {func(e *end, s *wire.Segment, n int) bool { return e.name != "b" || n == 1 || n > 12 }, 700, modeMPTCP},
		"third ACK lost":          {func(e *end, _ *wire.Segment, n int) bool { return e.name != "a" || n != 2 }, 700, modeMPTCP},
		"three from a lost":       {func(e *end, _ *wire.Segment, n int) bool { return e.name != "a" || n < 2 || n > 4 }, 700, modeMPTCP},
		"SYN with option dropped": {func(_ *end, s *wire.Segment, _ int) bool { return s.Has&wire.OptFastOpen == 0 }, 0, modeMPTCP},
		"SYN with data dropped": {func(_ *end, s *wire.Segment, _ int) bool {
			return s.Flags&wire.SYN == 0 || s.PayloadLen() == 0
		}, 0, modeMPTCP},
		"data taken off the SYN": {func(_ *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN != 0 {
				s.Payload = [][]byte{nil}
			}
			return true
		}, 0, modeMPTCP},
		"data cut": {func(_ *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN != 0 && s.PayloadLen() > 0 {
				s.Payload[0] = s.Payload[0][:300]
			}
			return true
		}, 300, modeMPTCP},
		"MPTCP taken off the SYN": {func(_ *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN != 0 {
				s.Has &^= wire.OptMPTCP
			}
			return true
		}, 700, modePlain},
		"MPTCP taken off the SYN/ACK": {func(e *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN != 0 && e.name == "b" {
				s.Has &^= wire.OptMPTCP
			}
			return true
		}, 700, modePlain},
		"MPTCP taken off from the third ACK on": {func(_ *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN == 0 {
				s.Has &^= wire.OptMPTCP
			}
			return true
		}, 700, modePlain},
		"MPTCP taken off a from the third ACK on": {func(e *end, s *wire.Segment, _ int) bool {
			if s.Flags&wire.SYN == 0 && e.name == "a" {
				s.Has &^= wire.OptMPTCP
			}
			return true
		}, 700, modePlain},
	} {
		for _, kind := range []string{"MPTCP", "checksum", "plain"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				l := fastLab(t, 1)
				want := c.mode
				switch kind {
				case "checksum":
					l.b.cfg.Checksum = true
				case "plain":
					l.a.cfg.Plain, want = true, modePlain
				}
				n := map[*end]int{}
				l.paths[0].box = func(from *end, seg *wire.Segment) bool {
					n[from]++
					return c.box(from, seg, n[from])
				}
				l.fastDial(700)
				asked := false
				l.run("transfer", 3*time.Minute, func() bool {
					l.a.readAll()
					l.b.readAll()
					if l.b.read >= 700 && !asked {
						asked = true
						l.b.write(20_000)
						l.a.write(20_000)
					}
					return l.a.read == 20_000 && l.b.read == 20_700
				})
				l.idle(time.Second)
				for _, e := range []*end{l.a, l.b} {
					require.Equal(t, want, e.conn.mode, "%s: %v", e.name, e.conn.Fallback())
					require.Equal(t, c.syn, e.conn.Info().SYNData, e.name)
				}
				l.a.conn.Close(l.now)
				l.b.conn.Close(l.now)
				l.a.pump()
				l.b.pump()
				l.wantClosed(reason.CloseDone, reason.CloseDone)
			})
		}
	}
}

// A client with nothing to add to what went along with the SYN makes sure that
// the third ACK arrived, and tells with a DATA_ACK that it knows: Linux holds an
// answer back until then.
func TestFastOpenAsksForProof(t *testing.T) {
	for _, lost := range []int{0, 1, 2, 3} {
		l := fastLab(t, 1)
		probes := 0
		l.paths[0].box = func(from *end, seg *wire.Segment) bool {
			if from == l.a && seg.Flags&wire.SYN == 0 && l.a.relative(seg) == 20 {
				probes++
				require.Zero(t, seg.PayloadLen())
				require.NotZero(t, seg.Has&wire.OptMPCapable)
				return probes > lost
			}
			return true
		}
		l.fastDial(20)
		l.run("handshake", time.Second, func() bool { return l.b.conn != nil && l.b.conn.IsMPTCP() })
		l.idle(10 * time.Second)
		if lost == maxProofs {
			require.Equal(t, 3, probes)
			require.False(t, l.a.conn.Joinable())
			continue
		}
		require.Equal(t, lost+1, probes)
		require.True(t, l.a.conn.Joinable() && l.b.conn.Joinable())
		last := l.a.sent[len(l.a.sent)-1]
		require.Equal(t, wire.DSSAck|wire.DSSAck8, last.DSS.Flags, "DATA_ACK")
		require.Len(t, l.a.sent, 2+probes+1)
	}
	l := fastLab(t, 1)
	l.a.cfg.Plain = true
	l.fastDial(20)
	l.idle(10 * time.Second)
	require.Len(t, l.a.sent, 2)
}

// Subflows that join later carry both streams on; MP_JOIN never has data, nor
// takes any.
func TestFastOpenThenJoin(t *testing.T) {
	l := fastLab(t, 2)
	l.a.cfg.Checksum = true
	l.fastDial(1000)
	l.run("data on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 1000 })
	l.b.write(1000)
	l.a.write(1000)
	l.run("more", time.Second, func() bool {
		l.a.readAll()
		l.b.readAll()
		return l.a.read == 1000 && l.b.read == 2000 && l.a.conn.Joinable()
	})
	joins := 0
	l.paths[1].box = func(_ *end, seg *wire.Segment) bool {
		if seg.Flags&wire.SYN != 0 {
			joins++
			require.Zero(t, seg.PayloadLen())
			require.Zero(t, seg.Has&wire.OptFastOpen)
			if joins == 1 {
				seg.Payload = [][]byte{make([]byte, 50)}
			}
		}
		return true
	}
	id := l.join(1)
	l.run("join", time.Second, func() bool { return l.a.conn.flow(id).phase == phaseUp })
	require.Equal(t, 2, joins)
	l.transfer(l.a, l.b, 200_000, time.Minute, nil)
	l.paths[0].down = true
	l.transfer(l.b, l.a, 200_000, time.Minute, nil)
	l.transfer(l.a, l.b, 200_000, time.Minute, nil)
	require.Equal(t, 1000, l.a.conn.Info().SYNData, "remembered")
}

// A checksum that fails after a fast open leads to the same fallback as ever: the
// infinite mapping names the subflow's place less the data on the SYN.
func TestFastOpenThenChecksumFailure(t *testing.T) {
	for _, forward := range []bool{true, false} {
		l := fastLab(t, 1)
		l.a.cfg.Checksum = true
		l.a.tolerate, l.b.tolerate = true, true
		l.fastDial(1000)
		l.run("data on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 1000 })
		l.b.write(10)
		l.a.write(10)
		l.run("proof", time.Second, func() bool {
			l.a.readAll()
			l.b.readAll()
			return l.a.read == 10 && l.b.read == 1010
		})
		from, to := l.a, l.b
		if !forward {
			from, to = to, from
		}
		hit := l.spoil(0, from, 20)
		l.transfer(from, to, 300_000, time.Minute, nil)
		require.True(t, *hit)
		require.Equal(t, 1, to.wrong)
		require.Len(t, to.carrying(wire.OptMPFail), 1)
		wantInfinite(t, to.carrying(wire.OptMPFail)[0], from)
		l.transfer(to, from, 100_000, time.Minute, nil)
		for _, e := range []*end{l.a, l.b} {
			require.Equal(t, reason.FallbackChecksum, e.conn.Fallback())
		}
	}
}

// A SYN that is held leaves with the first bytes, or without any soon after
// somebody waits for input, or when the stream is ended.
func TestFastOpenHeld(t *testing.T) {
	l := fastLab(t, 1)
	l.dial()
	require.Zero(t, l.a.conn.Deadline())
	l.a.conn.AwaitInput(l.now)
	l.a.conn.AwaitInput(l.now.Add(time.Millisecond))
	require.Equal(t, l.now.Add(5*time.Millisecond), l.a.conn.Deadline())
	l.run("SYN", time.Second, func() bool { return len(l.a.sent) > 0 })
	require.Equal(t, mono.Time(time.Second+5*time.Millisecond), l.now)
	require.EqualValues(t, 8, l.a.sent[0].FastOpen.Len, "the cookie lets the peer speak first")
	l.run("accepted", time.Second, func() bool { return l.b.conn != nil && l.b.conn.Connected() })
	l.b.write(10)
	l.run("the peer speaks first", time.Second, func() bool { l.a.readAll(); return l.a.read == 10 })

	l = fastLab(t, 1)
	l.dial()
	l.a.conn.AwaitInput(l.now)
	l.a.write(10)
	require.Len(t, l.a.sent, 1, "written in time")
	l.run("data", time.Second, func() bool { l.b.readAll(); return l.b.read == 10 })

	l = fastLab(t, 1)
	l.dial()
	l.a.conn.CloseWrite(l.now)
	l.a.pump()
	require.Len(t, l.a.sent, 1)
	l.run("end of stream", time.Second, func() bool { return l.b.conn != nil && l.b.conn.EOF() })

	l = fastLab(t, 1)
	l.dial()
	l.a.conn.Connect()
	l.a.pump()
	require.Len(t, l.a.sent, 1)

	for _, end := range []func(*Conn, mono.Time){(*Conn).Close, (*Conn).Abort} {
		l = fastLab(t, 1)
		l.dial()
		end(l.a.conn, l.now)
		l.a.pump()
		require.Empty(t, l.a.sent, "nothing was begun")
		require.True(t, l.a.conn.Closed())
	}
}

// Bytes written before Close are delivered, wherever they travel.
func TestFastOpenCloseAtOnce(t *testing.T) {
	for _, n := range []int{100, 5000} {
		l := fastLab(t, 1)
		l.fastDial(n)
		l.a.conn.Close(l.now)
		l.a.pump()
		l.run("all of it", time.Minute, func() bool { l.b.readAll(); return l.b.read == n && l.b.conn.EOF() })
		l.b.conn.Close(l.now)
		l.b.pump()
		l.wantClosed(reason.CloseDone, reason.CloseDone)
	}
}

// The server may write, and close, before the third ACK has come.
func TestFastOpenServerClosesEarly(t *testing.T) {
	for _, plain := range []bool{false, true} {
		l := fastLab(t, 1)
		l.a.cfg.Plain = plain
		l.fastDial(100)
		l.run("data on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 100 })
		l.b.write(3000)
		l.b.conn.Close(l.now)
		l.b.pump()
		l.run("answer and end", time.Minute, func() bool { l.a.readAll(); return l.a.read == 3000 && l.a.conn.EOF() })
		l.a.conn.Close(l.now)
		l.a.pump()
		l.wantClosed(reason.CloseDone, reason.CloseDone)
	}
}

// Both sides open at the same time with data on their SYNs, which neither takes:
// both are plain TCP, and every byte arrives once. The guards are the handshake's
// case for a SYN in answer to a SYN, and that data on a SYN counts as sent no more
// once it is known how much of it was acknowledged (Subflow.takeSYNAck).
func TestFastOpenSimultaneousOpen(t *testing.T) {
	l := fastLab(t, 1)
	l.b.cfg.FastOpen = l.a.cfg.FastOpen
	l.b.cfg.Local, l.b.cfg.Remote = l.b.at(0), l.a.at(0)
	l.b.conn = Dial(l.now, &l.b.cfg)
	l.fastDial(300)
	l.b.write(400)
	l.run("connect", 10*time.Second, func() bool { return l.a.conn.Connected() && l.b.conn.Connected() })
	l.run("data", 10*time.Second, func() bool {
		l.a.readAll()
		l.b.readAll()
		return l.a.read == 400 && l.b.read == 300
	})
	for _, e := range []*end{l.a, l.b} {
		require.Equal(t, reason.FallbackPeerSYN, e.conn.Fallback())
		require.Zero(t, e.conn.Info().SYNData)
		e.closeWrite()
	}
	l.wantClosed(reason.CloseDone, reason.CloseDone)
}

// A connection that must be MPTCP ends when the third ACK says that it is not,
// also if it was used before.
func TestFastOpenRequireMPTCP(t *testing.T) {
	l := fastLab(t, 1)
	l.b.cfg.RequireMPTCP = true
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.Flags&wire.SYN == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.fastDial(100)
	l.run("fallback", time.Second, func() bool { return l.b.conn != nil && l.b.count(EventFallback) > 0 })
	require.Equal(t, reason.FallbackThirdACK, l.b.conn.Fallback())
}

// A peer whose SYN had a good cookie and that then falls silent is given up.
func TestFastOpenPeerVanishes(t *testing.T) {
	l := fastLab(t, 1)
	l.fastDial(100)
	l.run("data on the SYN", time.Second, func() bool { l.b.readAll(); return l.b.read == 100 })
	l.paths[0].down = true
	l.b.write(3000)
	l.run("given up", 10*time.Minute, func() bool { return l.b.conn.Closed() })
	require.Equal(t, reason.CloseTimeout, l.b.conn.Err())
}

// Long transfers after a fast open over paths that lose and reorder.
func TestFastOpenTransfer(t *testing.T) {
	for _, sum := range []bool{false, true} {
		l := fastLab(t, 2)
		l.b.cfg.Checksum = sum
		for _, p := range l.paths {
			p.loss, p.reorder, p.duplicate = 0.01, 0.1, 0.01
		}
		l.fastDial(1300)
		l.run("joinable", time.Minute, func() bool {
			l.b.readAll()
			if l.b.conn != nil && l.b.wrote == 0 && l.b.read > 0 {
				l.b.write(1000)
			}
			l.a.readAll()
			return l.a.conn.Joinable()
		})
		l.join(1)
		l.transfer(l.a, l.b, 500_000, 5*time.Minute, nil)
		l.transfer(l.b, l.a, 500_000, 5*time.Minute, nil)
	}
}
