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
	if f.signals >= maxSignals && !f.quiet.Reached(now) {
		c.signalAt(f.quiet)
		return false
	}
	if !c.forceACK(now, f, seg, room) {
		return false
	}
	if f.signals >= maxSignals {
		f.signals = 0
	}
	f.signals++
	f.quiet = now.Add(f.tcp.RTO())
	return true
}

// signalAt has what waits to be signalled looked at again.
func (c *Conn) signalAt(t mono.Time) {
	if at := c.timers.At(timerSignal); !at.Set() || t < at {
		c.timers.Set(timerSignal, t)
	}
}

// pollEcho sends an ADD_ADDR back on the subflow on which it came.
func (c *Conn) pollEcho(now mono.Time, seg *wire.Segment) bool {
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
// dead and not show it. The next one waits for the echo of the last, for a
// retransmission timeout at most: Linux has room for one announcement that it
// has not looked at yet, and would lose the second of two that come at once.
func (c *Conn) pollAnnounce(now mono.Time, seg *wire.Segment) bool {
	if !c.joinable || len(c.addrs.withdraw) > 0 {
		return false
	}
	for i := range c.addrs.announce {
		a := &c.addrs.announce[i]
		if !a.due {
			continue
		}
		if now < c.addrs.pause {
			c.signalAt(c.addrs.pause)
			return false
		}
		f := c.bestFlow(a.on)
		if f == nil || !c.forceSignal(now, f, seg, a.room()) {
			return false
		}
		a.due, a.on = false, f
		a.tries++
		c.addrs.pause = now.Add(f.tcp.RTO())
		c.putAnnounce(seg, a)
		c.timers.Set(timerAddAddr, now.Add(announceTimeout<<(a.tries-1)))
		return true
	}
	return false
}

// pollWithdraw sends REMOVE_ADDR before any announcement: an address may be
// announced again under the id that is being withdrawn. After one it gathers
// ids for a retransmission timeout: like announcements, Linux loses a REMOVE_ADDR
// that comes before it has looked at the last one, and nothing repeats it.
func (c *Conn) pollWithdraw(now mono.Time, seg *wire.Segment) bool {
	ids := c.addrs.withdraw
	if len(ids) == 0 {
		return false
	}
	if now < c.addrs.gather {
		c.signalAt(c.addrs.gather)
		return false
	}
	n := min(len(ids), maxWithdraw)
	f := c.bestFlow(nil)
	if f == nil || !c.forceSignal(now, f, seg, (3+n+3)&^3) {
		return false
	}
	seg.Has |= wire.OptRemoveAddr
	seg.RemoveAddr.N = uint8(copy(seg.RemoveAddr.IDs[:], ids[:n]))
	c.addrs.withdraw = slices.Delete(ids, 0, n)
	c.addrs.gather = now.Add(f.tcp.RTO())
	return true
}

// pollPrio sends MP_PRIO on the subflow that it is about.
func (c *Conn) pollPrio(now mono.Time, seg *wire.Segment) bool {
	for _, f := range c.flows {
		if f.prioDue && f.phase == phaseUp && c.forceSignal(now, f, seg, 4+roomACK) {
			c.putDataAck(seg)
			c.putPrio(f, seg)
			return true
		}
	}
	return false
}
