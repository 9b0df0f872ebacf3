package mpconn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// resets returns the RSTs an end sent on a path.
func (e *end) resets(path int) []wire.Segment {
	var out []wire.Segment
	for _, s := range e.sent {
		if s.Flags.Has(wire.RST) && s.Src.Addr() == addr(path, e.host) {
			out = append(out, s)
		}
	}
	return out
}

// RFC 8684, Section 3.7: the first ACK of data on a joined subflow that has no
// DATA_ACK means a RST with reason 6; so does data that lacks mappings after a
// good start. Either way the bytes come by the other subflow.
func TestOptionsVanishOnJoinedSubflow(t *testing.T) {
	for name, strip := range map[string]func(l *lab, from *end) bool{
		"data_acks from the start": func(l *lab, from *end) bool { return from == l.b },
		"mappings from the start":  func(l *lab, from *end) bool { return from == l.a },
		"all from the start":       func(*lab, *end) bool { return true },
		"mappings later":           func(l *lab, from *end) bool { return from == l.a && l.b.read > 500_000 },
	} {
		t.Run(name, func(t *testing.T) {
			l := joined(t, 1)
			l.paths[1].box = func(from *end, seg *wire.Segment) bool {
				if seg.Flags&wire.RST == 0 && strip(l, from) {
					seg.Has &^= wire.OptMPTCP
				}
				return true
			}
			l.transfer(l.a, l.b, 2_000_000, time.Minute, nil)
			l.run("reset", time.Minute, func() bool { return l.a.count(EventSubflowLost) == 1 && l.b.count(EventSubflowLost) == 1 })
			rst := append(l.a.resets(1), l.b.resets(1)...)
			require.NotEmpty(t, rst)
			require.Equal(t, reason.ResetMiddlebox, rst[0].TCPRst.Reason)
			require.True(t, l.a.conn.IsMPTCP())
			require.True(t, l.b.conn.IsMPTCP())
		})
	}
}

// Options that vanish from the first subflow once a second was added reset it:
// there is no way back to plain TCP.
func TestOptionsVanishOnFirstSubflowAfterJoin(t *testing.T) {
	l := joined(t, 1)
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if seg.Flags&wire.RST == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.transfer(l.a, l.b, 1_000_000, time.Minute, nil)
	require.True(t, l.a.conn.IsMPTCP())
	require.True(t, l.b.conn.IsMPTCP())
	require.Equal(t, 1, l.a.count(EventSubflowLost))
}

// RFC 8684, Section 3.7: where "MPTCP options are no longer permitted" once they
// were, "the subflow SHOULD be treated as broken and closed with a RST", since
// what came without a mapping cannot be delivered: it may have been something
// else that was to be sent again. No byte is read, the RST says why, and nothing
// hangs. Guards: unmapped, which neither drops the bytes nor guesses, and the end of
// the wait for a mapping.
func TestOptionsVanishAfterFirstData(t *testing.T) {
	for _, forward := range []bool{true, false} {
		t.Run(fmt.Sprint(forward), func(t *testing.T) {
			l := proven(t, 1)
			l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
				if seg.Flags&wire.RST == 0 {
					seg.Has &^= wire.OptMPTCP
				}
				return true
			}
			from, to := l.a, l.b
			if !forward {
				from, to = to, from
			}
			from.write(3000)
			l.run("reset", time.Minute, func() bool { to.readAll(); return from.count(EventSubflowLost) == 1 })
			require.Equal(t, 1, to.read, "what came while options passed")
			require.Len(t, to.resets(0), 1)
			require.Equal(t, reason.ResetMiddlebox, to.resets(0)[0].TCPRst.Reason)
			require.Empty(t, from.resets(0))
		})
	}
}

// Options that stop passing on the first subflow while a join is under way, at
// every step of both. A connection that fell back has one subflow and takes no
// other, no wrong byte is read, and nothing hangs. The guards are startPlain's
// end of joinable, and timeoutOfBare, without which the side that began a join
// would go on with MPTCP and send data again that the other takes for new.
func TestFallbackMeetsJoin(t *testing.T) {
	for _, total := range []int{20_000, 100_000} {
		for strip := range 12 {
			for join := range 12 {
				t.Run(fmt.Sprint(total, strip, join), func(t *testing.T) {
					fallbackMeetsJoin(t, total, time.Duration(strip)*5*time.Millisecond, time.Duration(join)*5*time.Millisecond)
				})
			}
		}
	}
}

