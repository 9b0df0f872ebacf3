package mpconn

import (
	"math"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/scheduler"
)

// SetScheduler changes the policy from the next decision on.
func (c *Conn) SetScheduler(f scheduler.Factory) {
	c.sched = f()
	c.snd.idle = false
}

// SetCongestion changes the congestion control, on subflows to come too. The
// new controllers begin with the windows and thresholds of the old ones. What
// was agreed on ECN with the peer stays.
func (c *Conn) SetCongestion(f cc.Factory) {
	c.group, c.sharedSeen = f(), 0
	c.snd.idle = false
	for _, f := range c.flows {
		old := f.ctl.State()
		p := cc.Params{MSS: f.tcp.MSS(), InitialWindow: old.Cwnd}
		if !math.IsInf(old.Ssthresh, 1) {
			p.InitialSsthresh = old.Ssthresh
		}
		f.ctl = c.group.Add(p)
		f.tcp.SetController(f.ctl)
	}
}

// SetFlowSize tells the scheduler how many bytes will be written in all; 0 =
// unknown.
func (c *Conn) SetFlowSize(n int64) {
	c.flowSize = max(n, 0)
	c.snd.idle = false
}

// FlowSize returns how many bytes will be written in all, as far as that is
// known: 0 = it is not.
func (c *Conn) FlowSize() int64 { return c.flowSize }

// Written returns how many bytes were written.
func (c *Conn) Written() int64 { return int64(c.snd.q.End()) }

// SetHint gives the scheduler a number to which the policy gives a meaning.
func (c *Conn) SetHint(hint int64) {
	c.hint = hint
	c.snd.idle = false
}

// OnDecision has f told every decision of the scheduler, also those to wait;
// nil = nobody. It must not call back, or keep the view.
func (c *Conn) OnDecision(f func(v *scheduler.View, d scheduler.Decision)) { c.onDecision = f }

// turn changes the knobs of subflows to come.
func (c *Conn) turn(change func(*subflow.Knobs)) {
	k := *c.knobs
	change(&k)
	c.knobs = &k
}

// SetNagle turns the Nagle algorithm on or off, on subflows to come too.
func (c *Conn) SetNagle(on bool) {
	c.turn(func(k *subflow.Knobs) { k.Nagle = on })
	c.snd.idle = false
	for _, f := range c.flows {
		f.tcp.SetNagle(on)
	}
}

// SetKeepAlive changes the probes of idle subflows, of those to come too.
func (c *Conn) SetKeepAlive(now mono.Time, k subflow.KeepAlive) {
	c.turn(func(all *subflow.Knobs) { all.KeepAlive = k })
	for _, f := range c.flows {
		f.tcp.SetKeepAlive(now, k)
	}
}

// HandlePacketTooBig passes on an ICMP report about a packet of subflow id
// that began with the sequence number quoted: the path takes mtu bytes of IP
// payload.
func (c *Conn) HandlePacketTooBig(now mono.Time, id int, quoted seq.SSN, mtu int) {
	if f := c.flow(id); f != nil {
		f.tcp.HandlePacketTooBig(now, quoted, mtu)
		c.snd.idle = false
	}
}

// HandleUnreachable passes on an ICMP report that the destination of subflow
// id can't be reached; hard ones end a handshake.
func (c *Conn) HandleUnreachable(now mono.Time, id int, quoted seq.SSN, hard bool) {
	if f := c.flow(id); f != nil {
		f.tcp.HandleUnreachable(now, quoted, hard)
		c.snd.idle = false
	}
}
