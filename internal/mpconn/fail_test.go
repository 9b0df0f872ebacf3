package mpconn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// summed returns a lab with DSS checksums whose connection is proven.
func summed(t testing.TB, seed uint64, paths int) *lab {
	l := newLab(t, seed, paths)
	l.a.cfg.Checksum = true
	l.a.tolerate, l.b.tolerate = true, true
	l.connect()
	l.prove()
	return l
}

// spoil alters the n-th segment with payload that an end sends on a path.
func (l *lab) spoil(path int, from *end, n int) *bool {
	hit := new(bool)
	l.paths[path].box = func(e *end, seg *wire.Segment) bool {
		if e != from || seg.PayloadLen() < 100 || *hit {
			return true
		}
		if n--; n < 0 {
			*hit = true
			seg.Payload[0][50] ^= 0x40
		}
		return true
	}
	return hit
}

// wantBare checks that no MPTCP option was sent from a place in the list on.
func wantBare(t testing.TB, e *end, from int) {
	t.Helper()
	for _, s := range e.sent[from:] {
		require.Zero(t, s.Has&wire.OptMPTCP, "%s: %s", e.name, s.String())
	}
}

// RFC 8684, Section 3.7: a checksum that fails on the only subflow is told by
// MP_FAIL on an ACK, answered by MP_FAIL and an infinite mapping from the last
// DATA_ACKed point; both go on as plain TCP, with the altered byte in its
// place, in both directions.
func TestChecksumFailureOnlySubflow(t *testing.T) {
	for _, forward := range []bool{true, false} {
		t.Run(fmt.Sprint(forward), func(t *testing.T) {
			l := summed(t, 1, 1)
			from, to := l.a, l.b
			if !forward {
				from, to = to, from
			}
			hit := l.spoil(0, from, 20)
			l.transfer(from, to, 300_000, time.Minute, nil)
			require.True(t, *hit)
			require.Equal(t, 1, to.wrong, "the byte that was altered, and no other")
			require.EqualValues(t, 1, to.conn.Info().Stats.ChecksumErrors)
			fail, answer := to.carrying(wire.OptMPFail), from.carrying(wire.OptMPFail)
			require.Len(t, fail, 1)
			require.Len(t, answer, 1)
			wantInfinite(t, fail[0], from)
			require.NotZero(t, answer[0].Flags&wire.ACK)
			for _, e := range []*end{from, to} {
				require.Equal(t, reason.FallbackChecksum, e.conn.Fallback(), e.name)
				for _, s := range e.sent {
					require.Zero(t, s.Flags&wire.RST)
				}
			}
			l.idle(time.Second)
			a, b := len(l.a.sent), len(l.b.sent)
			l.transfer(l.a, l.b, 100_000, time.Minute, nil)
			l.transfer(l.b, l.a, 100_000, time.Minute, nil)
			// The side that found the failure may still owe its infinite mapping.
			require.LessOrEqual(t, len(infinites(to.sent[min(a, b):])), 1)
			l.idle(time.Second)
			a, b = len(l.a.sent), len(l.b.sent)
			l.transfer(l.a, l.b, 100_000, time.Minute, nil)
			wantBare(t, l.a, a)
			wantBare(t, l.b, b)
			l.a.closeWrite()
			l.b.closeWrite()
			l.wantClosed(reason.CloseDone, reason.CloseDone)
		})
	}
}

// infinites returns the infinite mappings among segments.
func infinites(sent []wire.Segment) []wire.Segment {
	var out []wire.Segment
	for _, s := range sent {
		if s.Has&wire.OptDSS != 0 && s.DSS.Flags&wire.DSSMap != 0 && s.DSS.Len == 0 {
			out = append(out, s)
		}
	}
	return out
}

// wantInfinite checks the infinite mappings of one side against the MP_FAIL
// that called for them: they begin at what was DATA_ACKed, checksum 0.
func wantInfinite(t testing.TB, fail wire.Segment, from *end) {
	t.Helper()
	inf := infinites(from.sent)
	require.NotEmpty(t, inf)
	require.NotZero(t, inf[0].Has&wire.OptMPFail, "the answer brings it along")
	require.NotZero(t, fail.Has&wire.OptDSS)
	require.EqualValues(t, fail.FailDSN, fail.DSS.Ack, "what is not trusted begins where DATA_ACKs end")
	withData := 0
	for _, s := range inf {
		require.True(t, s.DSS.HasChecksum)
		require.Zero(t, s.DSS.Checksum)
		require.Equal(t, uint32(fail.FailDSN), uint32(s.DSS.DSN))
		require.Equal(t, inf[0].DSS.SSN, s.DSS.SSN)
		if s.DSS.Flags&wire.DSSDSN8 != 0 {
			withData++
		}
	}
	require.LessOrEqual(t, withData, 1, "one segment only carries it")
}

