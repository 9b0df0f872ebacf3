package mpconn

import (
	"math/bits"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/scheduler"
)

// mappingSegments is how many full segments one mapping spans at most where
// the path takes no super-segments: enough to make scheduling cheap, little
// enough to let a policy interleave paths.
const mappingSegments = 16

// decisionSegments is how many super-segments one decision gives at most. Each has a
// mapping of its own.
const decisionSegments = 4

// look is how the scheduler saw the connection last.
type look struct {
	view      scheduler.View // reused by every pick
	viewFlows []*flow        // the flow behind each entry of view, which is up to date with flow.shown
	calm      mono.Time      // as the last decision about new bytes said, nothing is to be repeated before; 0 = it did not say

	// Where both begin.
	firstSubflow [1]scheduler.Subflow
	firstFlow    [1]*flow
}

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

// obey sends what was decided about [lo, hi), if that is possible.
func (c *Conn) obey(now mono.Time, d scheduler.Decision, lo, hi uint64) bool {
	if d.Send == 0 {
		return false
	}
	ask := c.view.Ask
	again := d.Again
	switch {
	case ask == scheduler.Lost:
	case ask == scheduler.Spare && !again:
		return false
	case again && (c.mode != modeMPTCP || len(c.viewFlows) < 2):
		return false // TCP knows no reinjection
	case again:
		lo, hi = c.sent(d.Offset)
	case d.Offset > 0 && len(c.viewFlows) > 1:
		lo, hi = c.snd.unsent(lo + uint64(d.Offset))
	}
	if lo >= hi {
		return false
	}
	n := int(hi - lo)
	if d.Bytes > 0 {
		n = min(n, d.Bytes)
	}
	sent := 0
	for i, f := range c.viewFlows {
		room := c.view.Subflows[i].Room
		if d.Queue {
			room = max(room, c.view.Subflows[i].QueueRoom)
		}
		m := n
		if ask == scheduler.Fresh && !again && lo+uint64(n) == hi {
			m = c.snd.worth(n, hi, f.tcp)
		}
		switch {
		case d.Send>>i&1 == 0 || room == 0:
			continue
		case again && ask != scheduler.Lost:
			m = f.out.lacks(lo, n)
		}
		if m == 0 {
			continue
		}
		repeat := again || ask == scheduler.Lost
		given := c.give(now, f, lo, m, room, repeat)
		if !repeat {
			given = c.giveMore(now, f, lo, m, room, given)
		}
		if c.placed != nil && given > 0 {
			c.placed(now, Placement{ID: f.id, Offset: lo, Len: given, Again: repeat, Reason: d.Reason})
		}
		sent = max(sent, given)
	}
	if sent == 0 {
		return false
	}
	switch {
	case ask == scheduler.Lost:
		c.snd.reinject.Remove(lo, lo+uint64(sent))
	case !again:
		c.snd.take(lo, lo+uint64(sent))
	}
	if ask != scheduler.Spare {
		c.snd.heldAt = 0
	}
	c.armDataRexmit(now)
	return true
}

// sent returns the range that was sent and begins skip bytes behind the first
// one without DATA_ACK.
func (c *Conn) sent(skip int64) (lo, hi uint64) {
	lo, hi = c.snd.una+uint64(max(skip, 0)), c.snd.nxt
	for r := range c.snd.holes.All {
		if r.Lo > lo {
			return lo, r.Lo
		}
		lo = max(lo, r.Hi)
	}
	return lo, hi
}

// giveMore goes on with a range of which given bytes are bound already, in full
// segments, as far as one decision goes.
func (c *Conn) giveMore(now mono.Time, f *flow, lo uint64, n, room, given int) int {
	mss, whole := f.tcp.MSS(), f.tcp.Largest()
	most := mappingSegments * mss
	if whole > mss {
		most = decisionSegments * whole
	}
	most = min(n, room, most)
	for most-given >= whole {
		given += c.give(now, f, lo+uint64(given), most-given, most-given, false)
	}
	return given
}

// give binds up to n bytes at lo to one flow and returns how many.
func (c *Conn) give(now mono.Time, f *flow, lo uint64, n, room int, again bool) int {
	mss := f.tcp.MSS()
	// The mapping in MP_CAPABLE belongs to one segment.
	single := f.join == nil && c.active && !c.joinable && c.mode == modeMPTCP && f.tcp.Pushed() == f.lead.out
	rider := c.boards(f)
	n = min(n, room, 1<<16-1)
	switch {
	case single || rider:
		n = min(n, mss)
	case n > mss:
		whole := f.tcp.Largest()
		n = min(n, max(whole, mappingSegments*mss))
		// The last packet of a super-segment may have fewer bytes than the others.
		if n > whole || lo+uint64(n) < c.snd.q.End() {
			n -= n % mss
		}
	}
	pushed := f.tcp.Pushed()
	m := c.bind(f, lo, n)
	if m.off == pushed {
		if rider {
			c.board(f, m)
		}
		f.tcp.Push(now, n)
	} else {
		f.tcp.Extend(now, n)
	}
	if again {
		f.reinjected += uint64(n)
		c.stats.BytesReinjected += uint64(n)
	}
	return n
}