// fallbackMeetsJoin sends total bytes both ways over a first path that strips
// options after a time, while a join begins after another.
func fallbackMeetsJoin(t *testing.T, total int, strip, join time.Duration) {
	l := newLab(t, 9, 2)
	l.paths[1].delay = 7 * time.Millisecond
	l.connect()
	start := l.now
	l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
		if l.now >= start.Add(strip) && seg.Flags&wire.RST == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.a.write(1)
	l.b.write(1)
	opened := false
	l.run("end", 10*time.Minute, func() bool {
		if !opened && l.now >= start.Add(join) {
			_, opened = l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(1)})
			l.a.pump()
		}
		l.a.write(total - l.a.wrote)
		l.b.write(total - l.b.wrote)
		l.a.readAll()
		l.b.readAll()
		for _, e := range []*end{l.a, l.b} {
			if e.conn.Fallback() == reason.FallbackNone {
				continue
			}
			require.False(t, e.conn.Joinable())
			for _, f := range e.conn.AppendSubflows(nil) {
				require.True(t, f.Initial || !f.Up, "%+v", f)
			}
		}
		if l.a.conn.Closed() || l.b.conn.Closed() {
			return l.a.conn.Closed() && l.b.conn.Closed()
		}
		return l.a.read == total && l.b.read == total
	})
}

// What both sides do when options stop passing, in one direction or both, after
// a byte was exchanged one way or both ways, depends on what each has sent and
// what of it was DATA_ACKed: one may fall back while the other does not. Whatever
// comes of it, no wrong byte is read: all arrive, or both sides end; and who sent
// anything out of order, or twice, does not fall back. Guards: timeoutOfBare, and
// what followBare asks of the streams.
func TestOptionsVanishInEveryState(t *testing.T) {
	for _, first := range [][2]int{{1, 0}, {0, 1}, {1, 1}} {
		for _, total := range [][2]int{{0, 1000}, {1000, 0}, {1000, 1000}, {1000, 20_000}, {20_000, 1000}, {20_000, 20_000}} {
			for _, dir := range []string{"ab", "a", "b", "a later b", "b later a"} {
				for _, gap := range []time.Duration{0, 15 * time.Millisecond} {
					t.Run(fmt.Sprint(first, total, dir, gap), func(t *testing.T) {
						optionsVanish(t, first, total, dir, gap, false)
					})
				}
				t.Run(fmt.Sprint(first, total, dir, " from the tail"), func(t *testing.T) {
					optionsVanish(t, first, total, dir, 0, true)
				})
			}
		}
	}
}

// fromTheTail sends the last bytes first.
func fromTheTail() scheduler.Scheduler {
	return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
		d := scheduler.LeastRTT(v)
		if v.Ask == scheduler.Fresh {
			d.Bytes, d.Offset = 400, max(v.Run-400, 0)
		}
		return d
	})
}