// The failed bytes come out of the subflow also when the sender has nothing
// more to send, and when MP_FAIL or its answer are lost.
func TestChecksumFailureLastBytes(t *testing.T) {
	for lost := range 4 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			l := summed(t, 1, 1)
			hit, n := false, 0
			l.paths[0].box = func(e *end, seg *wire.Segment) bool {
				if e == l.a && seg.PayloadLen() > 100 && !hit {
					hit = true
					seg.Payload[0][50] ^= 0x40
				}
				if seg.Has&wire.OptMPFail != 0 {
					n++
					return n > lost
				}
				return true
			}
			l.transfer(l.a, l.b, 500, time.Minute, nil)
			require.Equal(t, 1, l.b.wrong)
			l.a.closeWrite()
			l.b.closeWrite()
			l.wantClosed(reason.CloseDone, reason.CloseDone)
		})
	}
}

// An MP_FAIL that nobody answers ends the subflow in the end, with a RST.
func TestChecksumFailureUnanswered(t *testing.T) {
	l := summed(t, 1, 1)
	hit := false
	l.paths[0].box = func(e *end, seg *wire.Segment) bool {
		if e == l.a && seg.PayloadLen() > 100 && !hit {
			hit = true
			seg.Payload[0][50] ^= 0x40
		}
		seg.Has &^= wire.OptMPFail
		return true
	}
	l.a.write(500)
	l.run("reset", 5*time.Minute, func() bool { return l.b.count(EventSubflowLost) == 1 })
	require.Zero(t, l.b.wrong)
	require.Zero(t, l.b.conn.Readable())
	sent := l.b.carrying(wire.OptMPFail)
	require.Len(t, sent, maxFails+1)
	require.True(t, sent[maxFails].Flags.Has(wire.RST))
}

// Checksums that fail in both directions at once.
func TestChecksumFailureBothWays(t *testing.T) {
	l := summed(t, 3, 1)
	var hitA, hitB bool
	l.paths[0].box = func(e *end, seg *wire.Segment) bool {
		hit := &hitA
		if e == l.b {
			hit = &hitB
		}
		if seg.PayloadLen() > 100 && !*hit {
			*hit = true
			seg.Payload[0][50] ^= 0x40
		}
		return true
	}
	l.a.write(20_000)
	l.b.write(20_000)
	l.run("both", time.Minute, func() bool {
		l.a.readAll()
		l.b.readAll()
		return l.a.read == l.b.wrote && l.b.read == l.a.wrote
	})
	require.Equal(t, 1, l.a.wrong)
	require.Equal(t, 1, l.b.wrong)
}

// RFC 8684, Section 3.7: data that is not contiguous does not allow the
// infinite mapping on the only subflow; that is closed with a RST with MP_FAIL,
// and a new one brings the data.
func TestChecksumFailureNotContiguous(t *testing.T) {
	l := summed(t, 4, 2)
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.paths[1].down = true
	l.a.write(60_000)
	l.idle(60 * time.Millisecond)
	require.NotZero(t, l.b.conn.Info().OutOfOrder, "a hole of what went the other way")
	hit := l.spoil(0, l.a, 0)
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
		e.pump()
	}
	l.paths[1].down = false
	l.run("reset", 10*time.Second, func() bool { return l.a.count(EventSubflowLost) == 2 })
	require.True(t, *hit)
	sent := l.b.carrying(wire.OptMPFail)
	require.Len(t, sent, 1)
	require.True(t, sent[0].Flags.Has(wire.RST))
	require.Equal(t, reason.ResetMiddlebox, sent[0].TCPRst.Reason)
	l.join(1)
	l.run("data", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	require.Zero(t, l.b.wrong)
	require.Equal(t, reason.FallbackInfinite, l.b.conn.Fallback())
}

// The same where it is the side that finds the failure whose own data is not
// contiguous. Guard: sendsInLine in canRevert.
func TestChecksumFailureSendingOutOfLine(t *testing.T) {
	l := summed(t, 4, 2)
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.paths[1].down = true
	l.b.write(1000)
	l.a.write(60_000)
	l.idle(60 * time.Millisecond)
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
	}
	hit := l.spoil(0, l.b, 0)
	l.b.write(1000)
	l.a.pump()
	l.run("failure", time.Second, func() bool { return len(l.a.carrying(wire.OptMPFail)) > 0 })
	require.True(t, *hit)
	require.True(t, l.a.carrying(wire.OptMPFail)[0].Flags.Has(wire.RST))
	require.Equal(t, reason.FallbackNone, l.a.conn.Fallback())
}