// fillView shows the scheduler the flows that could carry [lo, hi). It
// reports whether any has room.
func (c *Conn) fillView(now mono.Time, ask scheduler.Ask, lo, hi uint64) bool {
	if c.look == nil {
		c.look = &look{view: scheduler.View{Holders: c.holders}}
		c.view.Subflows, c.viewFlows = c.firstSubflow[:0], c.firstFlow[:0]
	}
	v, s := &c.view, &c.snd
	v.Ask, v.Now = ask, now.Duration()
	v.Acked, v.Sent = int64(min(s.una, s.q.End())), int64(s.nxt)
	v.First, v.Run = int64(lo), int64(hi-lo)
	if ask == scheduler.Spare {
		v.First, v.Run = int64(s.nxt), 0
	}
	v.Unsent = int64(c.Unsent())
	v.Unacked = int64(s.nxt - min(s.una, s.nxt))
	v.SendWindow = int64(s.edge - min(s.nxt, s.edge))
	v.SendBuffer, v.BufferMax = int64(s.buffer.limit), int64(s.buffer.ceiling)
	v.FlowSize, v.Hint = c.flowSize, c.hint
	v.Carried = 0
	if !c.showFlows(now, lo, hi) {
		return false // the usual answer, which must cost little
	}
	if ask != scheduler.Fresh {
		for i, f := range c.viewFlows {
			if f.out.carries(lo) {
				v.Carried |= 1 << i
			}
		}
	}
	return true
}

// showFlows brings the flows of the view up to date: each decision costs only
// what has changed since the last one. It reports whether any has room for some
// of [lo, hi).
func (c *Conn) showFlows(now mono.Time, lo, hi uint64) (room bool) {
	v, n := &c.view, 0
	for _, f := range c.flows {
		if n == scheduler.MaxSubflows || !f.usable() {
			continue
		}
		if n == len(c.viewFlows) {
			v.Subflows, c.viewFlows = append(v.Subflows, scheduler.Subflow{}), append(c.viewFlows, nil)
		}
		s, waiting := &v.Subflows[n], int(hi-lo)
		if v.Ask == scheduler.Fresh {
			waiting = c.snd.worth(waiting, hi, f.tcp)
		}
		s.Room = f.tcp.Room(now, waiting)
		room = room || s.Room > 0
		if moves := f.tcp.Moves(); c.viewFlows[n] != f || f.shown != moves {
			c.viewFlows[n], f.shown = f, moves
			f.show(s)
		}
		s.Reach, s.Backup, s.Stale = int64(f.runEnd), f.standby(), f.stale
		n++
	}
	clear(c.viewFlows[n:])
	v.Subflows, c.viewFlows = v.Subflows[:n], c.viewFlows[:n]
	return room
}

// show tells what the scheduler sees of a flow, but for what showFlows does.
func (f *flow) show(to *scheduler.Subflow) {
	s := f.tcp.Snapshot()
	to.ID, to.SRTT, to.RTTVar, to.MinRTT = f.id, s.SRTT, s.RTTVar, s.MinRTT
	to.Cwnd, to.Ssthresh, to.InFlight, to.Queued = s.Cwnd, s.Ssthresh, s.InFlight, s.Queued
	to.QueueRoom, to.MSS = f.tcp.QueueRoom(), s.MSS
	to.PacingRate, to.DeliveryRate, to.LossRate = s.PacingRate, s.DeliveryRate, s.LossRate
	to.LastSend, to.OldestSend, to.Recovering = s.LastSend.Duration(), s.OldestSend.Duration(), s.Recovering
}

// holders tells the scheduler which flows of its view carry the byte at an
// offset, and for how many bytes from there on the answer stays the same.
func (c *Conn) holders(off int64) (set uint64, n int64) {
	at := uint64(max(off, 0))
	if at < c.snd.una || at >= c.snd.nxt {
		return 0, 0
	}
	end := c.snd.nxt
	for i, f := range c.viewFlows {
		live := f.out.all()
		if f.out.mixed == 0 {
			live = live[f.out.searchData(at):]
			live = live[:min(len(live), 1)]
		}
		for _, m := range live {
			switch {
			case m.data > at:
				end = min(end, m.data)
			case m.data+uint64(m.n) > at:
				set |= 1 << i
				end = min(end, m.data+uint64(m.n))
			}
		}
	}
	return set, int64(end - at)
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