// optionsVanish exchanges the first bytes, then strips options from those named,
// some perhaps half a second later, and has both sides write the rest, b after a
// gap.
func optionsVanish(t *testing.T, first, total [2]int, dir string, gap time.Duration, tail bool) {
	l := newLab(t, 3, 1)
	l.connect()
	l.a.write(first[0])
	l.b.write(first[1])
	l.run("first", time.Second, func() bool {
		l.a.readAll()
		l.b.readAll()
		return l.b.read == first[0] && l.a.read == first[1]
	})
	l.idle(100 * time.Millisecond)
	ends := []*end{l.a, l.b}
	if tail {
		for _, e := range ends {
			e.conn.SetScheduler(fromTheTail)
		}
	}
	now, later, _ := strings.Cut(dir, " later ")
	start := l.now
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		strips := strings.Contains(now, from.name) || later == from.name && l.now.Sub(start) > 500*time.Millisecond
		if seg.Flags&wire.RST == 0 && strips {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.a.write(total[0])
	l.idle(gap)
	l.b.write(total[1])
	l.run("end", 20*time.Minute, func() bool {
		l.a.readAll()
		l.b.readAll()
		for _, e := range ends {
			if e.conn.Fallback() != reason.FallbackNone {
				require.Zero(t, e.conn.Info().Stats.BytesReinjected, e.name)
			}
		}
		if l.a.conn.Closed() || l.b.conn.Closed() {
			return l.a.conn.Closed() && l.b.conn.Closed()
		}
		return l.b.read == first[0]+total[0] && l.a.read == first[1]+total[1]
	})
}

// RFC 8684, Section 3.7: there is a way back to plain TCP "before any additional
// subflows are added" only, also if those are gone. Guard: added in mayFallBack.
func TestOptionsVanishOnceSubflowsWereAdded(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.a.write(1)
	l.run("first", time.Second, func() bool { l.b.readAll(); return l.b.read == 1 && l.a.conn.Joinable() })
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.a.conn.CloseSubflow(l.now, 1, reason.ResetUnspecified)
	l.a.pump()
	l.run("close", time.Minute, func() bool { return len(l.a.conn.flows) == 1 && len(l.b.conn.flows) == 1 })
	l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
		if seg.Flags&wire.RST == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.b.write(30_000)
	l.run("reset", time.Minute, func() bool {
		l.a.readAll()
		return l.a.count(EventSubflowLost) == 2 && l.b.count(EventSubflowLost) == 2
	})
	rst := append(l.a.resets(0), l.b.resets(0)...)
	require.NotEmpty(t, rst)
	require.Equal(t, reason.ResetMiddlebox, rst[0].TCPRst.Reason)
	l.wantMPTCP()
	require.NotZero(t, l.a.conn.Info().Stats.FallbacksFailed+l.b.conn.Info().Stats.FallbacksFailed)
	l.join(1)
	l.run("data", time.Minute, func() bool { l.a.readAll(); return l.a.read == 30_000 })
}

// wantMPTCP checks that nobody fell back, and that the connection lives.
func (l *lab) wantMPTCP() {
	l.t.Helper()
	for _, e := range []*end{l.a, l.b} {
		require.Equal(l.t, reason.FallbackNone, e.conn.Fallback(), e.name)
		require.False(l.t, e.conn.Closed(), e.name)
	}
}

// A joiner that waits for the fourth ACK cannot tell whether its peer has the
// third: if so the peer takes no way back to plain TCP, and so must the joiner
// not. Guard: onlyPath in mayFallBack.
func TestFallbackWaitsForTheFourthACK(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.b.write(1)
	l.run("first", time.Second, func() bool { l.a.readAll(); return l.a.read == 1 })
	held := true
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		return !held || from == l.a || seg.Flags&wire.SYN != 0
	}
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.b && seg.Flags&wire.RST == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.a.write(9_000)
	l.idle(150 * time.Millisecond)
	require.Equal(t, 1, l.a.count(EventSubflowUp), "the fourth ACK has not come")
	l.wantMPTCP()
	held = false
	l.run("data", time.Minute, func() bool { l.b.readAll(); return l.b.read == 9_000 })
	l.wantMPTCP()
}

// Segments without options are no reason to fall back while what was sent is
// under way: nobody has acknowledged it. Guard: inFlight in dataTimeout.
func TestBareSegmentsAloneAreNoFallback(t *testing.T) {
	l := newLab(t, 1, 1)
	l.connect()
	l.b.write(1)
	l.run("first", time.Second, func() bool { l.a.readAll(); return l.a.read == 1 })
	l.idle(100 * time.Millisecond)
	broken := true
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if broken && from == l.b {
			seg.Has &^= wire.OptMPTCP
		}
		return !broken || seg.PayloadLen() == 0
	}
	l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(1, 2), 0))
	l.b.pump()
	l.a.write(1000)
	l.idle(2 * time.Second)
	l.wantMPTCP()
	broken = false
	l.run("data", time.Minute, func() bool { l.b.readAll(); return l.b.read == 1000 })
	l.wantMPTCP()
}

