package simnet

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/mptcp"
)

// Net is a set of nodes and links. All methods of this package may be called
// concurrently.
type Net struct {
	origin time.Time
	seed   uint64
	held   atomic.Int64

	mu    sync.Mutex // guards all below; not held while packets are delivered
	nodes []*Node
	links []*Link
}

// New returns a network without nodes. The chances of its links follow from
// seed.
func New(seed uint64) *Net { return &Net{origin: time.Now(), seed: seed} }

func (n *Net) now() mono.Time { return mono.Time(time.Since(n.origin)) + 1 }

// Close closes the Stacks of all nodes and drops what is under way.
func (n *Net) Close() {
	n.mu.Lock()
	nodes, links := n.nodes, n.links
	n.mu.Unlock()
	for _, node := range nodes {
		node.Stack.Close()
	}
	for _, l := range links {
		for _, d := range l.ways {
			d.stop()
		}
	}
}

// Held returns how many delivered packets' memory has not been given back.
func (n *Net) Held() int { return int(n.held.Load()) }

// Node is a host: a Stack and its links.
type Node struct {
	*mptcp.Stack
	net *Net

	mu     sync.RWMutex // leaf; guards all below
	locals []mptcp.LocalAddr
	routes map[route]*direction
}

// route is a pair of addresses that a link joins.
type route struct{ local, remote netip.Addr }

// Node adds a host whose Stack has the given configuration.
func (n *Net) Node(cfg *mptcp.Config) *Node {
	node := &Node{net: n, routes: make(map[route]*direction)}
	node.Stack = mptcp.NewStack((*network)(node), cfg)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes = append(n.nodes, node)
	return node
}

// End is one end of a link.
type End struct {
	Node   *Node
	Addr   netip.Addr
	Backup bool // the address is to be used as a last resort
}

// LinkConfig describes a link.
type LinkConfig struct {
	Shape link.Config  // of both directions
	Back  *link.Config // of the direction from the second end to the first; nil = Shape
	MTU   int          // bytes of an IP packet; 0 = 1500
	// SegmentMax is the payload of super-segments that the ends may send; they
	// are cut before they reach the link. 0 = none.
	SegmentMax int
}

// Join adds a link between two ends, both of which may have other links with
// the same or with other addresses. It is up, and the ends are told.
func (n *Net) Join(name string, a, b End, cfg LinkConfig) *Link {
	for _, shape := range []*link.Config{&cfg.Shape, cfg.Back} {
		if shape == nil {
			continue
		}
		if err := shape.Validate(); err != nil {
			panic(err)
		}
	}
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	if cfg.Back == nil {
		cfg.Back = &cfg.Shape
	}
	l := &Link{name: name, ends: [2]End{a, b}}
	n.mu.Lock()
	seed := n.seed + uint64(len(n.links))
	l.ways = [2]*direction{
		newDirection(n, b.Node, cfg, cfg.Shape, seed, 0),
		newDirection(n, a.Node, cfg, *cfg.Back, seed, 1),
	}
	n.links = append(n.links, l)
	n.mu.Unlock()
	l.Plug()
	return l
}

// Link joins two ends.
type Link struct {
	name string
	ends [2]End
	ways [2]*direction // from the first end, from the second
}

// SetUp makes the link carry packets, or drop them all without a word, those
// under way included.
func (l *Link) SetUp(up bool) {
	for _, d := range l.ways {
		d.setUp(up)
	}
}

// SetShape changes both directions.
func (l *Link) SetShape(shape link.Config) {
	for _, d := range l.ways {
		d.setShape(shape)
	}
}

// Plug gives the ends their addresses, and the routes over the link.
func (l *Link) Plug() {
	for i, e := range l.ends {
		e.Node.add(l.name, e, l.ends[1-i].Addr, l.ways[i])
	}
}

// Unplug takes from the ends what Plug gave them.
func (l *Link) Unplug() {
	for i, e := range l.ends {
		e.Node.remove(l.name, e, l.ends[1-i].Addr)
	}
}

// add gives the node an address and a route, and tells its Stack.
func (n *Node) add(name string, e End, remote netip.Addr, d *direction) {
	n.mu.Lock()
	known := n.index(e.Addr) >= 0
	n.routes[route{e.Addr, remote}] = d
	if !known {
		// Locals may be in use: the slice is replaced, not changed.
		locals := append([]mptcp.LocalAddr(nil), n.locals...)
		n.locals = append(locals, mptcp.LocalAddr{Addr: e.Addr, Link: name, Backup: e.Backup})
	}
	n.mu.Unlock()
	if !known {
		n.AddrUp(e.Addr)
	}
}

// remove takes a route from the node, and the address that has no other.
func (n *Node) remove(name string, e End, remote netip.Addr) {
	n.mu.Lock()
	delete(n.routes, route{e.Addr, remote})
	left := false
	for r := range n.routes {
		left = left || r.local == e.Addr
	}
	i := n.index(e.Addr)
	gone := !left && i >= 0
	if gone {
		locals := append([]mptcp.LocalAddr(nil), n.locals[:i]...)
		n.locals = append(locals, n.locals[i+1:]...)
	}
	n.mu.Unlock()
	if gone {
		n.AddrDown(e.Addr)
	}
}

// index returns the place of an address among locals, -1 if it is not there.
func (n *Node) index(a netip.Addr) int {
	for i, l := range n.locals {
		if l.Addr == a {
			return i
		}
	}
	return -1
}

// network is the mptcp.Network of a node.
type network Node

// Locals implements mptcp.Network.
func (n *network) Locals() []mptcp.LocalAddr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.locals
}

// Path implements mptcp.Network.
func (n *network) Path(local, remote netip.Addr) (mptcp.PathInfo, bool) {
	d := n.way(local, remote)
	if d == nil {
		return mptcp.PathInfo{}, false
	}
	return mptcp.PathInfo{MTU: d.mtu - ipHeader(remote), SegmentMax: d.segmentMax}, true
}

// Source implements mptcp.Network.
func (n *network) Source(remote netip.Addr) (netip.Addr, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var backup netip.Addr
	for _, l := range n.locals {
		if n.routes[route{l.Addr, remote}] == nil {
			continue
		}
		if !l.Backup {
			return l.Addr, true
		}
		backup = l.Addr
	}
	return backup, backup.IsValid()
}

// Allocator implements mptcp.Network.
func (n *network) Allocator() mptcp.BlockAllocator { return nil }

// Send implements mptcp.Network.
func (n *network) Send(batch []mptcp.Packet) {
	for len(batch) > 0 {
		d := n.way(batch[0].Src.Addr(), batch[0].Dst.Addr())
		i := 1
		for i < len(batch) && n.way(batch[i].Src.Addr(), batch[i].Dst.Addr()) == d {
			i++
		}
		if d != nil {
			d.send(batch[:i])
		}
		batch = batch[i:]
	}
}

func (n *network) way(local, remote netip.Addr) *direction {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.routes[route{local, remote}]
}

// ipHeader returns the length of the IP header before a packet to a.
func ipHeader(a netip.Addr) int {
	if a.Is4() {
		return 20
	}
	return 40
}
