package mpconn

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// maxSignals is how many ACKs in a row are sent on a subflow for nothing but an
// option.
//
// RFC 8684, Section 3.4.1: "an MPTCP implementation SHOULD NOT send more than
// two duplicate ACKs in a row for signaling purposes."
const maxSignals = 2

// forceSignal builds an ACK for an option's sake, unless there were too many
// in a row: then it waits until something else passes on the subflow, or for a
// retransmission timeout.
func (c *Conn) forceSignal(now mono.Time, f *flow, seg *wire.Segment, room int) bool {
	return c.maySignal(now, f) && c.forceACK(now, f, seg, room) && f.signaled(now)
}

// forceMarked does the same by an ACK with a timestamp of its own, if possible.
func (c *Conn) forceMarked(now mono.Time, f *flow, seg *wire.Segment, room int) (marked, ok bool) {
	if !c.maySignal(now, f) {
		return false, false
	}
	seg.Reset()
	f.tcp.SetReceiveWindow(c.window())
	if marked, ok = f.tcp.ForceMarked(now, seg, room); !ok {
		return false, false
	}
	c.stats.SegmentsSent++
	return marked, f.signaled(now)
}

// maySignal reports whether one more ACK may be sent for an option's sake.
func (c *Conn) maySignal(now mono.Time, f *flow) bool {
	if f.signals < maxSignals || f.quiet.Reached(now) {
		return true
	}
	c.timers.Set(timerSignal, mono.Earliest(c.timers.At(timerSignal), f.quiet))
	return false
}

// signaled counts an ACK that was sent for an option's sake.
func (f *flow) signaled(now mono.Time) bool {
	if f.signals >= maxSignals {
		f.signals = 0
	}
	f.signals++
	f.quiet = now.Add(f.tcp.RTO())
	return true
}

// pollEcho sends an ADD_ADDR back on the subflow on which it came.
func (c *Conn) pollEcho(now mono.Time, seg *wire.Segment) bool {
	if len(c.addrs.echoes) == 0 {
		return false
	}
	c.addrs.echoes = slices.DeleteFunc(c.addrs.echoes, func(e echo) bool { return e.on.phase != phaseUp })
	for i, e := range c.addrs.echoes {
		if c.forceSignal(now, e.on, seg, 24) {
			c.addrs.echoes = slices.Delete(c.addrs.echoes, i, i+1)
			seg.Has |= wire.OptAddAddr
			seg.AddAddr = e.opt
			return true
		}
	}
	return false
}

// pollAnnounce sends an ADD_ADDR, each try on another subflow, since one may be
// dead and not show it. The next one waits for the echo of the last, or for
// announceGap: Linux has room for one announcement that it has not looked at yet,
// and would lose the second of two that come at once.
func (c *Conn) pollAnnounce(now mono.Time, seg *wire.Segment) bool {
	if !c.joinable {
		return false
	}
	for i := range c.addrs.announce {
		a := &c.addrs.announce[i]
		if !a.due || c.addrs.withdrawing(a.id) {
			continue
		}
		if now < c.addrs.pause {
			c.timers.Set(timerSignal, mono.Earliest(c.timers.At(timerSignal), c.addrs.pause))
			return false
		}
		f := c.bestFlow(a.on)
		if f == nil || !c.forceSignal(now, f, seg, a.room()) {
			return false
		}
		a.due, a.on = false, f
		c.addrs.cancelWithdrawal(a.id)
		a.tries++
		c.addrs.pause = now.Add(announceGap)
		c.putAnnounce(seg, a)
		c.timers.Set(timerAddAddr, now.Add(announceTimeout<<(a.tries-1)))
		return true
	}
	return false
}

// pollWithdraw sends REMOVE_ADDR before any announcement: an address may be
// announced again under the id that is being withdrawn. Where payload is under
// way it rides on that.
func (c *Conn) pollWithdraw(now mono.Time, seg *wire.Segment) bool {
	if len(c.addrs.withdraw) == 0 {
		return false
	}
	due := c.dueWithdrawals(maxWithdraw)
	if len(due) == 0 {
		return false
	}
	f := c.bestFlow(due[0].on)
	if c.withdrawOn = f; f == nil || f.tcp.Sending() {
		return false
	}
	marked, ok := c.forceMarked(now, f, seg, (3+len(due)+3)&^3)
	if !ok {
		return false
	}
	seg.Has |= wire.OptRemoveAddr
	seg.RemoveAddr.N = uint8(len(due))
	for i, w := range due {
		seg.RemoveAddr.IDs[i] = w.id
		c.signalSent(now, f, seg, marked, &w.signal)
	}
	return true
}

// pollPrio sends MP_PRIO on the subflow that it is about, unless it rides on
// payload there.
func (c *Conn) pollPrio(now mono.Time, seg *wire.Segment) bool {
	if !c.joinable {
		return false
	}
	for _, f := range c.flows {
		if !f.prio.due || f.phase != phaseUp || f.tcp.Sending() {
			continue
		}
		if marked, ok := c.forceMarked(now, f, seg, 4+roomACK); ok {
			c.putDataAck(f, seg)
			c.putPrio(f, seg)
			c.signalSent(now, f, seg, marked, &f.prio)
			return true
		}
	}
	return false
}
