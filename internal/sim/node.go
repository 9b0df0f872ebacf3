package sim

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Node is a host with interfaces.
type Node struct {
	Name string
	Host *host.Host

	sim    *Sim
	ifaces []*Iface
	armed  mono.Time // of the host's earliest event in the heap; 0 = none
	conns  []*Conn   // every connection there ever was, in order; none in a fast simulation

	in, out, cut wire.Segment    // reused by every packet
	usable       []pathmgr.Local // reused by locals
	drops        [reason.NumDrops]uint64
}

// IfaceConfig says where a link ends.
type IfaceConfig struct {
	// Node or Router is whose interface it is.
	Node   *Node
	Router *Router
	Addrs  []netip.Addr // of a Node
	// Routes are the destinations that a Node can reach over the link; nil
	// means the addresses of the node at the other end, or everything if a
	// router is there.
	Routes []netip.Prefix
	Backup bool
}

// Iface is the end of a link at a node.
type Iface struct {
	dev        device
	name       string
	addrs      []netip.Addr
	public     []netip.Addr // of a translator before it
	routes     []netip.Prefix
	backup     bool
	down       bool // its addresses are gone
	mtu        int
	segmentMax int
	out        *Direction
	peer       *Iface
}

// NewNode makes a host without interfaces. cfg may set the ranges and times of
// a host; randomness, addresses and memory are the simulation's.
func (s *Sim) NewNode(name string, cfg host.Config) *Node {
	n := &Node{Name: name, sim: s}
	rng := s.Rand()
	cfg.Rand = rng.Uint64
	for i := 0; i < len(cfg.Secret); i += 8 {
		binary.BigEndian.PutUint64(cfg.Secret[i:], rng.Uint64())
	}
	cfg.Path, cfg.Routable, cfg.Locals = n.path, n.routable, n.locals
	cfg.Alloc = s.alloc
	cfg.Observe = s.observeEvents(cfg.Observe)
	n.Host = host.New(cfg)
	s.nodes = append(s.nodes, n)
	return n
}

func newIface(name string, cfg IfaceConfig, shape Shape) *Iface {
	i := &Iface{
		name: name, addrs: cfg.Addrs, routes: cfg.Routes, backup: cfg.Backup,
		mtu: shape.MTU, segmentMax: shape.SegmentMax,
	}
	if i.dev = cfg.Node; cfg.Router != nil {
		i.dev = cfg.Router
	}
	return i
}

// adopt makes the interface, whose link is complete, known to its device.
func (i *Iface) adopt() {
	switch dev := i.dev.(type) {
	case *Node:
		dev.ifaces = append(dev.ifaces, i)
	case *Router:
		dev.ifaces = append(dev.ifaces, i)
		if _, ok := i.peer.dev.(*Node); ok {
			for _, a := range i.peer.addrs {
				dev.hosts[a] = []*Direction{i.out}
			}
		}
	}
}

// reaches reports whether packets to dst can be sent over the interface.
func (i *Iface) reaches(dst netip.Addr) bool {
	if i.routes == nil {
		if _, ok := i.peer.dev.(*Router); ok {
			return true
		}
		return slices.Contains(i.peer.addrs, dst) || slices.Contains(i.peer.public, dst)
	}
	return slices.ContainsFunc(i.routes, func(p netip.Prefix) bool { return p.Contains(dst) })
}

// ifaceOf returns the usable interface with address a.
func (n *Node) ifaceOf(a netip.Addr) *Iface {
	for _, i := range n.ifaces {
		if !i.down && slices.Contains(i.addrs, a) {
			return i
		}
	}
	return nil
}

func (n *Node) routable(local, remote netip.Addr) bool {
	i := n.ifaceOf(local)
	return i != nil && local.Is4() == remote.Is4() && i.reaches(remote)
}

func (n *Node) path(local, _ netip.Addr) (mtu, segmentMax int) {
	i := n.ifaceOf(local)
	if i == nil {
		return 536, 0
	}
	if local.Is4() {
		return i.mtu - headerIPv4, i.segmentMax
	}
	return i.mtu - headerIPv6, i.segmentMax
}

func (n *Node) locals() []pathmgr.Local {
	all := n.usable[:0]
	for _, i := range n.ifaces {
		if i.down {
			continue
		}
		for _, a := range i.addrs {
			all = append(all, pathmgr.Local{Addr: a, Link: i.name, Backup: i.backup})
		}
	}
	n.usable = all
	return all
}