// Who has dropped bytes for want of a mapping does not follow a peer that seems
// to have fallen back, since their place in the stream is not that on the
// subflow: the subflow is reset, and not the connection. Guards:
// plainSoFar in followBare, and in it the look at what was delivered.
func TestSkippedBytesForbidFallback(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.a.write(1)
	l.run("first", time.Second, func() bool { l.b.readAll(); return l.b.read == 1 })
	l.idle(100 * time.Millisecond)
	n, all := 0, false
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from != l.a || seg.Flags&wire.RST != 0 {
			return true
		}
		if seg.PayloadLen() > 0 {
			n++
		}
		if all || n == 1 && seg.PayloadLen() > 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	l.a.write(1000)
	l.idle(5 * time.Millisecond)
	l.a.write(1000)
	l.run("what was skipped", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	require.NotZero(t, l.b.conn.Info().Stats.Drops[reason.DropUnmapped])
	all = true
	l.b.write(30_000)
	l.run("reset", time.Minute, func() bool { return l.a.count(EventSubflowLost) == 1 && l.b.count(EventSubflowLost) == 1 })
	rst := l.b.resets(0)
	require.Equal(t, reason.ResetMiddlebox, rst[0].TCPRst.Reason)
	require.Zero(t, rst[0].Has&wire.OptFastClose)
	for _, e := range []*end{l.a, l.b} {
		require.Equal(t, reason.FallbackNone, e.conn.Fallback(), e.name)
	}
	require.False(t, l.b.conn.Closed())
}

// RFC 8684, Section 3.7: on a joined subflow the first ACK of data without a
// DATA_ACK means a RST, also where no other subflow is left; once there are
// several, the first is treated alike. Guards: what checkProof asks where it must
// not fall back, one each.
func TestNoDataAckOnceSubflowsWereAdded(t *testing.T) {
	for _, path := range []int{0, 1} {
		l := newLab(t, 1, 2)
		l.connect()
		l.b.write(1) // so that nothing of a's is DATA_ACKed on the first subflow
		l.run("first", time.Second, func() bool { l.a.readAll(); return l.a.read == 1 && l.a.conn.Joinable() && l.b.conn.Joinable() })
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		if path == 1 {
			for _, e := range []*end{l.a, l.b} {
				e.conn.FailSubflow(l.now, 0)
				e.pump()
			}
		}
		l.paths[path].box = func(from *end, seg *wire.Segment) bool {
			if from == l.b {
				seg.Has &^= wire.OptMPTCP
			}
			return true
		}
		l.a.write(30_000)
		l.run("reset", time.Second, func() bool { return len(l.a.resets(path)) > 0 })
		require.Equal(t, reason.ResetMiddlebox, l.a.resets(path)[0].TCPRst.Reason)
		require.EqualValues(t, 1, l.a.conn.Info().Stats.FallbacksFailed)
		require.Equal(t, reason.FallbackNone, l.a.conn.Fallback())
	}
}

// A window of bytes without a mapping is too much, sooner than the wait for one
// ends. Guards: the bound in unmapped; here and in TestOptionsVanishAfterFirstData
// the wait.
func TestUnmappedDataIsBounded(t *testing.T) {
	l := proven(t, 1)
	l.strip(0, l.a)
	start := l.now
	l.a.write(200_000)
	l.run("reset", time.Minute, func() bool { return len(l.b.resets(0)) > 0 })
	require.Less(t, l.now.Sub(start), unmappedTimeout/2)
	require.Equal(t, reason.ResetMiddlebox, l.b.resets(0)[0].TCPRst.Reason)
	require.EqualValues(t, 1, l.b.conn.Info().Stats.FallbacksFailed)
}

// A peer that falls back by an infinite mapping is not followed where what we
// sent is not our stream in order: the connection ends. Guard: fallBack asks
// sendsInLine.
func TestInfiniteMappingOutOfLine(t *testing.T) {
	l := joined(t, 4)
	l.paths[1].down = true
	l.a.write(60_000)
	l.idle(60 * time.Millisecond)
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
	}
	l.forge(l.a, func(seg *wire.Segment) {
		seg.Has |= wire.OptDSS
		seg.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: l.b.conn.Info().NextDSN, SSN: l.b.relSSN()}
	})
	require.Equal(t, reason.FallbackNone, l.a.conn.Fallback())
	require.EqualValues(t, 1, l.a.conn.Info().Stats.FallbacksFailed)
	require.Len(t, l.a.resets(0), 1)
}

// strip makes a box take the DSS from what an end sends on a path.
func (l *lab) strip(path int, from *end) {
	l.paths[path].box = func(e *end, seg *wire.Segment) bool {
		if e == from && seg.PayloadLen() > 0 {
			seg.Has &^= wire.OptDSS
		}
		return true
	}
}
