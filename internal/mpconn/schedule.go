package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/scheduler"
)

// mappingSegments is how many full segments one mapping spans at most where
// the path takes no super-segments: enough to make scheduling cheap, little
// enough to let a policy interleave paths.
const mappingSegments = 16

// schedule gives one range to the subflows that the scheduler picks and
// reports whether it gave anything. It remembers a fruitless try until the
// next input.
func (c *Conn) schedule(now mono.Time) bool {
	if c.snd.idle {
		return false
	}
	if lo, hi, ok := c.dueAgain(); ok && c.assign(now, lo, hi, true) {
		return true
	}
	if lo, hi := c.snd.unsent(0); lo < hi && c.assign(now, lo, hi, false) {
		return true
	}
	c.snd.idle = true
	c.setBlocked(now)
	return false
}

// assign asks the scheduler about [lo, hi) and obeys.
func (c *Conn) assign(now mono.Time, lo, hi uint64, again bool) bool {
	if !c.fillView(now, lo, hi, again) {
		return false
	}
	d := c.sched.Pick(&c.view)
	if d.Send == 0 {
		if d.Wait && d.Until > 0 {
			c.timers.Set(timerSchedule, max(mono.Time(d.Until), now+1))
		}
		return false
	}
	if d.Offset > 0 && !again {
		if lo, hi = c.snd.unsent(d.Offset); lo >= hi {
			return false
		}
	}
	n := int(hi - lo)
	if d.Bytes > 0 {
		n = min(n, d.Bytes)
	}
	sent := 0
	for i, f := range c.viewFlows {
		if d.Send&(1<<i) == 0 || c.view.Subflows[i].Room == 0 {
			continue
		}
		given := c.give(now, f, lo, n, c.view.Subflows[i].Room, again)
		if c.placed != nil && given > 0 {
			c.placed(now, Placement{ID: f.id, Offset: lo, Len: given, Again: again, Reason: d.Reason})
		}
		sent = max(sent, given)
	}
	if sent == 0 {
		return false
	}
	if again {
		c.snd.reinject.Remove(lo, lo+uint64(sent))
	} else {
		c.snd.take(lo, lo+uint64(sent))
	}
	c.armDataRexmit(now)
	return true
}

// give binds up to n bytes at lo to one flow and returns how many.
func (c *Conn) give(now mono.Time, f *flow, lo uint64, n, room int, again bool) int {
	mss := f.tcp.MSS()
	_, segmentMax := c.cfg.Path(f.tcp.Local().Addr(), f.tcp.Remote().Addr())
	most := max(segmentMax, mappingSegments*mss)
	if f.join == nil && c.active && !c.joinable && c.mode == modeMPTCP && f.tcp.Pushed() == f.lead.out {
		// The mapping in MP_CAPABLE belongs to one segment.
		most = mss
	}
	rider := c.boards(f)
	if rider {
		most = mss
	}
	n = min(n, room, most, 1<<16-1)
	if n > mss {
		n -= n % mss
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
func (c *Conn) fillView(now mono.Time, lo, hi uint64, again bool) bool {
	v := &c.view
	v.Now = now.Duration()
	v.Subflows, c.viewFlows = v.Subflows[:0], c.viewFlows[:0]
	v.Unsent = int64(c.Unsent())
	v.Unacked = int64(c.snd.nxt - min(c.snd.una, c.snd.nxt))
	v.SendWindow = int64(c.snd.edge - min(c.snd.nxt, c.snd.edge))
	v.SendBuffer = int64(c.snd.buffer.limit)
	v.Reinject, v.Carried = again, 0
	room := false
	for _, f := range c.flows {
		if !f.usable() || len(v.Subflows) == scheduler.MaxSubflows {
			continue
		}
		s := f.tcp.Snapshot()
		e := scheduler.Subflow{
			ID: f.id, SRTT: s.SRTT, RTTVar: s.RTTVar, MinRTT: s.MinRTT,
			Cwnd: s.Cwnd, InFlight: s.InFlight, Queued: s.Queued,
			Room: f.tcp.Room(now, int(hi-lo)), MSS: s.MSS,
			PacingRate: s.PacingRate, DeliveryRate: s.DeliveryRate, LossRate: s.LossRate,
			LastSend: s.LastSend.Duration(), Backup: f.standby(), Stale: f.stale,
		}
		if again && f.out.carries(lo) {
			v.Carried |= 1 << len(v.Subflows)
		}
		room = room || e.Room > 0
		v.Subflows = append(v.Subflows, e)
		c.viewFlows = append(c.viewFlows, f)
	}
	return room
}

// setBlocked runs the persist timers of the subflows while data waits behind
// a closed window with nothing in flight that would bring news of it.
func (c *Conn) setBlocked(now mono.Time) {
	waiting := c.snd.q.End() > c.snd.nxt || c.snd.reinject.Len() > 0
	for _, f := range c.flows {
		if f.usable() {
			f.tcp.SetBlocked(now, waiting)
		}
	}
}
