package sim

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Router forwards packets between links. It has no addresses and no queue of
// its own: packets wait before the links. Where a destination has several next
// links of one cost, a hash of both addresses and ports chooses, so that the
// packets of one subflow stay on one of them (ECMP, RFC 2992).
type Router struct {
	Name string

	sim      *Sim
	ifaces   []*Iface
	hosts    map[netip.Addr][]*Direction // routes to single addresses
	prefixes []route                     // the others, longest first
	salt     uint64
	spray    func(src, dst netip.AddrPort) bool // nil = nothing
	pick     func(*packet) int                  // in place of the hash; nil = the hash chooses
	sprayed  uint64                             // packets
	lost     uint64
}

type route struct {
	to  netip.Prefix
	via []*Direction
}

// NewRouter makes a router without links. Its hash is not that of others.
func (s *Sim) NewRouter(name string) *Router {
	r := &Router{Name: name, sim: s, hosts: make(map[netip.Addr][]*Direction), salt: s.Rand().Uint64()}
	s.routers = append(s.routers, r)
	return r
}

// AddRoute sends packets to addresses within to over one of the links, which
// must end at the router. A longer prefix goes before a shorter one; the same
// again takes the place of the first.
func (r *Router) AddRoute(to netip.Prefix, via ...*Link) {
	var out []*Direction
	for _, l := range via {
		out = append(out, r.directionOf(l))
	}
	to = to.Masked()
	if to.IsSingleIP() {
		r.hosts[to.Addr()] = out
		return
	}
	r.prefixes = slices.DeleteFunc(r.prefixes, func(o route) bool { return o.to == to })
	at := slices.IndexFunc(r.prefixes, func(o route) bool { return o.to.Bits() < to.Bits() })
	if at < 0 {
		at = len(r.prefixes)
	}
	r.prefixes = slices.Insert(r.prefixes, at, route{to, out})
}

// directionOf returns the direction of a link that leads away from the router.
func (r *Router) directionOf(l *Link) *Direction {
	for _, i := range r.ifaces {
		if i.out == l.AB || i.out == l.BA {
			return i.out
		}
	}
	panic("sim: link " + l.Name + " does not end at router " + r.Name)
}

// Choice returns which of the next links of a destination, counted from 0, the
// packets of a subflow take; -1 if there is none.
func (r *Router) Choice(src, dst netip.AddrPort) int {
	via := r.lookup(dst.Addr())
	if len(via) == 0 {
		return -1
	}
	p := packet{src: src, dst: dst}
	if len(via) > 1 && r.pick != nil {
		return r.pick(&p)
	}
	return int(r.hash(&p) % uint64(len(via)))
}

// NoRoute returns how many packets the router dropped because it knew no way.
func (r *Router) NoRoute() uint64 { return r.lost }

// receive forwards a packet.
func (r *Router) receive(_ *Iface, p *packet) {
	via := r.lookup(p.dst.Addr())
	switch len(via) {
	case 0:
		r.lost++
	case 1:
		via[0].forward(p)
	default:
		if r.pick != nil {
			via[r.pick(p)].forward(p)
			return
		}
		h := r.hash(p)
		if r.spray != nil && r.spray(p.src, p.dst) {
			r.sprayed++
			h = mix(h ^ r.sprayed)
		}
		via[h%uint64(len(via))].forward(p)
	}
}

func (r *Router) lookup(dst netip.Addr) []*Direction {
	if via, ok := r.hosts[dst]; ok {
		return via
	}
	for i := range r.prefixes {
		if r.prefixes[i].to.Contains(dst) {
			return r.prefixes[i].via
		}
	}
	return nil
}

// hash mixes the 4-tuple with the router's own number.
func (r *Router) hash(p *packet) uint64 {
	h := r.salt ^ uint64(p.src.Port())<<16 ^ uint64(p.dst.Port())
	h = mix(h ^ folded(p.src.Addr()))
	return mix(h ^ folded(p.dst.Addr()))
}

func folded(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]) ^ mix(binary.BigEndian.Uint64(b[8:]))
}

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ComputeRoutes gives every router its routes to the addresses of every node:
// the next links of all shortest ways, counted in links. It is called after
// the last Connect; routes that AddRoute added to prefixes stay.
func (s *Sim) ComputeRoutes() {
	for _, n := range s.nodes {
		for _, i := range n.ifaces {
			if first, ok := i.peer.dev.(*Router); ok {
				s.routesTo(i, first)
			}
		}
	}
}

// routesTo finds the shortest ways to an interface by breadth-first search
// from the router that it is linked to.
func (s *Sim) routesTo(end *Iface, first *Router) {
	dist := map[*Router]int{first: 0}
	for queue := []*Router{first}; len(queue) > 0; queue = queue[1:] {
		for _, i := range queue[0].ifaces {
			if next, ok := i.peer.dev.(*Router); ok {
				if _, seen := dist[next]; !seen {
					dist[next] = dist[queue[0]] + 1
					queue = append(queue, next)
				}
			}
		}
	}
	for _, r := range s.routers {
		far, ok := dist[r]
		if !ok {
			continue
		}
		var via []*Direction
		for _, i := range r.ifaces {
			next, isRouter := i.peer.dev.(*Router)
			if d, ok := dist[next]; i.peer == end || isRouter && ok && d == far-1 {
				via = append(via, i.out)
			}
		}
		for _, a := range end.addrs {
			r.hosts[a] = via
		}
	}
}
