package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// failure is what a subflow has to say, and to hear, about a DSS checksum that
// did not hold.
type failure struct {
	dsn     seq.DSN // where the data begins that is not to be trusted
	onReset bool    // our RST says so
	due     bool    // an ACK must say so
	waiting bool    // the peer's answer to that is not in
	noticed bool    // it was we who found the checksum wrong
	alone   bool    // our infinite mapping of its first byte waits for an ACK
	tries   int
	line    uint64 // if lined: see lineOf
	lined   bool
	retry   mono.Time // when to say it again
}

const (
	// maxFails bounds how often MP_FAIL is sent without an answer.
	maxFails = 6
	// roomFail holds MP_FAIL beside a DATA_ACK of 8 bytes or an infinite
	// mapping with a DSN of 4.
	roomFail = 28
)

// checksumFailed acts on a mapping whose checksum did not hold.
//
// RFC 8684, Section 3.7: with several subflows "the affected subflow must be
// immediately closed with a RST that includes an MP_FAIL option"; "if a
// receiver identifies a checksum failure when there is only one path, it will
// send back an MP_FAIL option on the subflow-level ACK"; if the data is not
// contiguous, "the receiver MUST close the subflow with a RST with MP_FAIL."
func (c *Conn) checksumFailed(now mono.Time, f *flow, m *mapping) {
	c.stats.ChecksumErrors++
	fail := &f.inTrouble().fail
	fail.dsn, fail.noticed = c.rcv.dsn(m.data), true
	if !c.canRevert(f) {
		c.failByReset(now, f)
		return
	}
	c.stopJoins(now, f)
	fail.due, fail.waiting = true, true
}

// failByReset closes a subflow with a RST that carries MP_FAIL.
func (c *Conn) failByReset(now mono.Time, f *flow) {
	fail := &f.inTrouble().fail
	fail.onReset, fail.waiting, fail.due, fail.retry = true, false, false, 0
	if fail.noticed {
		c.oddity().ChecksumResets++
	}
	c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMiddlebox)
}

// handleFail acts on an MP_FAIL that came on an ACK.
//
// RFC 8684, Section 3.7: "the receiver of an MP_FAIL MUST also respond with an
// MP_FAIL in the reverse direction and entirely revert to a regular TCP
// session."
func (c *Conn) handleFail(now mono.Time, f *flow, seg *wire.Segment) {
	if f.fail.waiting {
		// The answer: the peer's data goes on where ours was trusted last.
		c.fallBack(now, f, reason.FallbackChecksum)
		return
	}
	at := c.snd.place(uint64(seg.FailDSN), true, c.snd.una)
	if at < int64(c.snd.una) || uint64(at) > c.snd.nxt || f.phase != phaseUp || f.failed != reason.CloseNone {
		c.drop(reason.DropBadAck)
		return
	}
	f.inTrouble().fail.dsn = c.rcv.dsn(c.rcv.ack())
	if !c.canRevert(f) {
		c.failByReset(now, f)
		c.resend(uint64(at), c.snd.nxt, f)
		return
	}
	c.fallBack(now, f, reason.FallbackChecksum)
	f.fail.due = true
}

// handleFailReset acts on an MP_FAIL that came on a RST.
//
// RFC 8684, Section 3.7: "Failed data MUST NOT be DATA_ACKed and so will be
// retransmitted on other subflows".
func (c *Conn) handleFailReset(f *flow, seg *wire.Segment) {
	at := c.snd.place(uint64(seg.FailDSN), true, c.snd.una)
	if at < int64(c.snd.una) || uint64(at) > c.snd.nxt {
		c.drop(reason.DropBadAck)
		return
	}
	c.single = c.onlyPath(f)
	c.resend(uint64(at), c.snd.nxt, f)
}

// answerFail repeats the answer to an MP_FAIL after the fallback: the one
// before was lost.
func (f *flow) answerFail() {
	if !f.fail.noticed && f.fail.tries < maxFails {
		fail := &f.inTrouble().fail
		fail.tries++
		fail.due = true
	}
}

