package mpconn

import (
	"math/bits"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/scheduler"
)

// schedule gives one range to the subflows that the scheduler picks and
// reports whether it gave anything. It remembers a fruitless try until the
// next input.
func (c *Conn) schedule(now mono.Time) bool {
	if c.snd.idle {
		return false
	}
	if lo, hi, ok := c.dueAgain(); ok && c.assign(now, scheduler.Lost, lo, hi) {
		return true
	}
	c.snd.full = false
	if lo, hi := c.snd.unsent(0); c.worthAny(lo, hi) {
		if c.assign(now, scheduler.Fresh, lo, hi) {
			return true
		}
		c.snd.full = c.full()
	} else if c.spare() {
		if !c.isCalm(now) && c.assign(now, scheduler.Spare, c.snd.una, c.snd.nxt) {
			return true
		}
		for _, f := range c.viewFlows {
			f.tcp.Room(now, 0) // nothing new waits
		}
	}
	c.snd.idle = true
	c.setBlocked(now)
	return false
}

// worthAny reports whether [lo, hi), which was never sent, is worth a segment of
// some flow.
func (c *Conn) worthAny(lo, hi uint64) bool {
	if lo >= hi {
		return false
	}
	for _, f := range c.flows {
		if f.usable() && c.snd.worth(int(hi-lo), hi, f.tcp) > 0 {
			return true
		}
	}
	return false
}

// full reports whether the windows of all flows in the view are in use, so that
// more bytes to send make no difference.
func (c *Conn) full() bool {
	for _, f := range c.viewFlows {
		if !f.tcp.Full() {
			return false
		}
	}
	return len(c.viewFlows) > 0
}

// spare reports whether the scheduler is asked about repeating bytes: not while new
// ones are about to come.
func (c *Conn) spare() bool {
	if c.mode != modeMPTCP || c.snd.una >= c.snd.nxt || c.snd.isCorked() {
		return false
	}
	n := 0
	for _, f := range c.flows {
		if f.usable() {
			n++
		}
	}
	return n > 1
}

// isCalm reports whether the scheduler has just said, about new bytes, for how long
// nothing is to be repeated, and sees to it that it is asked again then.
func (c *Conn) isCalm(now mono.Time) bool {
	if c.look == nil || c.view.Ask != scheduler.Fresh || c.view.Now != now.Duration() || c.calm <= now {
		return false
	}
	c.timers.Set(timerSchedule, c.calm)
	return true
}

// assign asks the scheduler about [lo, hi) and obeys.
func (c *Conn) assign(now mono.Time, ask scheduler.Ask, lo, hi uint64) bool {
	if !c.fillView(now, ask, lo, hi) {
		return false
	}
	d := c.pick()
	if c.calm = 0; d.Send != 0 {
		c.calm = mono.Time(d.Until)
	}
	c.penalise(d.Penalise)
	if c.obey(now, d, lo, hi) {
		return true
	}
	if ask == scheduler.Spare {
		if again := mono.Time(d.Until); again > now {
			c.timers.Set(timerSchedule, again)
		}
		return false
	}
	if !c.heldTooLong(now, d.Until) {
		return false
	}
	if d = scheduler.LeastRTT(&c.view); d.Send == 0 {
		return false
	}
	d.Reason = scheduler.ReasonForced
	c.decided(d)
	return c.obey(now, d, lo, hi)
}

func (c *Conn) pick() scheduler.Decision {
	d := c.sched.Pick(&c.view)
	c.decided(d)
	return d
}

func (c *Conn) decided(d scheduler.Decision) {
	if c.onDecision != nil {
		c.onDecision(&c.view, d)
	}
}

// penalise halves the windows of a set of flows.
func (c *Conn) penalise(set uint64) {
	for ; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); i < len(c.viewFlows) {
			c.viewFlows[i].tcp.Penalise()
		}
	}
}

// heldTooLong reports whether the scheduler must not wait any longer: no event
// is on its way, since nothing is in flight on a subflow that answers, and it
// has named no time, or waited for a retransmission timeout. Otherwise it
// makes sure that the scheduler is asked again.
func (c *Conn) heldTooLong(now mono.Time, until time.Duration) bool {
	again := mono.Time(until)
	rto := time.Duration(0)
	for i, f := range c.viewFlows {
		s := &c.view.Subflows[i]
		if !s.Stale && s.InFlight+s.Queued > 0 {
			if c.snd.heldAt = 0; again > now {
				c.timers.Set(timerSchedule, again)
			}
			return false
		}
		if r := f.tcp.RTO(); rto == 0 || r < rto {
			rto = r
		}
	}
	if !c.snd.heldAt.Set() {
		c.snd.heldAt = now
	}
	limit := c.snd.heldAt.Add(rto)
	if again <= now || limit <= now {
		return true
	}
	c.timers.Set(timerSchedule, min(again, limit))
	return false
}

// setBlocked runs the persist timers of the subflows while data waits behind
// a closed window with nothing in flight that would bring news of it.
func (c *Conn) setBlocked(now mono.Time) {
	waiting := c.snd.q.End() > c.snd.nxt || c.snd.reinject.Len() > 0
	if !waiting && !c.snd.waited {
		return
	}
	c.snd.waited = waiting
	for _, f := range c.flows {
		if f.usable() {
			f.tcp.SetBlocked(now, waiting)
		}
	}
}
