package sim

import (
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Observer is told what the connections of a simulation do, for traces.
type Observer interface {
	// Sent and Received are told of every segment of a connection, before it
	// goes on the link and before the connection acts on it.
	Sent(c *Conn, seg *wire.Segment)
	Received(c *Conn, seg *wire.Segment)
	// Placed is told which subflow the scheduler gave a range.
	Placed(c *Conn, p mpconn.Placement)
	// Event is told what the host is told.
	Event(c *Conn, e mpconn.Event)
}

// Observe adds somebody who is told. It must come before the first connection.
func (s *Sim) Observe(o Observer) { s.observers = append(s.observers, o) }

// observed prepares a new connection for the observers.
func (c *Conn) observed() {
	all := c.node.sim.observers
	if len(all) == 0 {
		return
	}
	c.ObservePlacements(func(_ mono.Time, p mpconn.Placement) {
		for _, o := range all {
			o.Placed(c, p)
		}
	})
}

func (c *Conn) sent(seg *wire.Segment) {
	c.watch.sent(seg)
	for _, o := range c.node.sim.observers {
		o.Sent(c, seg)
	}
}

func (c *Conn) received(seg *wire.Segment) {
	c.watch.received(seg)
	for _, o := range c.node.sim.observers {
		o.Received(c, seg)
	}
}

// observeEvents returns a host's Observe that tells the observer, too.
func (s *Sim) observeEvents(other func(mono.Time, *host.Conn, mpconn.Event)) func(mono.Time, *host.Conn, mpconn.Event) {
	return func(now mono.Time, hc *host.Conn, e mpconn.Event) {
		if other != nil {
			other(now, hc, e)
		}
		if c, ok := hc.User.(*Conn); ok {
			for _, o := range s.observers {
				o.Event(c, e)
			}
		}
	}
}
