package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// reinject marks a range that was sent before as due on another subflow.
func (c *Conn) reinject(lo, hi uint64) {
	lo = max(lo, c.snd.una)
	if lo >= hi || c.mode != modeMPTCP {
		return
	}
	c.snd.reinject.Add(lo, hi)
	for r := range c.snd.holes.All {
		c.snd.reinject.Remove(r.Lo, r.Hi)
	}
	c.snd.idle = false
}

// resend marks as due everything in a range of data offsets that the peer may
// lack and no live flow, but for one that is being lost, carries.
func (c *Conn) resend(from, to uint64, lost *flow) {
	var gone interval.Set
	gone.Add(max(from, c.snd.una), min(to, c.snd.nxt))
	for _, g := range c.flows {
		if g == lost || g.failed != reason.CloseNone {
			continue
		}
		for i := range g.out.all() {
			m := &g.out.all()[i]
			gone.Remove(m.data, m.data+uint64(m.n))
		}
	}
	for r := range gone.All {
		c.reinject(r.Lo, r.Hi)
	}
}

// dueAgain returns the first range to reinject.
func (c *Conn) dueAgain() (lo, hi uint64, ok bool) {
	due := &c.snd.reinject
	if due.Len() > 0 {
		due.Remove(0, c.snd.una)
	}
	if due.Len() == 0 {
		return 0, 0, false
	}
	r := due.At(0)
	return r.Lo, r.Hi, true
}

// flowTimeout acts on a retransmission timeout: the path may be dead, so what
// it carries goes out on the others as well, and nothing new goes out on it
// until it answers.
//
// RFC 8684, Section 3.3.6: data may be retransmitted on a different subflow;
// the subflow it was first sent on must deliver it nevertheless.
func (c *Conn) flowTimeout(now mono.Time, f *flow) {
	first := !f.stale
	f.stale = true
	if first {
		c.oddity().Stale++
	}
	if c.mode == modeMPTCP {
		f.inTrouble().silence.begin(now)
	}
	if !first || c.mode == modePlain || !c.otherUsable(f) {
		return
	}
	for _, m := range f.out.all() {
		c.reinject(m.data, m.data+uint64(m.n))
	}
}

// otherUsable reports whether a flow other than f could carry data.
func (c *Conn) otherUsable(f *flow) bool {
	for _, g := range c.flows {
		if g != f && g.usable() && !g.stale {
			return true
		}
	}
	return false
}

// armDataRexmit starts the data-level retransmission timer if something waits
// for a DATA_ACK and it is not running.
//
// RFC 8684, Section 3.3.6: data is kept, and retransmitted in the end, until
// the DATA_ACK arrives, whatever subflows acknowledge.
func (c *Conn) armDataRexmit(now mono.Time) {
	if c.mode != modeMPTCP || c.timers.At(timerDataRexmit).Set() {
		return
	}
	if c.snd.una < c.snd.nxt || c.snd.finSent && !c.snd.finAcked() {
		c.timers.Set(timerDataRexmit, now.Add(c.dataRTO()))
	}
}

// maxDataRTO bounds the data-level timeout, as MaxRTO does on a subflow.
const maxDataRTO = 60 * time.Second

// dataRTO is the slowest timeout of the subflows that have data in flight, so
// that they get the first chance to recover, or of all if none has; backed off.
func (c *Conn) dataRTO() time.Duration {
	var rto, idle time.Duration
	for _, f := range c.flows {
		switch {
		case f.phase != phaseUp:
		case f.out.empty():
			idle = max(idle, f.tcp.RTO())
		default:
			rto = max(rto, f.tcp.RTO())
		}
	}
	if rto == 0 {
		rto = idle
	}
	if rto == 0 {
		rto = time.Second
	}
	return min(rto<<min(c.backoff, 6), maxDataRTO)
}

// dataRexmitBytes is how much the data-level timer sends again at a time:
// about an initial window.
const dataRexmitBytes = 14600

// maxDataTimeouts is how often in a row the data-level timer may go off, with
// subflows that acknowledge everything, before the peer is given up: as often
// as a subflow sends data again.
const maxDataTimeouts = 15

// dataTimeout acts on the data-level timer: the first bytes without DATA_ACK
// go out again, unless a healthy subflow still has them in flight.
func (c *Conn) dataTimeout(now mono.Time) {
	if c.failing() {
		c.armDataRexmit(now)
		return
	}
	if f := c.flow(0); f != nil && f.bare > 0 && !c.added && !c.inFlight(c.snd.una) {
		c.timeoutOfBare(now, f)
		return
	}
	if c.snd.holes.Len() > 0 && c.snd.holes.At(0).Lo <= c.snd.una {
		// The peer has what was sent and waits for bytes that the scheduler has
		// left for later.
		c.armDataRexmit(now)
		return
	}
	if c.askDataAck(now) {
		return
	}
	c.backoff++
	switch lo := c.snd.una; {
	case c.backoff > maxDataTimeouts && !c.inFlight(lo):
		c.abort(now, reason.CloseTimeout)
		return
	case lo < c.snd.lostTo:
		// A subflow died: what it had acknowledged may never have reached the
		// peer's connection, and its end is known, so that there is no reason to
		// feel the way.
		c.resend(lo, c.snd.lostTo, nil)
		c.snd.lostTo = 0
	case lo < c.snd.nxt:
		if !c.inFlight(lo) {
			c.reinject(lo, min(lo+dataRexmitBytes, c.snd.nxt))
		}
	case c.snd.finSent && !c.snd.finAcked():
		c.snd.finAgain = !c.finInFlight()
	}
	c.armDataRexmit(now)
}

// timeoutOfBare acts on the data-level timer where the peer acknowledges like
// plain TCP. Before anything is sent out of the subflow's order, which plain TCP
// would take for new bytes, it is still possible to follow it, but not while a
// join may have come up at the peer.
func (c *Conn) timeoutOfBare(now mono.Time, f *flow) {
	if c.mayFallBack(f) {
		c.followBare(now, f)
		return
	}
	c.armDataRexmit(now)
}

// finInFlight reports whether a FIN that has the DATA_FIN with it is on its way, and
// will be sent again if need be.
func (c *Conn) finInFlight() bool {
	if !c.snd.withFIN {
		return false
	}
	for _, f := range c.flows {
		if f.phase == phaseUp && f.leaving && !f.stale && !f.tcp.FINAcked() {
			return true
		}
	}
	return false
}

// inFlight reports whether a flow carries a byte that no other is a better
// bet for.
func (c *Conn) inFlight(data uint64) bool {
	for _, f := range c.flows {
		if f.phase == phaseUp && f.out.carries(data) && (!f.stale || !c.otherUsable(f)) {
			return true
		}
	}
	return false
}
