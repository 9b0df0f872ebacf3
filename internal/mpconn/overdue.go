package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// overdue says how far the wait for a DATA_ACK has come that is overdue although
// the subflows have everything acknowledged. Linux acknowledges on a subflow what
// still waits for the lock of its connection, and says nothing more when the
// connection has it. The data-level timer is for bytes that got lost, and slow; here
// a question mostly suffices.
type overdue uint8

const (
	overdueNot   overdue = iota
	overdueSoon          // the data-level timer was moved to when it will be
	overdueAsked         // the peer was asked, and the timer moved to when to send again
	overdueDone          // that was in vain
)

const (
	// leastOverdue is for busy hosts; otherwise an ACK may take two round trips more
	// at the data level.
	leastOverdue = time.Millisecond
	// questionShare is by how much longer the answer to the question may take.
	questionShare = 4
)

// overdueAfter is how long a DATA_ACK may take after the ACK of a flow.
func overdueAfter(f *flow) time.Duration { return max(2*f.tcp.Snapshot().SRTT, leastOverdue) }

// awaitDataAck moves the data-level timer when a flow has got acknowledged what it
// carried, and no other carries anything. Where options were missing on the ACK, the
// peer may have fallen back.
func (c *Conn) awaitDataAck(now mono.Time, f *flow) {
	if c.snd.una >= c.snd.nxt || !f.out.empty() || c.snd.overdue != overdueNot ||
		c.mode != modeMPTCP || c.failing() || f.bare > 0 || c.carrying() {
		return
	}
	c.snd.overdue = overdueSoon
	c.timers.Set(timerDataRexmit, mono.Earliest(c.timers.At(timerDataRexmit), now.Add(overdueAfter(f))))
}

// carrying reports whether a flow has bytes in flight.
func (c *Conn) carrying() bool {
	for _, f := range c.flows {
		if !f.out.empty() {
			return true
		}
	}
	return false
}

// askDataAck acts on the data-level timer where it was moved: it asks for the
// DATA_ACK, by a segment that the peer must answer. It reports whether the timer has
// nothing else to do.
func (c *Conn) askDataAck(now mono.Time) bool {
	stage := c.snd.overdue
	if stage != overdueSoon && stage != overdueAsked {
		return false
	}
	f := c.bestFlow(nil)
	switch {
	case f == nil || f.bare > 0 || c.snd.una >= c.snd.nxt || c.carrying():
		c.snd.overdue = overdueNot
		c.armDataRexmit(now)
	case stage == overdueSoon:
		c.snd.overdue = overdueAsked
		f.tcp.Probe()
		c.timers.Set(timerDataRexmit, now.Add(questionShare*overdueAfter(f)))
	default:
		c.snd.overdue = overdueDone
		return false
	}
	return true
}
