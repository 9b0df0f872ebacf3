package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
)

// App is a program that uses a connection.
type App interface {
	// Ready is called whenever something may have changed: data came, room
	// became free, the connection was set up or ended. It reports whether it
	// did anything, and is then called again after the connection was polled.
	Ready(now mono.Time, c *Conn) (acted bool)
}

// Conn is a connection of a simulated node.
type Conn struct {
	*host.Conn
	App App

	node  *Node
	armed mono.Time // of the earliest event in the heap; 0 = none
	late  int       // times in a row that a deadline was due again at once
	watch *watch    // nil in a fast simulation

	burstAt mono.Time // of the segments counted by burst
	burst   int
}

// maxLate is how often in a row a deadline may have come already when the
// connection was just polled. One that stays due would stop time.
const maxLate = 100

// Dial begins a connection for app. A zero local address is chosen.
func (n *Node) Dial(local, remote netip.AddrPort, cfg host.ConnConfig, app App) (*Conn, error) {
	hc, err := n.Host.Dial(n.sim.now, host.DialArgs{Local: local, Remote: remote, Conn: cfg})
	if err != nil {
		return nil, err
	}
	c := n.wrap(hc)
	c.App = app
	c.pump()
	return c, nil
}

// Listen accepts connections and gives each the App that accept returns.
func (n *Node) Listen(local netip.AddrPort, backlog int, cfg host.ConnConfig, accept func(*Conn) App) (*host.Listener, error) {
	l, err := n.Host.Listen(local, backlog, cfg)
	if err != nil {
		return nil, err
	}
	l.User = accept
	return l, nil
}

// Close ends a listener and aborts the connections that wait there.
func (n *Node) Close(l *host.Listener) {
	for _, hc := range n.Host.CloseListener(l) {
		hc.Abort(n.sim.now)
		hc.User.(*Conn).pump()
	}
}

func (n *Node) wrap(hc *host.Conn) *Conn {
	c := &Conn{Conn: hc, node: n}
	hc.User = c
	if !n.sim.fast {
		c.watch = newWatch(c)
		n.conns = append(n.conns, c)
	}
	c.observed()
	return c
}

// Node returns the node whose connection it is.
func (c *Conn) Node() *Node { return c.node }

// Wake lets the connection and its App look around, after something that the
// simulation does not know of.
func (c *Conn) Wake() { c.pump() }

// pump takes everything out of the connection and lets its App act, until
// neither has more to do, and arms its timer.
func (c *Conn) pump() {
	for {
		c.send()
		switch {
		case c.HasEvents():
			if l := c.node.Host.Step(c.node.sim.now, c.Conn); l != nil {
				c.node.accept(l)
			}
		case c.App == nil || !c.App.Ready(c.node.sim.now, c):
			c.node.flush()
			c.node.arm()
			c.arm()
			return
		}
	}
}

// accept gives every waiting connection of l its App.
func (n *Node) accept(l *host.Listener) {
	accept, _ := l.User.(func(*Conn) App)
	if accept == nil {
		return
	}
	for {
		hc, ok := l.Accept()
		if !ok {
			return
		}
		c := hc.User.(*Conn)
		c.App = accept(c)
	}
}

// maxBurst is how many segments a connection may have to send at one time. It
// is more than the largest window holds.
const maxBurst = 1 << 16

// send transmits every segment that is due.
func (c *Conn) send() {
	n := c.node
	if c.burstAt != n.sim.now {
		c.burstAt, c.burst = n.sim.now, 0
	}
	for n.out.Reset(); c.burst < maxBurst && c.PollSegment(n.sim.now, &n.out); n.out.Reset() {
		if c.burst++; c.burst == maxBurst {
			n.sim.violate("%s: no end of segments: %v", n.Name, &n.out)
		}
		c.sent(&n.out)
		n.transmit(&n.out)
	}
}

// arm makes sure that an event comes when the connection needs one.
func (c *Conn) arm() {
	s := c.node.sim
	at := c.Deadline()
	if !at.Set() || c.late > maxLate || c.armed.Set() && c.armed <= at {
		return
	}
	c.armed = max(at, s.now)
	s.push(c.armed, c)
}

// fire handles an event that arm asked for; those that an earlier one made
// superfluous pass by.
func (c *Conn) fire(at mono.Time) {
	if at != c.armed {
		return
	}
	c.armed = 0
	s := c.node.sim
	if !c.Deadline().Reached(s.now) {
		c.arm() // it was moved since
		return
	}
	c.HandleTimeout(s.now)
	c.pump()
	if !c.Deadline().Reached(s.now) {
		c.late = 0
	} else if c.late++; c.late > maxLate {
		s.violate("%s: a deadline stays due however often it is served", c.node.Name)
	}
}
