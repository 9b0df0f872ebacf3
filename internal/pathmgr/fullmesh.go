package pathmgr

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// fullMesh opens a subflow between every usable local and every known remote
// address that have a route and are of one family.
//
// Only the side that opened the connection opens subflows. The other one
// announces its addresses and leaves the opening to its peer: RFC 8684,
// Section 2.7: "Setting up a new TCP flow is not possible if the receiver of
// the SYN is behind a NAT; to allow subflows to be created when either end is
// behind a NAT, MPTCP uses the ADD_ADDR message." If both sides opened, each
// pair would also get two subflows.
type fullMesh struct {
	joinable  bool       // Established has come
	initial   netip.Addr // local address of the first subflow
	announced []netip.Addr
	failed    failures
	wake      time.Duration // the Tick asked for; 0 = none
}

func newFullMesh() Policy { return &fullMesh{} }

// Handle implements Policy. It returns at most as many commands as there are
// subflows and local addresses, and one Wake.
func (f *fullMesh) Handle(v *View, e Event, cmds []Command) []Command {
	f.learn(v, &e)
	if e.Kind == LocalAddrDown {
		cmds = f.retire(v, e.Local.Unmap(), cmds)
	}
	if !f.joinable {
		return cmds
	}
	switch e.Kind {
	case Established, AddrAnnounced, AddrWithdrawn, LocalAddrUp, SubflowLost, Tick:
		if v.Active {
			cmds = f.open(v, e.Now, cmds)
			return f.rest(e.Now, cmds)
		}
		return f.announce(v, cmds)
	}
	return cmds
}

// learn keeps what the event says about pairs: which are worth trying.
func (f *fullMesh) learn(v *View, e *Event) {
	switch e.Kind {
	case Established:
		f.joinable = true
		for i := range v.Subflows {
			if s := &v.Subflows[i]; s.ID == 0 {
				f.initial = s.Local.Addr().Unmap()
			}
		}
	case AddrAnnounced, AddrWithdrawn:
		remote := unmap(e.Remote)
		f.failed.forget(func(x *failure) bool {
			return x.remoteID == e.RemoteID || x.pair.remote == remote
		})
	case LocalAddrUp:
		// Deviation: RFC 8684, Section 3.9.3, lets only the peer lift what
		// the end of a handshake put on its address. A new local address is
		// a new path, and the one that is left may be the only one.
		local := e.Local.Unmap()
		f.failed.forget(func(x *failure) bool { return x.pair.local == local || x.verdict == shunRemote })
	case LocalAddrDown:
		local := e.Local.Unmap()
		f.failed.forget(func(x *failure) bool { return x.pair.local == local && x.verdict != shunRemote })
	case SubflowUp:
		up := pairOf(e.Local, e.Remote)
		f.failed.forget(func(x *failure) bool {
			return x.pair == up || x.verdict == shunRemote && x.pair.remote == up.remote
		})
	case SubflowLost:
		// What is not known any more will be refreshed before it is tried.
		f.failed.forget(func(x *failure) bool {
			return !v.hasRemote(x.pair.remote) || x.verdict != shunRemote && !v.hasLocal(x.pair.local)
		})
		if lost := pairOf(e.Local, e.Remote); v.Active && v.hasLocal(lost.local) && v.hasRemote(lost.remote) {
			f.failed.add(lost, e)
		}
	case Tick:
		f.wake = 0
	}
}

func (v *View) hasLocal(a netip.Addr) bool {
	return slices.ContainsFunc(v.Locals, func(l Local) bool { return l.Addr.Unmap() == a })
}

func (v *View) hasRemote(a netip.AddrPort) bool {
	return slices.ContainsFunc(v.Remotes, func(r Remote) bool { return unmap(r.Addr) == a })
}