// Who waits for the answer to an MP_FAIL takes nothing else for it. Guard: waiting
// in checkProof.
func TestBareSegmentsAnswerNoMPFail(t *testing.T) {
	l := newLab(t, 1, 1)
	l.a.cfg.Checksum = true
	l.connect()
	l.a.write(1)
	l.run("first", time.Second, func() bool { l.b.readAll(); return l.b.read == 1 })
	l.idle(100 * time.Millisecond)
	hit := false
	l.paths[0].box = func(e *end, seg *wire.Segment) bool {
		switch {
		case e != l.a:
		case hit:
			seg.Has &^= wire.OptMPTCP
		case seg.PayloadLen() > 100:
			hit = true
			seg.Payload[0][50] ^= 0x40
		}
		return true
	}
	l.a.write(500)
	l.run("failure", time.Second, l.b.conn.failing)
	l.b.write(9000)
	l.idle(50 * time.Millisecond)
	require.True(t, l.b.conn.failing())
	require.Equal(t, reason.FallbackNone, l.b.conn.Fallback())
}

// Who waits for the answer to an MP_FAIL sends nothing again meanwhile, which
// would put its stream out of line. Guard: failing in dataTimeout.
func TestNothingIsSentAgainWhileFailing(t *testing.T) {
	l := summed(t, 2, 1)
	hit := false
	l.paths[0].box = func(e *end, seg *wire.Segment) bool {
		if e == l.a && seg.PayloadLen() > 100 && !hit {
			hit = true
			seg.Payload[0][50] ^= 0x40
		}
		if e == l.b {
			seg.Has &^= wire.OptMPFail
			if seg.PayloadLen() > 0 {
				seg.Has &^= wire.OptDSS // so that a has no place for it
			}
		}
		return true
	}
	l.b.write(1000)
	l.a.write(500)
	l.run("failure", time.Second, l.b.conn.failing)
	for l.b.conn.failing() {
		require.Zero(t, l.b.conn.Info().Stats.BytesReinjected)
		require.True(t, l.step())
	}
	require.Greater(t, len(l.b.carrying(wire.OptMPFail)), 2)
}

// RFC 8684, Section 3.7, as sender: data from the MP_FAIL's number on is sent
// again elsewhere, also what the subflow acknowledged before it was reset.
func TestMPFailOnReset(t *testing.T) {
	l := summed(t, 5, 2)
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	hit := l.spoil(1, l.a, 5)
	start := l.now
	l.transfer(l.a, l.b, 400_000, time.Minute, nil)
	require.True(t, *hit)
	require.Zero(t, l.b.wrong)
	require.Less(t, l.now.Sub(start), 200*time.Millisecond, "no timer had to fire")
}

// RFC 8684, Section 3.7, as sender: an MP_FAIL on an ACK is for a connection
// with one subflow. Where there are several, its subflow is closed by a RST with
// MP_FAIL, nothing becomes plain TCP, and what went there from its number on is
// sent elsewhere, also if the ACK acknowledged it. Guards: canRevert in
// handleFail, and resend there and in handleFailReset.
func TestMPFailWithSeveralSubflows(t *testing.T) {
	for _, onReset := range []bool{false, true} {
		t.Run(fmt.Sprint(onReset), func(t *testing.T) { mpFailWithSeveralSubflows(t, onReset) })
	}
}