// SetAddrs takes the addresses of the node's end of a link away, or gives them
// back, and tells the connections.
func (n *Node) SetAddrs(l *Link, present bool) {
	for _, i := range n.ifaces {
		if i.out != l.AB && i.out != l.BA || i.down == !present {
			continue
		}
		i.down = !present
		tell := n.Host.AddrUp
		if i.down {
			tell = n.Host.AddrDown
		}
		var live []*Conn
		n.Host.Conns(func(hc *host.Conn) { live = append(live, hc.User.(*Conn)) })
		for _, c := range live {
			for _, a := range i.addrs {
				tell(n.sim.now, c.Conn, a)
			}
			c.pump()
		}
	}
}

// transmit cuts a segment into packets and puts them on the link that its
// source address belongs to.
func (n *Node) transmit(seg *wire.Segment) {
	i := n.ifaceOf(seg.Src.Addr())
	if i == nil || !i.reaches(seg.Dst.Addr()) {
		n.drops[reason.DropNoRoute]++
		return
	}
	if seg.SegSize == 0 {
		i.out.enter(seg)
		return
	}
	for cutter := wire.Split(seg); cutter.Next(&n.cut); {
		i.out.enter(&n.cut)
	}
}

// memory is the owner of received payload: the garbage collector is.
type memory struct{}

// DecRef does nothing.
func (memory) DecRef() {}

// receive takes a packet that arrived at an interface.
func (n *Node) receive(i *Iface, p *packet) {
	if i.down || !slices.Contains(i.addrs, p.dst.Addr()) && n.ifaceOf(p.dst.Addr()) == nil {
		n.drops[reason.DropAddress]++
		return
	}
	seg := &n.in
	seg.Reset()
	if n.sim.fast {
		p.fill(seg)
	} else {
		if d := wire.Parse(p.head, seg); d != reason.DropNone {
			n.drops[d]++
			return
		}
		seg.Src, seg.Dst = p.src, p.dst
		p.carry(seg)
	}
	seg.Owner = memory{}
	n.deliver(seg)
}

// deliver gives a segment to the connection it belongs to.
func (n *Node) deliver(seg *wire.Segment) {
	now := n.sim.now
	v := n.Host.Lookup(now, seg)
	switch v.Kind {
	case host.VerdictSegment:
		c := v.Conn.User.(*Conn)
		c.received(seg)
		c.HandleSegment(now, v.ID, seg)
		c.pump()
	case host.VerdictAccept:
		c := n.wrap(v.Conn)
		c.received(seg)
		c.pump()
	case host.VerdictJoin:
		c := v.Conn.User.(*Conn)
		if _, ok := n.Host.Join(now, v.Conn, seg); ok {
			c.received(seg)
			c.pump()
		}
		n.flush()
	case host.VerdictReply:
		n.flush()
	}
	n.arm()
}

// flush sends what the host itself has to say.
func (n *Node) flush() {
	for n.out.Reset(); n.Host.PollSegment(n.sim.now, &n.out); n.out.Reset() {
		n.transmit(&n.out)
	}
}

// arm makes sure that an event comes when the host needs one.
func (n *Node) arm() {
	at := n.Host.Deadline()
	if !at.Set() || n.armed.Set() && n.armed <= at {
		return
	}
	n.armed = max(at, n.sim.now)
	n.sim.push(n.armed, n)
}

// fire handles an event that arm asked for; those that an earlier one made
// superfluous pass by.
func (n *Node) fire(at mono.Time) {
	if at != n.armed {
		return
	}
	n.armed = 0
	n.Host.HandleTimeout(n.sim.now)
	n.flush()
	n.arm()
}

// Conns returns every connection that the node ever had, in order; in a fast
// simulation those that are not over, in a repeatable order.
func (n *Node) Conns() []*Conn {
	if !n.sim.fast {
		return n.conns
	}
	var live []*Conn
	n.Host.Conns(func(hc *host.Conn) { live = append(live, hc.User.(*Conn)) })
	return live
}

// PathOf returns the name of the link over which the node sends from an
// address; "" if the address is not the node's.
func (n *Node) PathOf(local netip.Addr) string {
	for _, i := range n.ifaces {
		if slices.Contains(i.addrs, local) {
			return i.name
		}
	}
	return ""
}

// Drops returns how many packets the node dropped before its host saw them,
// or could not send.
func (n *Node) Drops() [reason.NumDrops]uint64 { return n.drops }
