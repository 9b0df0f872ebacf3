package host

import (
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// Step follows the events of c: it keeps the tables, gives connections whose
// handshake is done to their listener, and runs the path manager. The driver
// calls it whenever c.HasEvents reports true, then polls c again. If a
// connection became ready to be accepted, its listener is returned.
func (h *Host) Step(now mono.Time, c *Conn) (accepted *Listener) {
	for c.HasEvents() {
		if c.tick {
			c.tick = false
			h.Feed(now, c, pathmgr.Event{Kind: pathmgr.Tick})
			continue
		}
		if c.queued() {
			c.watch, c.sized = 0, c.FlowSize()
			h.Feed(now, c, pathmgr.Event{Kind: pathmgr.DataQueued, Bytes: c.Written()})
			continue
		}
		if c.news {
			c.news, c.measure = false, now.Add(measureEvery)
			h.measureLive(now, c)
			continue
		}
		e, ok := c.PollEvent()
		if !ok {
			break // there were figures to take over
		}
		if l := h.follow(now, c, e); l != nil {
			accepted = l
		}
		if h.cfg.Observe != nil {
			h.cfg.Observe(now, c, e)
		}
	}
	h.takeOver(c)
	return accepted
}

// follow brings the tables up to date with one event.
func (h *Host) follow(now mono.Time, c *Conn, e mpconn.Event) (accepted *Listener) {
	t := tuple{e.Local, e.Remote}
	joined := (e.Kind == mpconn.EventSubflowUp || e.Kind == mpconn.EventSubflowLost) && h.joined(c, e.ID)
	h.countEvent(c, &e, joined)
	switch e.Kind {
	case mpconn.EventConnected:
		h.learnOffer(now, c)
		h.learnFastOpen(now, c)
		if c.listener != nil {
			c.listener.promote(c)
			return c.listener
		}
	case mpconn.EventJoinable:
		h.Feed(now, c, pathmgr.Event{Kind: pathmgr.Established, Local: c.first.local.Addr(), Remote: c.first.remote})
	case mpconn.EventSubflowOpened:
		h.tuples.bind(t, c, e.ID)
		h.noteLink(c, e)
	case mpconn.EventSubflowUp:
		h.endFastOpen(now, c, reason.CloseNone)
		h.Feed(now, c, flowEvent(pathmgr.SubflowUp, e))
	case mpconn.EventSubflowLost:
		h.measure(now, c, e)
		h.tuples.unbind(t, c, e.ID)
		h.Feed(now, c, flowEvent(pathmgr.SubflowLost, e))
	case mpconn.EventTimeWait:
		h.tuples.unbind(t, c, e.ID)
		h.timeWait.add(now, t, *e.TimeWait)
	case mpconn.EventPriority:
		h.Feed(now, c, flowEvent(pathmgr.PriorityChanged, e))
	case mpconn.EventAddrAnnounced:
		// A known id with another port: that is the port to try now.
		c.forgetRemote(e.RemoteID)
		c.remotes = append(c.remotes, pathmgr.Remote{ID: e.RemoteID, Addr: e.Remote})
		h.Feed(now, c, flowEvent(pathmgr.AddrAnnounced, e))
	case mpconn.EventAddrRefreshed:
		// RFC 8684, Section 3.9.3: a failed address is tried again if "the other
		// host refreshes the information with another ADD_ADDR option"; policies
		// forget failures when they hear of it.
		h.Feed(now, c, flowEvent(pathmgr.AddrAnnounced, e))
	case mpconn.EventAddrWithdrawn:
		c.forgetRemote(e.RemoteID)
		h.Feed(now, c, flowEvent(pathmgr.AddrWithdrawn, e))
	case mpconn.EventSharedBottleneck:
		h.Feed(now, c, pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: e.Group})
	case mpconn.EventFallback:
		h.fallback(now, c)
	case mpconn.EventClosed:
		c.policy, c.wake = nil, 0
		h.fastOpenEnded(now, c, e.Close)
		h.endFastOpen(now, c, e.Close)
		h.unregister(c)
	}
	return nil
}

// maxLinks bounds the subflows whose links are known.
const maxLinks = 128

// noteLink keeps the name of a subflow's link: its address may be gone when
// somebody asks.
func (h *Host) noteLink(c *Conn, e mpconn.Event) {
	for _, l := range h.cfg.Locals() {
		if l.Addr != e.Local.Addr() {
			continue
		}
		if len(c.links) == maxLinks {
			c.links = slices.Delete(c.links, 0, 1)
		}
		c.links = append(c.links, link{e.ID, l.Link})
		return
	}
}

// link is the name of a subflow's link.
type link struct {
	id   int
	name string
}

// Link returns the name of the link on which a subflow began.
func (c *Conn) Link(id int) string {
	for _, l := range c.links {
		if l.id == id {
			return l.name
		}
	}
	return ""
}

// forgetRemote drops what the peer said of an address id.
func (c *Conn) forgetRemote(id uint8) {
	c.left = c.left || id == 0
	c.remotes = slices.DeleteFunc(c.remotes, func(r pathmgr.Remote) bool { return r.ID == id })
}

// flowEvent returns the path manager's form of an event.
func flowEvent(k pathmgr.Kind, e mpconn.Event) pathmgr.Event {
	return pathmgr.Event{
		Kind: k, Local: e.Local.Addr(), Remote: e.Remote, RemoteID: e.RemoteID,
		Subflow: e.ID, Close: e.Close, Reset: e.Reset,
		// A middlebox sends its RST without MP_TCPRST; its mind may change.
		Transient: e.Transient || e.Reset == reason.ResetUnspecified,
	}
}

