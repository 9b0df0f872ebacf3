package pathmgr

import "net/netip"

// Limits of a connection that sets none.
const (
	DefaultSubflows = 8
	DefaultAccepted = 8
)

// WithDefaults returns l with zero fields replaced by the defaults.
func (l Limits) WithDefaults() Limits {
	if l.Subflows == 0 {
		l.Subflows = DefaultSubflows
	}
	if l.Accepted == 0 {
		l.Accepted = DefaultAccepted
	}
	return l
}

// pair is what a subflow is opened between; its local port is free.
type pair struct {
	local  netip.Addr
	remote netip.AddrPort
}

func pairOf(local netip.Addr, remote netip.AddrPort) pair {
	return pair{local.Unmap(), unmap(remote)}
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// possible reports whether a subflow may be opened between the pair at all.
// The network is asked last: what the peer announced may be anything.
func (p pair) possible(routable func(local, remote netip.Addr) bool) bool {
	r := p.remote.Addr()
	return p.local.IsValid() && r.IsValid() && p.remote.Port() != 0 &&
		!r.IsUnspecified() && !r.IsMulticast() &&
		p.local.Is4() == r.Is4() &&
		(routable == nil || routable(p.local, r))
}

// announceable reports whether an address can mean something to a peer.
func announceable(a netip.Addr) bool { return a.IsGlobalUnicast() }
