package mptcp

import (
	"context"
	"net"
	"net/netip"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/scheduler"
)

// SubflowConfig says between which addresses a subflow is to run.
type SubflowConfig struct {
	// Local is where it begins; a zero address is chosen among those that can
	// reach Remote, port 0 is chosen.
	Local netip.AddrPort
	// Remote is where it leads; a zero address is that of the first subflow,
	// port 0 its port.
	Remote netip.AddrPort
	// Backup asks the peer to send on it only when nothing else works; this
	// side does the same.
	Backup bool
}

// AddSubflow opens one more subflow and returns its ID once it is established.
// On a connection that is not yet proven to be MPTCP in both directions it
// waits for that first. When ctx ends before, the attempt is given up. On plain
// TCP it fails with ErrFallback.
func (c *Conn) AddSubflow(ctx context.Context, sc SubflowConfig) (id int, err error) {
	to := sc.Remote
	if !to.Addr().IsValid() {
		to = c.core.RemoteAddr()
	}
	id, err = c.addSubflow(ctx, sc)
	return id, opError("join", c.LocalAddr(), net.TCPAddrFromAddrPort(to), err)
}

func (c *Conn) addSubflow(ctx context.Context, sc SubflowConfig) (int, error) {
	c.mu.Lock()
	c.core.Connect()
	c.unlock()
	if err := c.await(ctx, c.joinable); err != nil {
		return 0, err
	}
	id, result, err := c.openSubflow(sc)
	if err != nil {
		return 0, err
	}
	select {
	case err := <-result:
		return id, err
	case <-c.done.wait():
		return 0, net.ErrClosed
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.unlock()
	select {
	case err := <-result: // it came at the last moment
		return id, err
	default:
	}
	delete(c.joins, id)
	if !c.dead {
		c.core.CloseSubflow(c.stack.now(), id, reason.ResetUnspecified)
	}
	return 0, ctx.Err()
}

// joinable reports whether subflows may be opened, or why they never will be.
// c.mu must be held.
func (c *Conn) joinable() (bool, error) {
	switch {
	case c.done.isClosed():
		return false, net.ErrClosed
	case c.core.Closed():
		return false, c.endError()
	case c.core.Joinable():
		return true, nil
	case c.proven:
		return false, ErrLimit // it is being closed
	case c.core.Fallback() != reason.FallbackNone:
		return false, ErrFallback
	}
	return false, nil
}

// openSubflow begins a subflow. What becomes of it is sent to result.
func (c *Conn) openSubflow(sc SubflowConfig) (id int, result <-chan error, err error) {
	c.mu.Lock()
	defer c.unlock()
	if ok, err := c.joinable(); !ok {
		if err == nil {
			err = ErrLimit
		}
		return 0, nil, err
	}
	args := mpconn.OpenArgs{Local: sc.Local, Remote: sc.Remote, Backup: sc.Backup}
	first := c.core.RemoteAddr()
	if !args.Remote.Addr().IsValid() {
		args.Remote = netip.AddrPortFrom(first.Addr(), args.Remote.Port())
	}
	if args.Remote.Port() == 0 {
		args.Remote = netip.AddrPortFrom(args.Remote.Addr(), first.Port())
	}
	c.stack.mu.Lock()
	id, err = c.stack.host.Open(c.stack.now(), c.core, args)
	c.stack.mu.Unlock()
	if err != nil {
		return 0, nil, hostError(err)
	}
	if c.joins == nil {
		c.joins = make(map[int]chan error)
	}
	ch := make(chan error, 1)
	c.joins[id] = ch
	return id, ch, nil
}

// RemoveSubflow closes a subflow in order, after what it carries has been
// delivered. The last one can't be removed: it is ErrNoSubflow, too.
func (c *Conn) RemoveSubflow(id int) error {
	return c.command(func(now mono.Time) bool {
		return c.core.CloseSubflow(now, id, reason.ResetUnspecified)
	})
}

// SetBackup asks the peer to send on a subflow only when nothing else works,
// or takes that back. This side does the same, and also where the peer asks for
// it.
func (c *Conn) SetBackup(id int, backup bool) error {
	return c.command(func(now mono.Time) bool { return c.core.SetBackup(now, id, backup) })
}

// command does something to a subflow, which must exist.
func (c *Conn) command(do func(now mono.Time) bool) error {
	found := false
	err := c.set("set", func(now mono.Time) { found = do(now) })
	if err == nil && !found {
		return c.opError("set", ErrNoSubflow)
	}
	return err
}

// SetScheduler changes the scheduler from the next decision on; nil means the
// default one.
func (c *Conn) SetScheduler(f scheduler.Factory) error {
	if f == nil {
		var err error
		if f, err = scheduler.ByName("default"); err != nil {
			return c.opError("set", err)
		}
	}
	return c.set("set", func(mono.Time) { c.core.SetScheduler(f) })
}

// SetCongestion changes the congestion control; nil means the default one. Its
// windows begin where the old ones are. ECN stays as the handshakes agreed on
// it, so one that lives on marks may have to do without.
func (c *Conn) SetCongestion(f cc.Factory) error {
	if f == nil {
		var err error
		if f, err = cc.ByName("default"); err != nil {
			return c.opError("set", err)
		}
	}
	return c.set("set", func(mono.Time) { c.core.SetCongestion(f) })
}

// SetFlowSize declares how many bytes the application will have written to
// the connection when it is done, those written already included, for
// schedulers and path managers that go by it ("fsfs", "dems", "flowsize"); 0 or
// less takes that back. The best time is before the first Write. What nobody
// declared is learnt from readers that know their size: see ReadFrom.
func (c *Conn) SetFlowSize(bytes int64) error {
	return c.set("set", func(mono.Time) {
		c.sized = bytes > 0
		c.core.SetFlowSize(bytes)
	})
}

// SetSchedulerHint gives the connection's scheduler a number, which its View
// has as Hint. The policy says what it means; those of package scheduler
// ignore it.
func (c *Conn) SetSchedulerHint(hint int64) error {
	return c.set("set", func(mono.Time) { c.core.SetHint(hint) })
}

// observe follows an event of the core. c.mu and the Stack's lock are held.
func (c *Conn) observe(e mpconn.Event) {
	c.trace.event(e, c.core.IsMPTCP())
	switch e.Kind {
	case mpconn.EventJoinable:
		c.proven = true
	case mpconn.EventSubflowUp:
		c.joined(e.ID, nil)
	case mpconn.EventSubflowLost:
		c.joined(e.ID, closeError(e.Close, e.Reset))
		if e.Close == reason.CloseRemoteReset {
			c.reset = e.Reset
		}
	case mpconn.EventFallback:
		c.fellBack = c.stack.now()
		if c.refuses && c.err == nil {
			c.err = ErrFallback
		}
	case mpconn.EventClosed:
		if c.err == nil {
			c.err = connError(e.Close, c.reset, c.core.Connected())
		}
		for id := range c.joins {
			c.joined(id, c.endError())
		}
		c.used = 0
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// joined tells AddSubflow what became of a subflow.
func (c *Conn) joined(id int, err error) {
	if ch, ok := c.joins[id]; ok {
		delete(c.joins, id)
		ch <- err
	}
}
