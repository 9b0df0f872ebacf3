package mpconn

import (
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

// EventKind tells events apart.
type EventKind uint8

// Events. They are about the connection's life and rare; readiness for data
// is read off the connection (Readable, WriteRoom, EOF, Err).
const (
	// EventConnected: the handshake of the first subflow is done.
	EventConnected EventKind = iota + 1
	// EventJoinable: the connection is MPTCP for good; joins are allowed.
	EventJoinable
	// EventSubflowOpened: subflow ID exists; its tuple must lead here.
	EventSubflowOpened
	// EventSubflowUp: subflow ID may carry data.
	EventSubflowUp
	// EventSubflowLost: subflow ID is no more; its tuple must not lead here.
	EventSubflowLost
	// EventTimeWait: the tuple of a subflow just lost is in TIME-WAIT.
	EventTimeWait
	// EventPriority: the peer asked, by MP_PRIO, to use subflow ID as backup, or
	// took that back.
	EventPriority
	// EventAddrAnnounced: the peer announced Remote under RemoteID.
	EventAddrAnnounced
	// EventAddrRefreshed: the peer announced Remote under RemoteID again, and no
	// subflow leads there: a join that failed may be tried once more.
	EventAddrRefreshed
	// EventAddrWithdrawn: the peer withdrew RemoteID, which was Remote, known with
	// its port from an announcement or a subflow.
	EventAddrWithdrawn
	// EventSharedBottleneck: the congestion control found that the subflows of
	// Group share a bottleneck. What it said before does not hold any more; an
	// empty Group means that none do.
	EventSharedBottleneck
	// EventJoinStopped: a subflow between Local and Remote was not opened, or
	// Remote not taken from an announcement, because of Limit. It is told once
	// for each limit, until a subflow that was up is lost.
	EventJoinStopped
	// EventFallback: the connection goes on as plain TCP for good.
	EventFallback
	// EventClosed: the connection is over; no other event follows.
	EventClosed
)

// Event is something the driver has to know.
type Event struct {
	Kind          EventKind
	ID            int // subflow
	Local, Remote netip.AddrPort
	RemoteID      uint8
	Close         reason.Close // of a lost subflow or the closed connection
	Reset         reason.Reset // MP_TCPRST code that came with a peer's reset
	Transient     bool         // MP_TCPRST said that the path may be tried again
	Fallback      reason.Fallback
	Proven        bool // of EventFallback: MPTCP had worked in both directions
	Backup        bool // of EventPriority
	Limit         reason.Limit
	TimeWait      *subflow.TimeWait // nil but for EventTimeWait
	Group         []int             // ids of subflows
}

// pending is an event that was not fetched yet. Every connection has a handful of
// them, mostly about a flow, which says the rest.
type pending struct {
	kind      EventKind
	close     reason.Close
	reset     reason.Reset
	fallback  reason.Fallback
	transient bool
	proven    bool
	backup    bool
	f         *flow             // nil = it is not about one
	timeWait  *subflow.TimeWait // nil but for EventTimeWait
	more      *Event            // nil = nothing but the above
}

// fewEvents is how many events there is room for from the first one on.
const fewEvents = 4

// event returns what the driver sees of p.
func (p *pending) event() Event {
	if p.more != nil {
		return *p.more
	}
	e := Event{
		Kind: p.kind, Close: p.close, Reset: p.reset, Fallback: p.fallback, Transient: p.transient, Proven: p.proven, Backup: p.backup, TimeWait: p.timeWait,
	}
	if f := p.f; f != nil {
		e.ID, e.Local, e.Remote, e.RemoteID = f.id, f.tcp.Local(), f.tcp.Remote(), f.remoteID
	}
	return e
}

// HasEvents reports whether PollEvent has something to give.
func (c *Conn) HasEvents() bool { return len(c.events) > 0 }

// PollEvent returns the next event.
func (c *Conn) PollEvent() (Event, bool) {
	if len(c.events) == 0 {
		return Event{}, false
	}
	e := c.events[0].event()
	n := copy(c.events, c.events[1:])
	c.events[n] = pending{}
	c.events = c.events[:n]
	return e, true
}

func (c *Conn) emit(p pending) {
	if c.events == nil {
		c.events = make([]pending, 0, fewEvents)
	}
	c.events = append(c.events, p)
}

// emitMore emits an event that is not about a flow, or not about that alone.
func (c *Conn) emitMore(e Event) { c.emit(pending{more: &e}) }

// JoinStopped says that a limit kept a subflow from being opened. Remote is what
// it would have led to, or Local what would have been announced; what is not
// known is zero.
func (c *Conn) JoinStopped(local, remote netip.AddrPort, l reason.Limit) {
	if bit := uint32(1) << l; c.stopped&bit == 0 {
		c.stopped |= bit
		c.emitMore(Event{Kind: EventJoinStopped, Local: local, Remote: remote, Limit: l})
	}
}

// tellShared emits what the congestion control found out about bottlenecks
// since it was asked last.
func (c *Conn) tellShared() {
	o, ok := c.group.(cc.BottleneckObserver)
	if !ok {
		return
	}
	sets, version := o.Shared()
	if version == c.sharedSeen {
		return
	}
	c.sharedSeen = version
	if len(sets) == 0 {
		c.emit(pending{kind: EventSharedBottleneck}) // not any more
	}
	for _, set := range sets {
		var ids []int
		for _, f := range c.flows {
			if slices.Contains(set, f.ctl) {
				ids = append(ids, f.id)
			}
		}
		c.emitMore(Event{Kind: EventSharedBottleneck, Group: ids})
	}
}