func mpFailWithSeveralSubflows(t *testing.T, onReset bool) {
	l := summed(t, 8, 2)
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	var lost *wire.Segment // the first with data on path 1, where none passes
	l.paths[1].box = func(e *end, seg *wire.Segment) bool {
		if e == l.a && seg.PayloadLen() > 0 && lost == nil {
			cp := *seg
			lost = &cp
		}
		return e == l.b || seg.PayloadLen() == 0
	}
	l.a.write(60_000)
	l.run("data on path 1", time.Second, func() bool { return lost != nil })
	// The peer acknowledges it on the subflow, but not its data.
	fail := wire.Segment{Src: lost.Dst, Dst: lost.Src, Header: wire.Header{
		Seq: lost.Ack, Ack: lost.Seq.Add(lost.PayloadLen()), Flags: wire.ACK, Wnd: lost.Wnd,
	}}
	fail.Has = wire.OptMPFail | wire.OptDSS | lost.Has&wire.OptTimestamps
	fail.TSVal, fail.TSEcr = lost.TSEcr, lost.TSVal
	fail.FailDSN = seq.DSN(lost.DSS.DSN)
	fail.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: lost.DSS.DSN}
	if onReset {
		ack := fail
		ack.Has &^= wire.OptMPFail
		l.a.conn.HandleSegment(l.now, l.a.tuples[[2]netip.AddrPort{fail.Dst, fail.Src}], &ack)
		fail.Flags |= wire.RST
	}
	l.a.conn.HandleSegment(l.now, l.a.tuples[[2]netip.AddrPort{fail.Dst, fail.Src}], &fail)
	l.a.pump()
	start := l.now
	rst := l.a.resets(1)
	if onReset {
		require.Empty(t, rst)
	} else {
		require.Len(t, rst, 1)
		require.NotZero(t, rst[0].Has&wire.OptMPFail)
	}
	l.run("data again", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	require.Less(t, l.now.Sub(start), 150*time.Millisecond, "no timer had to fire")
	require.Empty(t, l.a.resets(0))
	require.Zero(t, l.b.wrong)
	for _, e := range []*end{l.a, l.b} {
		require.Equal(t, reason.FallbackNone, e.conn.Fallback(), e.name)
		require.Empty(t, infinites(e.sent), e.name)
	}
}

// A join at any moment of a failure never leaves a connection that is plain
// TCP with two subflows, or half of it plain, and no altered byte is read
// while it is MPTCP. Guards: stopJoins, when a checksum fails and when the peer
// says so, and failing in Joinable.
func TestChecksumFailureMeetsJoin(t *testing.T) {
	for step := range 60 {
		for _, forward := range []bool{true, false} {
			l := summed(t, 6, 2)
			l.paths[1].delay = 7 * time.Millisecond
			from, to := l.a, l.b
			if !forward {
				from, to = to, from
			}
			l.spoil(0, from, 3)
			opened, goal := false, from.wrote+60_000
			limit := l.now.Add(time.Duration(step) * time.Millisecond)
			l.run("transfer", 2*time.Minute, func() bool {
				if !opened && l.now >= limit {
					opened = true
					_, _ = l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(1)})
					l.a.pump()
				}
				if from.wrote < goal {
					from.write(goal - from.wrote)
				}
				to.readAll()
				for _, e := range []*end{l.a, l.b} {
					if e.conn.failing() {
						require.False(t, e.conn.Joinable())
						for _, f := range e.conn.flows {
							require.True(t, f.id == 0 || f.failed != reason.CloseNone, "a join goes on")
						}
					}
					if e.conn.Fallback() != reason.FallbackNone {
						require.LessOrEqual(t, e.conn.Info().Subflows, 1)
						require.False(t, e.conn.Joinable())
					}
				}
				return to.read == goal
			})
			l.idle(time.Second)
			require.Equal(t, l.a.conn.Fallback(), l.b.conn.Fallback(), "step %d", step)
		}
	}
}

// A connection that must be MPTCP does not hand out altered bytes: the subflow
// is reset, and the connection with it if there is no other. Lost options end
// it.
func TestRequireMPTCP(t *testing.T) {
	l := newLab(t, 7, 2)
	l.a.cfg.Checksum, l.b.cfg.RequireMPTCP = true, true
	l.connect()
	l.prove()
	hit := l.spoil(0, l.a, 2)
	l.a.write(50_000)
	l.run("reset", 10*time.Second, func() bool { l.b.readAll(); return l.a.count(EventSubflowLost) == 1 })
	require.True(t, *hit)
	l.run("end", 5*time.Minute, func() bool { return l.a.conn.Closed() && l.b.conn.Closed() })
	require.Zero(t, l.b.wrong)
	require.Equal(t, reason.FallbackNone, l.b.conn.Fallback())
	require.Len(t, l.b.carrying(wire.OptMPFail), 1)
	require.Len(t, l.b.resets(0), 1)

	l = newLab(t, 7, 1)
	l.a.cfg.RequireMPTCP = true
	l.connect()
	l.paths[0].box = func(_ *end, seg *wire.Segment) bool { seg.Has &^= wire.OptMPTCP; return true }
	l.a.write(50_000)
	l.run("end", time.Minute, func() bool { return l.a.conn.Closed() })
	require.Equal(t, reason.FallbackNoDataACK, l.a.conn.Fallback())
	require.Equal(t, reason.CloseLocalReset, l.a.conn.Err())
}
