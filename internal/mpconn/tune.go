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
	c.group = f()
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

// SetNagle turns the Nagle algorithm on or off, on subflows to come too.
func (c *Conn) SetNagle(on bool) {
	c.cfg.Subflow.Nagle = on
	c.snd.idle = false
	for _, f := range c.flows {
		f.tcp.SetNagle(on)
	}
}

// SetKeepAlive changes the probes of idle subflows, of those to come too.
func (c *Conn) SetKeepAlive(now mono.Time, k subflow.KeepAlive) {
	c.cfg.Subflow.KeepAlive = k
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