// failing reports whether the connection waits for the answer to an MP_FAIL, or
// for that to an infinite mapping.
// From then on it takes no subflow and sends nothing out of order, so that
// falling back stays possible.
func (c *Conn) failing() bool {
	for _, f := range c.flows {
		if f.fail.waiting || f.fail.alone {
			return true
		}
	}
	return false
}

// canRevert reports whether the connection may go on as plain TCP on a flow.
func (c *Conn) canRevert(f *flow) bool {
	return !c.cfg.RequireMPTCP && c.onlyPath(f) && c.sendsInLine(f) && c.receivesInLine(f)
}

// onlyPath reports whether no other subflow can carry data, for either side:
// the peer of a joiner that waits for the fourth ACK may send already.
func (c *Conn) onlyPath(f *flow) bool {
	for _, g := range c.flows {
		if g != f && g.phase != phaseOpening {
			return false
		}
	}
	return f.phase == phaseUp
}

// stopJoins ends the joins under way.
//
// RFC 8684, Section 3.7: "all MPTCP subflows will have to be terminated except
// one." Deciding to fall back and this happen within one call, and from then
// on Joinable is false: no subflow can come up in between.
func (c *Conn) stopJoins(now mono.Time, f *flow) {
	for _, g := range c.flows {
		if g != f && g.failed == reason.CloseNone {
			c.abortFlow(now, g, reason.CloseCommand, reason.ResetMPTCP)
		}
	}
}

// sendsInLine reports whether what a flow carries, from the first byte that
// the peer may lack, is our stream in order.
func (c *Conn) sendsInLine(f *flow) bool {
	c.snd.reinject.Remove(0, c.snd.una)
	if c.snd.reinject.Len() > 0 || c.snd.holes.Len() > 0 {
		return false
	}
	if c.snd.una >= c.snd.nxt {
		return f.runEnd == c.snd.nxt || f.tcp.Acked() == f.tcp.Pushed()
	}
	return f.runEnd == c.snd.nxt && f.run <= c.snd.una
}

// receivesInLine reports whether what comes on a flow is, as far as mappings
// tell, the peer's stream in order, with nothing received beyond a hole.
func (c *Conn) receivesInLine(f *flow) bool {
	delta := c.lineOf(f)
	for i := range f.in.all() {
		m := &f.in.all()[i]
		if m.end() > f.heldFrom() && m.data-m.off != delta {
			return false
		}
	}
	return c.rcv.q.Buffered() == c.rcv.q.Readable()
}

// pollFail builds the ACK that carries MP_FAIL; that of the side that answers
// brings the infinite mapping along.
func (c *Conn) pollFail(now mono.Time, seg *wire.Segment) bool {
	for _, f := range c.flows {
		if !f.fail.due || f.phase != phaseUp || !c.forceACK(now, f, seg, roomFail) {
			continue
		}
		f.fail.due = false
		if f.fail.waiting {
			f.fail.retry = now.Add(f.failInterval())
			f.fail.tries++
			c.putDataAck(f, seg)
		} else {
			c.putInfinite(f, seg)
			seg.DSS.Flags &^= wire.DSSDSN8
			seg.DSS.DSN &= 1<<32 - 1
		}
		seg.Has |= wire.OptMPFail
		seg.FailDSN = f.fail.dsn
		return true
	}
	return false
}

// failInterval returns the wait for the answer to an MP_FAIL: short, so that
// some are sent before the peer's data-level timer sends the bytes again, which
// would then not be contiguous any more.
func (f *flow) failInterval() time.Duration {
	d := f.tcp.RTO()
	if rtt := f.tcp.Snapshot().SRTT; rtt > 0 {
		d = min(d, max(2*rtt, 10*time.Millisecond))
	}
	return d << (f.fail.tries / 2)
}

// retryFails repeats an MP_FAIL that stayed unanswered, and closes the subflow
// in the end.
func (c *Conn) retryFails(now mono.Time) {
	for _, f := range c.flows {
		if !f.fail.retry.Reached(now) {
			continue
		}
		f.fail.retry = 0
		if f.fail.tries >= maxFails {
			c.failByReset(now, f)
			continue
		}
		f.fail.due = true
	}
}
