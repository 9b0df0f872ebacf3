package mpconn

import (
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
