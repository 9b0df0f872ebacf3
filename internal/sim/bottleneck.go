package sim

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/host"
)

// Bottlenecks is hosts on the left and on the right of paths that they share.
// Each path is a router on the left, one on the right and a link between them;
// each host has one interface, and one address, at every path that it uses.
// Packets stay on the path of their addresses.
type Bottlenecks struct {
	*Sim
	Left, Right []*Node
	Paths       []*Link // the shared links; left is A
}

// BottlenecksConfig says what Bottlenecks are like.
type BottlenecksConfig struct {
	Seed  uint64
	Fast  bool    // see NewFast
	Paths []Shape // of the shared links; one without a name is called pathI
	// Access is the shape of the links between hosts and routers; the zero
	// Shape is a perfect link.
	Access      Shape
	Left, Right int // hosts on each side; at most 65534
	// Uses reports whether a host, counted from 0 on its side, is at a path;
	// nil means that all are at all.
	Uses func(side End, host, path int) bool
	Host host.Config // of all hosts; see NewNode
}

// NewBottlenecks makes the network.
func NewBottlenecks(cfg BottlenecksConfig) *Bottlenecks {
	b := &Bottlenecks{Sim: newSim(cfg.Seed, cfg.Fast)}
	for i := range cfg.Left {
		b.Left = append(b.Left, b.NewNode(fmt.Sprintf("left%d", i), cfg.Host))
	}
	for i := range cfg.Right {
		b.Right = append(b.Right, b.NewNode(fmt.Sprintf("right%d", i), cfg.Host))
	}
	for i, shape := range cfg.Paths {
		name := cmp.Or(shape.Name, fmt.Sprintf("path%d", i))
		left, right := b.NewRouter(name+"-left"), b.NewRouter(name+"-right")
		l := b.Connect(name, IfaceConfig{Router: left}, IfaceConfig{Router: right}, shape)
		b.Paths = append(b.Paths, l)
		left.AddRoute(b.subnet(EndB, i), l)
		right.AddRoute(b.subnet(EndA, i), l)
		b.attach(&cfg, EndA, i, left)
		b.attach(&cfg, EndB, i, right)
	}
	return b
}

// attach links the hosts of one side that use a path to its router.
func (b *Bottlenecks) attach(cfg *BottlenecksConfig, side End, path int, r *Router) {
	nodes := b.Left
	if side == EndB {
		nodes = b.Right
	}
	for h, n := range nodes {
		if cfg.Uses != nil && !cfg.Uses(side, h, path) {
			continue
		}
		b.Connect(b.Paths[path].Name, IfaceConfig{
			Node: n, Addrs: []netip.Addr{b.Addr(side, h, path)}, Routes: []netip.Prefix{b.subnet(side.Other(), path)},
		}, IfaceConfig{Router: r}, cfg.Access)
	}
}

// Addr returns the address at a path of a host, counted from 0 on its side.
func (b *Bottlenecks) Addr(side End, host, path int) netip.Addr {
	net := b.subnet(side, path).Addr().As4()
	net[2], net[3] = byte((host+1)>>8), byte(host+1)
	return netip.AddrFrom4(net)
}

func (b *Bottlenecks) subnet(side End, path int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(2*path + int(side)), 0, 0}), 16)
}
