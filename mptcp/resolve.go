package mptcp

import (
	"context"
	"net"
	"net/netip"
)

// family is which addresses a network's name allows.
type family string

// familyOf returns the family that is asked for by the name of a network: ""
// for both, "4" or "6".
func familyOf(network string) (family, error) {
	switch network {
	case "mptcp", "tcp":
		return "", nil
	case "mptcp4", "tcp4":
		return "4", nil
	case "mptcp6", "tcp6":
		return "6", nil
	}
	return "", net.UnknownNetworkError(network)
}

func (f family) allows(a netip.Addr) bool {
	return f == "" || (f == "4") == a.Is4()
}

// resolve returns the addresses and the port of "host:port", in the order in
// which they are to be tried.
func resolve(ctx context.Context, r *net.Resolver, network, address string) ([]netip.AddrPort, error) {
	f, err := familyOf(network)
	if err != nil {
		return nil, err
	}
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = net.DefaultResolver
	}
	port, err := r.LookupPort(ctx, "tcp"+string(f), service)
	if err != nil {
		return nil, err
	}
	addrs := []netip.Addr{{}}
	if name != "" {
		if addrs, err = lookup(ctx, r, f, name); err != nil {
			return nil, err
		}
	}
	var out []netip.AddrPort
	for _, a := range addrs {
		if a = a.Unmap(); !a.IsValid() || f.allows(a) {
			out = append(out, netip.AddrPortFrom(a, uint16(port)))
		}
	}
	if len(out) == 0 {
		return nil, &net.AddrError{Err: "no suitable address", Addr: name}
	}
	return out, nil
}

// lookup returns the addresses of a host. An IP address is its own.
func lookup(ctx context.Context, r *net.Resolver, f family, name string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	return r.LookupNetIP(ctx, "ip"+string(f), name)
}
