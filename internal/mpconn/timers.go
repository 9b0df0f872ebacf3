package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/timer"
)

// timerKind names the connection's own timers; subflows have theirs.
type timerKind uint8

const (
	timerDataRexmit timerKind = iota // a DATA_ACK is overdue
	timerAddAddr                     // an echo of ADD_ADDR is overdue
	timerOrphan                      // no subflow is left, or none that delivers
	timerClose                       // the peer does not finish closing
	timerSchedule                    // the scheduler asked to be asked again
	timerFastClose                   // an MP_FASTCLOSE is unanswered
	timerSignal                      // an option that waits may be sent
	timerFastOpen                    // a SYN that is held has waited for data long enough, or, after it, nothing shows that the third ACK has arrived
	timerRepeat                      // an option may not have arrived
	timerShrink                      // buffers that grew may be idle
)

type timerTable = timer.Table[timerKind]

// Deadline returns when HandleTimeout must be called at the latest; 0 = never.
func (c *Conn) Deadline() mono.Time {
	if c.over {
		return 0
	}
	d := mono.Earliest(c.timers.Next(), c.snd.corked)
	for _, f := range c.flows {
		d = mono.Earliest(d, f.deadline())
	}
	return d
}

// deadline returns the earliest of a flow's own deadlines.
func (f *flow) deadline() mono.Time {
	d := mono.Earliest(f.tcp.Deadline(), mono.Earliest(f.fail.retry, f.probe.due))
	d = mono.Earliest(mono.Earliest(d, f.stuck.until()), f.silence.due)
	if f.join != nil {
		d = mono.Earliest(d, f.join.retry)
	}
	return d
}

// HandleTimeout acts on every deadline that has come.
func (c *Conn) HandleTimeout(now mono.Time) {
	c.snd.idle = false
	if c.snd.corked.Reached(now) {
		c.snd.corked = 0
	}
	for _, f := range c.flows {
		if f.tcp.Deadline().Reached(now) {
			before := f.tcp.WindowProbes()
			f.tcp.HandleTimeout(now)
			if c.mode == modeMPTCP {
				c.oddity().WindowProbes += f.tcp.WindowProbes() - before
			}
		}
		if f.stuck.until().Reached(now) {
			c.unmappedTooLong(now, f)
		}
	}
	c.retryJoins(now)
	c.retryFails(now)
	c.retryProbes(now)
	c.askSilent(now)
	for {
		k, ok := c.timers.Expired(now)
		if !ok {
			return
		}
		switch k {
		case timerDataRexmit:
			c.dataTimeout(now)
		case timerAddAddr:
			c.retryAnnounce(now)
		case timerOrphan:
			c.abort(now, c.orphanedBy)
		case timerClose:
			c.closeTimeout(now)
		case timerFastClose:
			c.fastCloseTimeout(now)
		case timerShrink:
			c.shrinkIdle(now)
		case timerFastOpen:
			if c.held {
				c.held = false
			} else {
				c.askProof(now)
			}
		case timerRepeat:
			c.repeatSignals(now)
		case timerSchedule, timerSignal:
		}
		if c.over {
			return
		}
	}
}
