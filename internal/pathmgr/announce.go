package pathmgr

import (
	"net/netip"
	"slices"
)

// explicit replaces the announcements of another policy.
type explicit struct {
	inner  Policy
	list   []netip.AddrPort
	listed bool // the list was announced
}

// Announcing returns the policies of inner, which announce the addresses of
// list instead of those that the host has. It is for hosts behind a NAT or a
// load balancer, whose peers know them by other addresses than they know
// themselves: list is what reaches this host from outside. Port 0 means the
// port of the connection. Announcements beyond the limit of addresses are left
// out.
func Announcing(inner Factory, list []netip.AddrPort) Factory {
	list = slices.Clone(list)
	return func() Policy { return &explicit{inner: inner(), list: list} }
}

// Handle implements Policy.
func (x *explicit) Handle(v *View, e Event, cmds []Command) []Command {
	given := len(cmds)
	cmds = x.inner.Handle(v, e, cmds)
	n := given
	for _, c := range cmds[given:] {
		if c.Verb != AnnounceAddr {
			cmds[n] = c
			n++
		}
	}
	cmds = cmds[:n]
	if e.Kind != Established || x.listed {
		return cmds
	}
	x.listed = true
	for _, a := range x.list[:min(len(x.list), v.Limits.WithDefaults().Accepted)] {
		if a = unmap(a); announceable(a.Addr()) {
			cmds = append(cmds, Command{Verb: AnnounceAddr, Local: a})
		}
	}
	return cmds
}
