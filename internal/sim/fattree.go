package sim

import (
	"fmt"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/host"
)

// FatTree is the datacenter of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008):
// k pods, each of k/2 edge and k/2 aggregation routers with k/2 hosts at each
// edge router, and (k/2)^2 core routers: k^3/4 hosts, any of which could send
// at full rate to any other if the (k/2)^2 shortest ways between two pods were
// used evenly. Routers choose among them by ECMP.
type FatTree struct {
	*Sim
	K                       int
	Hosts                   []*Node
	Edge, Aggregation, Core []*Router

	// HostLinks are the hosts' links, of which the host is end A, and
	// FabricLinks those between routers, of which the upper is end B.
	HostLinks, FabricLinks []*Link
}

// FatTreeConfig says what a FatTree is like.
type FatTreeConfig struct {
	Seed uint64
	Fast bool // see NewFast
	K    int  // ports of a router: even, 2 to 16
	Link Shape
	// HostLink is the shape of the hosts' links, of which the host is end A; nil =
	// Link.
	HostLink *Shape
	// Apart gives the subflows between two hosts different ways, drawn at random,
	// as long as there are some, instead of by ECMP. Those that have ended keep
	// theirs.
	Apart bool
	Host  host.Config // of all hosts; see NewNode
}

// NewFatTree makes a fat tree. Host i has the one address Addr(i).
func NewFatTree(cfg FatTreeConfig) *FatTree {
	if cfg.K < 2 || cfg.K > 16 || cfg.K%2 != 0 {
		panic(fmt.Sprintf("sim: a fat tree of routers with %d ports", cfg.K))
	}
	f := &FatTree{Sim: newSim(cfg.Seed, cfg.Fast), K: cfg.K}
	half := cfg.K / 2
	for i := range half * half {
		f.Core = append(f.Core, f.NewRouter(fmt.Sprintf("core%d", i)))
	}
	for pod := range cfg.K {
		for i := range half {
			f.Aggregation = append(f.Aggregation, f.NewRouter(fmt.Sprintf("aggregation%d.%d", pod, i)))
			for j := range half {
				f.join(f.Aggregation[pod*half+i], f.Core[i*half+j], cfg.Link)
			}
		}
		for i := range half {
			edge := f.NewRouter(fmt.Sprintf("edge%d.%d", pod, i))
			f.Edge = append(f.Edge, edge)
			for j := range half {
				f.join(edge, f.Aggregation[pod*half+j], cfg.Link)
			}
			for range half {
				f.addHost(edge, &cfg)
			}
		}
	}
	f.ComputeRoutes()
	if cfg.Apart {
		w := newWays(f.Rand(), cfg.K)
		for i := range f.Edge {
			f.Edge[i].pick, f.Aggregation[i].pick = w.toAggregation, w.toCore
		}
	}
	return f
}

func (f *FatTree) join(lower, upper *Router, shape Shape) {
	l := f.Connect(lower.Name+"-"+upper.Name, IfaceConfig{Router: lower}, IfaceConfig{Router: upper}, shape)
	f.FabricLinks = append(f.FabricLinks, l)
}

func (f *FatTree) addHost(edge *Router, cfg *FatTreeConfig) {
	i := len(f.Hosts)
	n := f.NewNode(fmt.Sprintf("host%d", i), cfg.Host)
	f.Hosts = append(f.Hosts, n)
	shape := cfg.Link
	if cfg.HostLink != nil {
		shape = *cfg.HostLink
	}
	l := f.Connect(n.Name, IfaceConfig{Node: n, Addrs: []netip.Addr{f.Addr(i)}}, IfaceConfig{Router: edge}, shape)
	f.HostLinks = append(f.HostLinks, l)
}

// Addr returns the address of a host: 10.pod.edge.n with n from 2 on.
func (f *FatTree) Addr(host int) netip.Addr {
	half := f.K / 2
	edge := host / half
	return netip.AddrFrom4([4]byte{10, byte(edge / half), byte(edge % half), byte(2 + host%half)})
}

// Permutation returns, for each host, the host that it sends to: a random
// permutation without fixed points, so that every host sends to one other and
// hears from one other.
func (f *FatTree) Permutation() []int {
	rng := f.Rand()
	to := make([]int, len(f.Hosts))
	for i := range to {
		to[i] = i
	}
	// Sattolo's algorithm: a cycle through all hosts.
	for i := len(to) - 1; i > 0; i-- {
		j := rng.IntN(i)
		to[i], to[j] = to[j], to[i]
	}
	return to
}
