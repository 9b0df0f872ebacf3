package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// PollSegment fills seg with the next segment to send and reports whether
// there was one. The order is fixed: options that need a segment of their
// own, then whatever the subflows have to send, given new work by the
// scheduler one range at a time.
func (c *Conn) PollSegment(now mono.Time, seg *wire.Segment) bool {
	for !c.over && !c.held {
		if c.pollControl(now, seg) {
			return true
		}
		worked := c.schedule(now)
		c.advance(now)
		n, window := len(c.flows), c.window()
		for i := range n {
			at := c.cursor + i
			if at >= n {
				at %= n
			}
			f := c.flows[at]
			if f.tcp.Still() && window <= f.offered {
				continue
			}
			f.tcp.SetReceiveWindow(window)
			f.offered = window
			c.offerSYNData(f)
			if r, ok := f.tcp.PollSegment(now, seg); ok {
				c.cursor = at
				c.decorate(f, seg, r)
				return true
			}
			if c.drain(now, f) {
				worked = true
				break
			}
		}
		if !worked {
			break
		}
	}
	return false
}

// drain acts on the events of a flow that has nothing more to send.
func (c *Conn) drain(now mono.Time, f *flow) bool {
	any := false
	for f.phase != phaseDead {
		e, ok := f.tcp.PollEvent()
		if !ok {
			break
		}
		any = true
		c.flowEvent(now, f, e)
	}
	return any
}

// decorate adds payload and MPTCP options to what a subflow wants to send.
func (c *Conn) decorate(f *flow, seg *wire.Segment, r subflow.Range) {
	c.stats.SegmentsSent++
	switch {
	case seg.Flags&wire.RST != 0:
		c.putReset(f, seg)
	case seg.Flags&wire.SYN != 0:
		c.putSYN(f, seg)
		c.putSYNData(seg, r.Len)
	case r.Len > 0:
		c.putData(f, seg, r)
	default:
		c.putACK(f, seg)
	}
}

// putData adds the payload of a range and its mapping.
func (c *Conn) putData(f *flow, seg *wire.Segment, r subflow.Range) {
	m, ok := f.out.find(r.Off)
	if !ok {
		panic("mpconn: subflow sends bytes that were never bound to it")
	}
	f.signals = 0
	data := m.data + (r.Off - m.off)
	seg.Payload, seg.Blocks = c.snd.q.Views(data, r.Len, seg.Payload, seg.Blocks)
	c.stats.BytesSent += uint64(r.Len)
	switch {
	case c.mode == modeMPTCP && c.active && !c.joinable && f.join == nil && r.Off == f.lead.out && r.Len == m.n:
		// RFC 8684, Section 3.1: the first data repeats the keys until a DSS
		// has proved that they arrived.
		f.keysSent = true
		c.putCapableData(seg, m)
	case c.mode == modeMPTCP && f.fail.alone:
		c.putDataAck(f, seg)
		c.putInfinite(f, seg)
	case c.mode != modePlain:
		c.putMapping(f, seg, m)
		if f.riding {
			c.putRiders(f, seg, r)
		}
	case f.infinite.covers(r):
		c.putInfinite(f, seg)
	}
}

// putACK adds the option of a segment without payload, which may be a FIN.
func (c *Conn) putACK(f *flow, seg *wire.Segment) {
	switch {
	case c.mode != modeMPTCP:
	case f.phase == phasePreEstablished:
		c.putJoinACK(f, seg)
	case f.phase != phaseUp:
	case c.active && !c.joinable && f.join == nil:
		f.keysSent = true
		c.putCapable(seg, 2)
	case seg.Flags&wire.FIN != 0 && c.snd.withFIN && !c.snd.finAcked():
		c.putDataFin(f, seg)
	default:
		c.putDataAck(f, seg)
	}
}

// pollControl builds the next segment that exists for its option.
func (c *Conn) pollControl(now mono.Time, seg *wire.Segment) bool {
	if c.ending != reason.CloseNone {
		return c.pollFastClose(now, seg)
	}
	if c.pollFail(now, seg) {
		return true
	}
	if c.mode != modeMPTCP || !c.connected {
		return false
	}
	return c.pollDataFin(now, seg) || c.pollEcho(now, seg) || c.pollWithdraw(now, seg) ||
		c.pollAnnounce(now, seg) || c.pollPrio(now, seg)
}

func (c *Conn) pollDataFin(now mono.Time, seg *wire.Segment) bool {
	s := &c.snd
	if !s.finDue() || s.finSent && !s.finAgain {
		return false
	}
	f := c.bestFlow(s.finOn)
	if f != nil && c.active && !c.joinable && !f.keysSent {
		return false // it would take the place of the third ACK, which has no DSS
	}
	if f == nil || !c.forceACK(now, f, seg, roomData) {
		return false
	}
	s.finSent, s.finAgain, s.finOn = true, false, f
	c.putDataFin(f, seg)
	c.armDataRexmit(now)
	return true
}

// forceACK builds a bare ACK on a flow.
func (c *Conn) forceACK(now mono.Time, f *flow, seg *wire.Segment, room int) bool {
	seg.Reset()
	f.tcp.SetReceiveWindow(c.window())
	if !f.tcp.ForceAck(now, seg, room) {
		return false
	}
	c.stats.SegmentsSent++
	return true
}

// bestFlow returns the flow with the least RTT that is up and answers, if
// possible one that is not being closed, and another one than avoid.
func (c *Conn) bestFlow(avoid *flow) *flow {
	var best *flow
	rank := func(f *flow) int {
		n := 0
		if f.leaving {
			n += 4
		}
		if f.stale {
			n += 2
		}
		if f == avoid {
			n++
		}
		return n
	}
	for _, f := range c.flows {
		if f.phase != phaseUp || f.failed != reason.CloseNone {
			continue
		}
		if best == nil || rank(f) < rank(best) ||
			rank(f) == rank(best) && f.tcp.Snapshot().SRTT < best.tcp.Snapshot().SRTT {
			best = f
		}
	}
	return best
}
