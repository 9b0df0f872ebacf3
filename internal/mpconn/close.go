package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// CloseWrite ends the outgoing stream behind the bytes written so far.
func (c *Conn) CloseWrite(now mono.Time) {
	if c.over || c.snd.closed {
		return
	}
	c.snd.closed = true
	c.snd.idle, c.held = false, false
	c.advance(now)
}

// CloseRead drops what is and will be received.
func (c *Conn) CloseRead() {
	c.rcv.discard = true
	c.rcv.q.Discard(c.rcv.q.Readable())
}

// Close ends both directions for the user. Bytes written before are still
// delivered. Unread or later input aborts the connection.
//
// RFC 9293, Section 3.6.1: a host that closes with data unread, or gets data
// after, "SHOULD send a RST to show that data was lost".
func (c *Conn) Close(now mono.Time) {
	if c.userClosed {
		return
	}
	c.userClosed = true
	unread := c.rcv.q.Readable() > 0
	c.CloseRead()
	switch {
	case c.over:
		c.rcv.q.Close()
		c.release(&c.rcv.buffer)
	case unread || !c.connected && c.snd.q.End() == 0:
		c.abort(now, reason.CloseLocalReset)
	default:
		c.CloseWrite(now)
		c.advance(now)
	}
}

// advance moves the connection towards its end as far as its state allows.
func (c *Conn) advance(now mono.Time) {
	if c.over || c.ending != reason.CloseNone {
		return
	}
	if c.userClosed && c.rcv.late {
		c.abort(now, reason.CloseLocalReset)
		return
	}
	if c.mode == modePlain {
		c.advancePlain(now)
		return
	}
	if c.mayEndTogether() {
		c.endTogether(now)
	}
	// RFC 8684, Section 3.3.3: "Once a DATA_FIN has been acknowledged, all
	// remaining subflows MUST be closed with standard FIN exchanges."
	// Deviation: while only the outgoing half is closed, subflows stay open,
	// so that one that dies can be replaced and the peer's data can go on.
	if c.Ended() {
		for _, f := range c.flows {
			c.leave(now, f)
		}
		if !c.timers.At(timerClose).Set() {
			c.timers.Set(timerClose, now.Add(c.cfg.CloseTimeout))
		}
		if len(c.flows) == 0 {
			c.finish(reason.CloseDone)
		}
	}
}

// mayEndTogether reports whether the DATA_FIN may go along with the FINs of the
// subflows, which saves a round trip and two packets: neither side will have more
// to send, and nothing is on its way that a subflow might be needed for.
//
// RFC 8684, Section 3.3.3: "It is only permissible to combine these signals on one
// subflow if there is no data outstanding on other subflows."
func (c *Conn) mayEndTogether() bool {
	s := &c.snd
	if !s.closed || s.finSent || s.una != s.q.End() || !c.joinable || c.failing() ||
		!c.rcv.eof() && !c.userClosed {
		return false
	}
	for _, f := range c.flows {
		if f.phase == phaseUp && f.usable() && !f.stale && !f.tcp.Sending() {
			return true
		}
	}
	return false
}

// endTogether closes the subflows that are up. Their FINs have the DATA_FIN with
// them until it is acknowledged; see putACK.
func (c *Conn) endTogether(now mono.Time) {
	c.snd.finSent, c.snd.withFIN = true, true
	for _, f := range c.flows {
		if f.phase == phaseUp {
			c.leave(now, f)
		}
	}
	c.armDataRexmit(now)
}

// advancePlain passes the end of the stream on to the only subflow.
func (c *Conn) advancePlain(now mono.Time) {
	f := c.plainFlow()
	if f == nil || !c.snd.finDue() {
		return
	}
	if !f.leaving {
		f.leaving, c.snd.finSent = true, true
		f.tcp.CloseWrite(now)
	}
	if f.tcp.FINAcked() {
		c.snd.una = c.snd.q.End() + 1
		if c.userClosed && !c.timers.At(timerClose).Set() {
			c.timers.Set(timerClose, now.Add(c.cfg.CloseTimeout))
		}
	}
}

// plainFlow returns the only subflow of a plain connection, or nil before and
// after its life.
func (c *Conn) plainFlow() *flow {
	for _, f := range c.flows {
		if f.phase == phaseUp {
			return f
		}
	}
	return nil
}

// leave closes a flow in order: FIN behind what it carries.
func (c *Conn) leave(now mono.Time, f *flow) {
	if f.leaving {
		return
	}
	f.leaving = true
	if f.phase == phaseUp {
		f.tcp.Close(now)
		return
	}
	c.abortFlow(now, f, reason.CloseCommand, reason.ResetUnspecified)
}

// peerClosedFlow acts on the peer's FIN on a flow.
//
// RFC 8684, Section 3.3.3: a FIN closes its subflow only.
func (c *Conn) peerClosedFlow(now mono.Time, f *flow) {
	if c.mode == modePlain {
		if !c.rcv.hasFin {
			c.rcv.fin, c.rcv.hasFin = c.rcv.q.Next(), true
			c.rcv.finFirst = !c.snd.closed
		}
		return
	}
	if f.bareFIN && f.fail.waiting {
		// The peer's answer was lost, and its stream is at an end.
		c.fallBack(now, f, reason.FallbackChecksum)
		if c.mode == modePlain {
			c.peerClosedFlow(now, f)
		}
		return
	}
	if f.bareFIN && c.mayFallBack(f) && !c.rcv.hasFin {
		// The only subflow there ever was ends, and not as MPTCP ends one: the
		// peer has fallen back.
		c.fallBack(now, f, reason.FallbackNoMapping)
		if c.mode == modePlain {
			c.peerClosedFlow(now, f)
		}
		return
	}
	if c.otherUsable(f) || c.rcv.eof() && c.snd.finAcked() {
		c.leave(now, f)
	}
}

