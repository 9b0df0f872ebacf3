package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/scheduler"
)

// look is how the scheduler saw the connection last.
type look struct {
	view      scheduler.View // reused by every pick
	viewFlows []*flow        // the flow behind each entry of view, which is up to date with flow.shown
	calm      mono.Time      // as the last decision about new bytes said, nothing is to be repeated before; 0 = it did not say

	// Where both begin.
	firstSubflow [1]scheduler.Subflow
	firstFlow    [1]*flow
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
			if f.tcp.Largest() > f.tcp.MSS() {
				// The first range may be short, and a super-segment be sent behind it.
				waiting = max(waiting, c.snd.sendable()/f.tcp.MSS()*f.tcp.MSS())
			}
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
	to.QueueRoom, to.MSS, to.Whole = f.tcp.QueueRoom(), s.MSS, f.tcp.Largest()
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
