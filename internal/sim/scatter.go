package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/scheduler"
)

// ScatterBytes is how much a connection sends by packet scatter before it
// becomes an ordinary MPTCP connection.
const ScatterBytes = 100_000

// Scatter is packet scatter then MPTCP, MMPTCP (Kheirkhah, Wakeman and Parisis,
// INFOCOM 2016), for datacenters with many equal paths: up to ScatterBytes a
// connection has one window and one sequence space, and each of its packets a
// path of its own; after that it has subflows, and the first one, as soon as
// there is another, gets no new data. A segment that begins before ScatterBytes
// belongs to the first phase.
//
// No subflow can do that by itself: its packets have one pair of ports, by which
// networks keep them on one path. So it exists in simulations only, where Routers
// spray the packets of the first subflow (Router.Spray).
type Scatter struct {
	// Subflows is how many there are in the second phase; 0 = 8.
	Subflows int
	// Paths is how many paths there are, which is how many duplicate ACKs the
	// connection waits for; 0 = 3, as without scatter. Later subflows wait as
	// long, though their packets keep their order.
	Paths int
}

const scatterSubflows = 8

// Conn returns the configuration of a connection that scatters first and is like
// conn then, but for its path manager.
func (s Scatter) Conn(conn host.ConnConfig) host.ConnConfig {
	if s.Subflows == 0 {
		s.Subflows = scatterSubflows
	}
	inner := conn.Scheduler
	conn.Scheduler = func() scheduler.Scheduler { return &scatter{inner: inner()} }
	conn.Limits.Subflows = s.Subflows + 1
	conn.PathManager = func() pathmgr.Policy { return &scatterPaths{inner: pathmgr.NDiffPorts(s.Subflows + 1)()} }
	conn.Subflow.DupThresh = max(s.Paths, conn.Subflow.DupThresh)
	return conn
}

// scatter is the scheduler of both phases.
type scatter struct {
	inner scheduler.Scheduler
	rest  scheduler.View
}

// scatterReason is what traces say of the first phase.
const scatterReason scheduler.Reason = "scattered"

// Pick implements scheduler.Scheduler.
func (s *scatter) Pick(v *scheduler.View) scheduler.Decision {
	if v.Ask == scheduler.Lost || len(v.Subflows) == 0 || v.Subflows[0].ID != 0 || v.Subflows[0].Stale {
		return s.inner.Pick(v)
	}
	if left := ScatterBytes - v.First; left > 0 && v.Ask == scheduler.Fresh {
		first := &v.Subflows[0]
		if first.Room == 0 {
			return scheduler.Decision{Wait: true, Reason: scheduler.ReasonNoRoom}
		}
		mss := int64(max(first.MSS, 1))
		return scheduler.Decision{Send: 1, Bytes: int((left + mss - 1) / mss * mss), Reason: scatterReason}
	}
	if len(v.Subflows) == 1 {
		return s.inner.Pick(v)
	}
	s.rest = *v
	s.rest.Subflows = v.Subflows[1:]
	s.rest.Carried >>= 1
	if v.Holders != nil {
		s.rest.Holders = func(off int64) (uint64, int64) {
			set, n := v.Holders(off)
			return set >> 1, n
		}
	}
	d := s.inner.Pick(&s.rest)
	d.Send, d.Penalise = d.Send<<1, d.Penalise<<1
	return d
}

// scatterPaths opens subflows when more was written than is scattered.
type scatterPaths struct {
	inner pathmgr.Policy
	long  bool
}

// Handle implements pathmgr.Policy.
func (s *scatterPaths) Handle(v *pathmgr.View, e pathmgr.Event, cmds []pathmgr.Command) []pathmgr.Command {
	if s.long || e.Kind == pathmgr.ChooseInitial {
		return s.inner.Handle(v, e, cmds)
	}
	joinable := e.Kind == pathmgr.Established || e.Kind == pathmgr.DataQueued
	switch {
	case joinable && v.Written > ScatterBytes:
		s.long = true
		e.Kind = pathmgr.Established
		return s.inner.Handle(v, e, cmds)
	case joinable:
		cmds = append(cmds, pathmgr.Command{Verb: pathmgr.Watch, Bytes: ScatterBytes + 1})
	}
	return cmds
}

// Spray has the router send each packet for which f reports true over a random
// one of the links that lead to its destination, whatever its ports are.
func (r *Router) Spray(f func(src, dst netip.AddrPort) bool) { r.spray = f }

// FirstSubflows notes the addresses from which connections were begun, for
// Router.Spray.
type FirstSubflows map[netip.AddrPort]bool

// Add adds the first subflow of a connection.
func (f FirstSubflows) Add(c *Conn) { f[c.LocalAddr()] = true }

// Has reports whether a packet belongs to a subflow that was added, in either
// direction.
func (f FirstSubflows) Has(src, dst netip.AddrPort) bool { return f[src] || f[dst] }