// closeTimeout ends a close that takes too long. When both streams are
// complete only a dead subflow is in the way.
func (c *Conn) closeTimeout(now mono.Time) {
	if c.snd.finAcked() && c.rcv.eof() {
		c.abort(now, reason.CloseDone)
		return
	}
	c.abort(now, reason.CloseTimeout)
}

// lastFlowGone decides what becomes of a connection whose last subflow ended.
func (c *Conn) lastFlowGone(now mono.Time, f *flow, why reason.Close) {
	// A FIN that had the DATA_FIN with it may be acknowledged by a TIME-WAIT that no
	// longer knows the connection.
	acked := c.snd.finAcked() || c.snd.withFIN && why == reason.CloseDone
	done := acked && c.rcv.eof()
	switch {
	case c.ending != reason.CloseNone:
		c.finish(c.ending)
	case done || c.mode == modePlain && c.snd.closed && c.rcv.hasFin && why == reason.CloseDone:
		c.finish(reason.CloseDone)
	case c.mode != modeMPTCP || !c.joinable || c.cfg.OrphanTimeout < 0:
		c.finish(why)
	case c.snd.finAcked() && c.userClosed:
		c.finish(why)
	case c.disowned(f, why):
		c.finish(reason.CloseRemoteReset)
	default:
		// RFC 8684, Section 3.5: a RST closes its subflow only, and "MPTCP's
		// connection will stay alive at the data level, in order to permit
		// break-before-make handover between subflows."
		c.startOrphan(now, why)
	}
}

// disowned reports whether the peer lets it be known that it does not have the
// connection any more, or does not want it: the only subflow there ever was ended
// by a RST that speaks of lasting trouble, or after a RST, which may be anybody's,
// a join to the only address of the peer is refused.
func (c *Conn) disowned(f *flow, why reason.Close) bool {
	if len(c.addrs.remotes) > 1 {
		return false
	}
	switch why {
	case reason.CloseRemoteReset:
		return c.nextID == 1 && !f.peerTransient
	case reason.CloseRefused:
		return f.join != nil && c.timers.At(timerOrphan).Set() && c.orphanedBy == reason.CloseRemoteReset
	}
	return false
}

// startOrphan bounds how long the connection lives with no subflow that
// delivers. Joins that fail meanwhile do not prolong it, nor do those that come
// up: if something waits for a DATA_ACK, nothing else ends the wait.
func (c *Conn) startOrphan(now mono.Time, why reason.Close) {
	if c.mode == modeMPTCP && !c.timers.At(timerOrphan).Set() {
		c.orphanedBy = why
		c.timers.Set(timerOrphan, now.Add(max(c.cfg.OrphanTimeout, 0)))
	}
}

// awaitsDataAck reports whether the peer has something to DATA_ACK as soon as a
// subflow delivers: bytes that were sent or that its window has ample room for,
// or the DATA_FIN. A sliver of window may stay unused for good reason.
func (c *Conn) awaitsDataAck() bool {
	s := &c.snd
	if c.mode != modeMPTCP || s.finAcked() {
		return false
	}
	unsent := s.q.End() - s.nxt
	fits := s.edge >= s.nxt+min(unsent, maxMapping)
	return s.una < s.nxt || unsent > 0 && fits || unsent == 0 && s.closed
}

// finish ends the connection. Received bytes stay readable until Close.
func (c *Conn) finish(why reason.Close) {
	if c.over {
		return
	}
	c.over = true
	c.err = why
	c.snd.q.Close()
	c.release(&c.snd.buffer)
	if c.rcv.discard {
		c.rcv.q.Close()
		c.release(&c.rcv.buffer)
	}
	c.timers = timerTable{}
	c.emit(pending{kind: EventClosed, close: why})
}

// CloseSubflow closes one of several subflows: in order with FIN, or, with a
// reason code other than unspecified, with RST. It returns false if there is
// no such subflow or it is the last.
func (c *Conn) CloseSubflow(now mono.Time, id int, code reason.Reset) bool {
	f := c.flow(id)
	if f == nil || f.phase == phaseUp && c.live() < 2 {
		return false
	}
	c.snd.idle = false
	if code != reason.ResetUnspecified {
		c.abortFlow(now, f, reason.CloseCommand, code)
		return true
	}
	// RFC 8684, Section 3.4.2: a subflow that works is closed by FIN.
	c.leave(now, f)
	return true
}

// FailSubflow ends a subflow whose local address went away: nothing can be
// sent from it, so it ends without a word.
func (c *Conn) FailSubflow(now mono.Time, id int) {
	if f := c.flow(id); f != nil {
		f.failed = reason.CloseAddressGone
		f.tcp.Abort(now)
		c.removeFlow(now, f, reason.CloseAddressGone, nil)
	}
}
