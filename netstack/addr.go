package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// toAddress converts an address for gVisor, which knows neither zones nor
// IPv4-mapped IPv6 addresses. An invalid address becomes the empty one, which
// gVisor takes for "any".
func toAddress(a netip.Addr) tcpip.Address {
	switch a = a.Unmap(); {
	case a.Is4():
		return tcpip.AddrFrom4(a.As4())
	case a.Is6():
		return tcpip.AddrFrom16(a.As16())
	}
	return tcpip.Address{}
}

// fromAddress converts an address of gVisor; the empty one becomes invalid.
func fromAddress(a tcpip.Address) netip.Addr {
	switch a.Len() {
	case 4:
		return netip.AddrFrom4(a.As4())
	case 16:
		return netip.AddrFrom16(a.As16())
	}
	return netip.Addr{}
}

// toSubnet converts a prefix, whose host bits are ignored.
func toSubnet(p netip.Prefix) tcpip.Subnet {
	return tcpip.AddressWithPrefix{Address: toAddress(p.Addr()), PrefixLen: p.Bits()}.Subnet()
}

// protocolOf returns the network protocol that carries packets to a.
func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Unmap().Is4() {
		return header.IPv4ProtocolNumber
	}
	return header.IPv6ProtocolNumber
}

// addressesOf returns the addresses in an IP header.
func addressesOf(ip []byte) (src, dst netip.Addr) {
	if ip[0]>>4 == header.IPv6Version {
		return netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
	}
	return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
}
