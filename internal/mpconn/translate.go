package mpconn

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// translated is an announced address that is not the host's own: someone on the
// way, a NAT or a load balancer, leads what is sent there to one that is. The
// peer knows the subflows that it opens so by the id of the announcement.
type translated struct {
	id    uint8
	outer netip.AddrPort // as announced; port 0 = that of the connection
	inner netip.AddrPort // where it leads; port 0 = whatever; zero = not known yet
}

// leadsTo reports whether joins to the outer address are known to come to ap.
func (t *translated) leadsTo(ap netip.AddrPort) bool {
	return t.inner.Addr() == ap.Addr() && (t.inner.Port() == 0 || t.inner.Port() == ap.Port())
}

// AnnounceAs is Announce of an outer address that leads to inner, which may be
// zero: then the first join to an address that the peer was not told tells.
func (c *Conn) AnnounceAs(now mono.Time, outer, inner netip.AddrPort) bool {
	if !c.Announce(now, outer) {
		return false
	}
	own := c.cfg.OwnAddr != nil && c.cfg.OwnAddr(outer.Addr())
	id, _ := c.addrs.localID(outer.Addr())
	known := c.addrs.translation(func(t *translated) bool { return t.id == id && t.outer == outer })
	switch {
	case known != nil && inner.IsValid():
		known.inner = inner
	case known == nil && !own && (inner.IsValid() || c.cfg.OwnAddr != nil) && len(c.addrs.translated) < maxLocals:
		c.addrs.translated = append(c.addrs.translated, translated{id, outer, inner})
	}
	return true
}

// translation returns the only translated address that matches, or nil.
func (a *addresses) translation(match func(*translated) bool) (found *translated) {
	for i := range a.translated {
		t := &a.translated[i]
		if !match(t) {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}

// idOf returns the id under which the peer knows, or is to know, a local address
// and port, giving one if need be. It returns false when all ids are given.
func (a *addresses) idOf(local netip.AddrPort) (uint8, bool) {
	if t := a.translation(func(t *translated) bool { return t.leadsTo(local) }); t != nil {
		return t.id, true
	}
	return a.localID(local.Addr())
}

// joinedAt is idOf for an address to which the peer has opened a subflow: it
// must be one that the peer was told, under whatever name. If only one is left
// that it can be, that is the one.
func (a *addresses) joinedAt(local netip.AddrPort) (uint8, bool) {
	if a.translation(func(t *translated) bool { return t.leadsTo(local) }) != nil {
		return a.idOf(local)
	}
	open := func(t *translated) bool {
		return !t.inner.IsValid() && t.outer.Addr().Is4() == local.Addr().Is4()
	}
	byPort := a.translation(func(t *translated) bool {
		return open(t) && t.outer.Port() == local.Port() && local.Port() != a.initialPort
	})
	switch {
	case byPort != nil:
		byPort.inner = local
	case !a.told(local.Addr()):
		if t := a.translation(open); t != nil {
			t.inner = netip.AddrPortFrom(local.Addr(), 0)
		}
	}
	return a.idOf(local)
}

// told reports whether the peer knows a local address by its own name.
func (a *addresses) told(addr netip.Addr) bool {
	for _, l := range a.locals {
		if l == addr {
			return true
		}
	}
	return false
}
