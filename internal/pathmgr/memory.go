package pathmgr

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// memory is what a policy remembers of its connection: what was opened first,
// what was announced, and which pairs of addresses failed.
type memory struct {
	joinable  bool // Established has come
	initial   pair // of the first subflow; its local address is zero once withdrawn
	announced []netip.Addr
	failed    failures
	wake      time.Duration // the Tick asked for; 0 = none
}

// begin keeps what an event says, answers what every policy answers alike, and
// reports whether the subflows and announcements are to be looked at.
func (m *memory) begin(v *View, e *Event, cmds []Command) (_ []Command, look bool) {
	m.learn(v, e)
	if e.Kind == LocalAddrDown {
		cmds = m.retire(v, e.Local.Unmap(), cmds)
	}
	switch e.Kind {
	case Established, AddrAnnounced, AddrWithdrawn, LocalAddrUp, SubflowLost, Tick:
		return cmds, m.joinable
	}
	return cmds, false
}

// learn keeps what the event says about pairs: which are worth trying.
func (m *memory) learn(v *View, e *Event) {
	switch e.Kind {
	case Established:
		m.joinable = true
		for i := range v.Subflows {
			if s := &v.Subflows[i]; s.ID == 0 {
				m.initial = pairOf(s.Local.Addr(), s.Remote)
			}
		}
	case AddrAnnounced, AddrWithdrawn:
		remote := unmap(e.Remote)
		m.failed.forget(func(x *failure) bool {
			return x.remoteID == e.RemoteID || x.pair.remote == remote
		})
	case LocalAddrUp:
		// Deviation: RFC 8684, Section 3.9.3, lets only the peer lift what
		// the end of a handshake put on its address. A new local address is
		// a new path, and the one that is left may be the only one.
		local := e.Local.Unmap()
		m.failed.forget(func(x *failure) bool { return x.pair.local == local || x.verdict == shunRemote })
	case LocalAddrDown:
		local := e.Local.Unmap()
		m.failed.forget(func(x *failure) bool { return x.pair.local == local && x.verdict != shunRemote })
	case SubflowUp:
		up := pairOf(e.Local, e.Remote)
		m.failed.forget(func(x *failure) bool {
			return x.pair == up || x.verdict == shunRemote && x.pair.remote == up.remote
		})
	case SubflowLost:
		// What is not known any more will be refreshed before it is tried.
		m.failed.forget(func(x *failure) bool {
			return !v.hasRemote(x.pair.remote) || x.verdict != shunRemote && !v.hasLocal(x.pair.local)
		})
		if lost := pairOf(e.Local, e.Remote); v.Active && v.hasLocal(lost.local) && v.hasRemote(lost.remote) {
			m.failed.add(lost, e, len(v.Subflows) == 0)
		}
	case Tick:
		m.wake = 0
	}
}

func (v *View) hasLocal(a netip.Addr) bool {
	return slices.ContainsFunc(v.Locals, func(l Local) bool { return l.Addr.Unmap() == a })
}

func (v *View) hasRemote(a netip.AddrPort) bool {
	return slices.ContainsFunc(v.Remotes, func(r Remote) bool { return unmap(r.Addr) == a })
}

// room returns how many more subflows the limit allows.
func (v *View) room() int {
	return max(v.Limits.WithDefaults().Subflows-len(v.Subflows), 0)
}

// pairs calls f for each pair of a usable local and a known remote address
// that may be tried now, in the order in which they are listed.
func (m *memory) pairs(v *View, now time.Duration, f func(candidate)) {
	for _, l := range v.Locals {
		for _, r := range v.Remotes {
			p := pairOf(l.Addr, r.Addr)
			if !m.failed.bars(p, now) && p.possible(v.Routable) {
				f(candidate{p, l.Backup, r.ID})
			}
		}
	}
}

// rest asks for a Tick when the next failed pair may be tried, unless an
// earlier one is on its way.
func (m *memory) rest(now time.Duration, cmds []Command) []Command {
	at := m.failed.next(now)
	if at == 0 || m.wake > now && m.wake <= at {
		return cmds
	}
	m.wake = at
	return append(cmds, Command{Verb: Wake, At: at})
}

// announce tells the peer each local address once, but for the one that it
// knows from the first subflow.
func (m *memory) announce(v *View, cmds []Command) []Command {
	for _, l := range v.Locals {
		a := l.Addr.Unmap()
		if a == m.initial.local || !announceable(a) || slices.Contains(m.announced, a) {
			continue
		}
		if len(m.announced) >= v.Limits.WithDefaults().Accepted {
			return append(cmds, Command{Verb: Withhold, Local: netip.AddrPortFrom(a, 0)})
		}
		m.announced = append(m.announced, a)
		cmds = append(cmds, Command{Verb: AnnounceAddr, Local: netip.AddrPortFrom(a, 0), Backup: l.Backup})
	}
	return cmds
}

// retire closes the subflows of a local address that went away and tells the
// peer, whom no RST from that address would reach. RFC 8684, Section 3.4.2:
// "the affected host SHOULD announce this situation so that the peer can
// remove subflows related to this address". An address is known to the peer
// by an announcement or by a subflow that it was used for.
func (m *memory) retire(v *View, local netip.Addr, cmds []Command) []Command {
	known := slices.Contains(m.announced, local)
	for i := range v.Subflows {
		s := &v.Subflows[i]
		if s.Local.Addr().Unmap() == local {
			known = true
			cmds = append(cmds, Command{Verb: CloseSubflow, Subflow: s.ID, Reset: reason.ResetUnspecified})
		}
	}
	m.announced = slices.DeleteFunc(m.announced, func(a netip.Addr) bool { return a == local })
	if local == m.initial.local {
		// Withdrawn like any other, it must be announced when it is back.
		m.initial.local = netip.Addr{}
	}
	if known && m.joinable {
		cmds = append(cmds, Command{Verb: WithdrawAddr, Local: netip.AddrPortFrom(local, 0)})
	}
	return cmds
}

// candidate is a subflow that may be opened.
type candidate struct {
	pair     pair
	backup   bool
	remoteID uint8
}

// command returns the command that opens it.
func (c *candidate) command() Command {
	return Command{
		Verb:     OpenSubflow,
		Local:    netip.AddrPortFrom(c.pair.local, 0),
		Remote:   c.pair.remote,
		RemoteID: c.remoteID,
		Backup:   c.backup,
	}
}

// withheld tells that a limit stops the subflow.
func (c *candidate) withheld() Command {
	cmd := c.command()
	cmd.Verb = Withhold
	return cmd
}