// open opens subflows until the mesh is full or the limit is reached. The
// pair whose addresses are used least comes first, so that under a limit
// every address is used before any is used twice; equals keep the order in
// which addresses are listed.
func (f *fullMesh) open(v *View, now time.Duration, cmds []Command) []Command {
	m := mesh{present: make([]pair, 0, DefaultSubflows)}
	for i := range v.Subflows {
		m.present = append(m.present, pairOf(v.Subflows[i].Local.Addr(), v.Subflows[i].Remote))
	}
	for _, l := range v.Locals {
		for _, r := range v.Remotes {
			p := pairOf(l.Addr, r.Addr)
			if !slices.Contains(m.present, p) && !f.failed.bars(p, now) && p.possible(v.Routable) {
				m.missing = append(m.missing, candidate{p, l.Backup, r.ID})
			}
		}
	}
	for range max(v.Limits.WithDefaults().Subflows-len(v.Subflows), 0) {
		c, ok := m.take()
		if !ok {
			break
		}
		cmds = append(cmds, Command{
			Verb:     OpenSubflow,
			Local:    netip.AddrPortFrom(c.pair.local, 0),
			Remote:   c.pair.remote,
			RemoteID: c.remoteID,
			Backup:   c.backup,
		})
	}
	return cmds
}

// rest asks for a Tick when the next failed pair may be tried, unless an
// earlier one is on its way.
func (f *fullMesh) rest(now time.Duration, cmds []Command) []Command {
	at := f.failed.next(now)
	if at == 0 || f.wake > now && f.wake <= at {
		return cmds
	}
	f.wake = at
	return append(cmds, Command{Verb: Wake, At: at})
}

// announce tells the peer each local address once, but for the one that it
// knows from the first subflow.
func (f *fullMesh) announce(v *View, cmds []Command) []Command {
	for _, l := range v.Locals {
		a := l.Addr.Unmap()
		if a == f.initial || !announceable(a) || slices.Contains(f.announced, a) ||
			len(f.announced) >= v.Limits.WithDefaults().Accepted {
			continue
		}
		f.announced = append(f.announced, a)
		cmds = append(cmds, Command{Verb: AnnounceAddr, Local: netip.AddrPortFrom(a, 0), Backup: l.Backup})
	}
	return cmds
}

// retire closes the subflows of a local address that went away and tells the
// peer, whom no RST from that address would reach. RFC 8684, Section 3.4.2:
// "the affected host SHOULD announce this situation so that the peer can
// remove subflows related to this address". An address is known to the peer
// by an announcement or by a subflow that it was used for.
func (f *fullMesh) retire(v *View, local netip.Addr, cmds []Command) []Command {
	known := slices.Contains(f.announced, local)
	for i := range v.Subflows {
		s := &v.Subflows[i]
		if s.Local.Addr().Unmap() == local {
			known = true
			cmds = append(cmds, Command{Verb: CloseSubflow, Subflow: s.ID, Reset: reason.ResetUnspecified})
		}
	}
	f.announced = slices.DeleteFunc(f.announced, func(a netip.Addr) bool { return a == local })
	if local == f.initial {
		// Withdrawn like any other, it must be announced when it is back.
		f.initial = netip.Addr{}
	}
	if known && f.joinable {
		cmds = append(cmds, Command{Verb: WithdrawAddr, Local: netip.AddrPortFrom(local, 0)})
	}
	return cmds
}

// candidate is a subflow that a mesh lacks.
type candidate struct {
	pair     pair
	backup   bool
	remoteID uint8
}

// mesh is the state of a round of opening.
type mesh struct {
	present []pair
	missing []candidate
}

// take moves the missing pair whose addresses are used least to those present.
func (m *mesh) take() (candidate, bool) {
	best, least := -1, 0
	for i := range m.missing {
		if n := m.uses(m.missing[i].pair); best < 0 || n < least {
			best, least = i, n
		}
	}
	if best < 0 {
		return candidate{}, false
	}
	c := m.missing[best]
	m.missing = slices.Delete(m.missing, best, best+1)
	m.present = append(m.present, c.pair)
	// The same address may be listed twice.
	m.missing = slices.DeleteFunc(m.missing, func(o candidate) bool { return o.pair == c.pair })
	return c, true
}

// uses counts how often the addresses of a pair are in use.
func (m *mesh) uses(p pair) int {
	n := 0
	for _, o := range m.present {
		if o.local == p.local {
			n++
		}
		if o.remote == p.remote {
			n++
		}
	}
	return n
}