// fallback ends what only MPTCP connections have.
func (h *Host) fallback(now mono.Time, c *Conn) {
	h.tokens.release(c)
	c.policy, c.wake, c.tick = nil, 0, false
	if c.cfg.RequireMPTCP {
		c.Abort(now)
	}
}

// measure remembers what a subflow that ended learnt about its path, and adds
// its figures to the connection's.
func (h *Host) measure(now mono.Time, c *Conn, e mpconn.Event) {
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		s := &h.subflows[i]
		if s.ID != e.ID {
			continue
		}
		if c.ended == nil {
			c.ended = &SubflowTotals{}
		}
		c.ended.add(&s.TCP)
		for d, n := range s.TCP.Drops {
			h.counters.ConnDrops[d] += n
		}
		h.recordPath(s, c.measure.Set())
	}
}

// AddrUp tells c that a local address became usable.
func (h *Host) AddrUp(now mono.Time, c *Conn, addr netip.Addr) {
	h.Feed(now, c, pathmgr.Event{Kind: pathmgr.LocalAddrUp, Local: addr})
}

// AddrDown tells c that a local address is gone, with the subflows on it.
func (h *Host) AddrDown(now mono.Time, c *Conn, addr netip.Addr) {
	h.Feed(now, c, pathmgr.Event{Kind: pathmgr.LocalAddrDown, Local: addr})
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		if s := &h.subflows[i]; s.Close == reason.CloseNone && s.Local.Addr() == addr {
			c.FailSubflow(now, s.ID)
		}
	}
}

// Feed shows an event to the path manager of c and obeys its commands. Step
// does it for the events of the connection; the driver feeds those that come
// from elsewhere, as DataQueued. Once both streams have ended nothing is left to do.
func (h *Host) Feed(now mono.Time, c *Conn, e pathmgr.Event) {
	if c.policy == nil || c.Closed() || c.Ended() {
		return
	}
	e.Now = now.Duration()
	h.commands = c.policy.Handle(h.viewOf(now, c), e, h.commands[:0])
	for _, cmd := range h.commands {
		if !h.obey(now, c, cmd) {
			h.counters.CommandsFailed++
		}
	}
}

// obey applies one command. It reports false if that was not possible.
func (h *Host) obey(now mono.Time, c *Conn, cmd pathmgr.Command) bool {
	switch cmd.Verb {
	case pathmgr.OpenSubflow:
		_, err := h.Open(now, c, mpconn.OpenArgs{
			Local: cmd.Local, Remote: cmd.Remote, RemoteID: cmd.RemoteID, Backup: cmd.Backup,
		})
		return err == nil
	case pathmgr.CloseSubflow:
		return c.CloseSubflow(now, cmd.Subflow, cmd.Reset)
	case pathmgr.AnnounceAddr:
		return c.AnnounceAs(now, cmd.Local, cmd.Bound)
	case pathmgr.WithdrawAddr:
		return c.Withdraw(now, cmd.Local.Addr())
	case pathmgr.SetBackup:
		return c.SetBackup(now, cmd.Subflow, cmd.Backup)
	case pathmgr.Bequeath:
		return c.Bequeath(cmd.Subflow, cmd.Heir)
	case pathmgr.Wake:
		c.wake = mono.Time(cmd.At)
	case pathmgr.Watch:
		c.watch = cmd.Bytes
	case pathmgr.Measure:
		c.measure = now.Add(measureEvery)
	case pathmgr.Withhold:
		l := reason.LimitSubflows
		if !cmd.Remote.IsValid() {
			l = reason.LimitAddresses
		}
		c.JoinStopped(cmd.Local, cmd.Remote, l)
	default:
		return false
	}
	return true
}

// viewOf returns what the path manager of c may see; it is valid until the
// next call.
func (h *Host) viewOf(now mono.Time, c *Conn) *pathmgr.View {
	v := &h.view
	h.viewAt = now
	v.Measured = h.measured
	v.Size, v.Written, v.Acked = c.cfg.FlowSize, 0, 0
	v.Active, v.Limits = c.active, c.limits()
	v.Locals = h.cfg.Locals()
	v.Routable = h.cfg.Routable
	v.Remotes, v.Subflows = v.Remotes[:0], v.Subflows[:0]
	if c.Conn == nil {
		return v
	}
	v.Size, v.Written, v.Acked = c.FlowSize(), c.Written(), int64(c.Totals().BytesAcked)
	show := func(r pathmgr.Remote) {
		// RFC 8684, Section 3.1, on flag C: "the receiver MUST NOT try to open
		// any additional subflows toward this address and port."
		if r.Addr != c.first.remote || !c.PeerDeniesInitial() {
			v.Remotes = append(v.Remotes, r)
		}
	}
	if !c.left {
		show(pathmgr.Remote{Addr: c.first.remote})
	}
	for _, r := range c.remotes {
		show(r)
	}
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		s := &h.subflows[i]
		if s.Close != reason.CloseNone && !h.tuples.bound(tuple{s.Local, s.Remote}, c, s.ID) {
			continue
		}
		// One that is over is shown until the policy hears of its end, lest it
		// be opened again at once while others end at the same time.
		v.Subflows = append(v.Subflows, pathmgr.Subflow{
			ID: s.ID, Local: s.Local, Remote: s.Remote, RemoteID: s.RemoteID,
			Established: s.Up && s.Close == reason.CloseNone, Backup: s.Backup, PeerBackup: s.PeerBackup, Stale: s.Stale, SRTT: s.TCP.SRTT, Rate: s.TCP.DeliveryRate,
		})
	}
	return v
}
