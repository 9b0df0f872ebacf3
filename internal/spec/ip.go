package spec

import (
	"encoding/binary"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// IP protocol numbers.
const (
	protocolICMP = 1
	protocolTCP  = 6
)

// ipPacket puts an IP header before a payload.
func ipPacket(src, dst netip.Addr, protocol byte, ecn wire.ECN, payload []byte) []byte {
	if src.Is4() {
		b := make([]byte, headerIPv4, headerIPv4+len(payload))
		b[0], b[1] = 0x45, byte(ecn)
		binary.BigEndian.PutUint16(b[2:], uint16(headerIPv4+len(payload)))
		b[6] = 0x40 // don't fragment
		b[8], b[9] = 64, protocol
		copy(b[12:], src.AsSlice())
		copy(b[16:], dst.AsSlice())
		binary.BigEndian.PutUint16(b[10:], checksum(b))
		return append(b, payload...)
	}
	b := make([]byte, headerIPv6, headerIPv6+len(payload))
	binary.BigEndian.PutUint32(b, 6<<28|uint32(ecn)<<20)
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6], b[7] = protocol, 64
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
	return append(b, payload...)
}

// checksum is the Internet checksum of bytes whose checksum field is zero.
func checksum(b []byte) uint16 {
	// The checksum of a mapping is that of its payload where all else is zero.
	return wire.DSSChecksum(wire.Sum(b, 0), 0, 0, 0)
}

// tcpPacket reads an IP packet; ok is false if it is no whole TCP segment.
func tcpPacket(b []byte, now mono.Time) (p Packet, ok bool) {
	if len(b) < headerIPv4 {
		return p, false
	}
	p.At = now
	switch b[0] >> 4 {
	case 4:
		n, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		if b[9] != protocolTCP || n < headerIPv4 || total < n || total > len(b) {
			return p, false
		}
		p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
		p.ECN, p.TCP = wire.ECN(b[1]&3), b[n:total]
	case 6:
		if len(b) < headerIPv6 || b[6] != protocolTCP {
			return p, false
		}
		p.Src, p.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		p.ECN, p.TCP = wire.ECN(b[1]>>4&3), b[headerIPv6:]
	default:
		return p, false
	}
	return p, len(p.TCP) >= wire.HeaderSize
}

// icmpMessage returns an ICMP error that quotes an IPv4 packet: its header and
// 8 bytes (RFC 792).
func icmpMessage(e ICMP, quoted []byte) []byte {
	b := make([]byte, 8)
	switch e {
	case ICMPNet:
		b[0], b[1] = 3, 0
	case ICMPHost:
		b[0], b[1] = 3, 1
	case ICMPTooBig:
		b[0], b[1] = 3, 4
		binary.BigEndian.PutUint16(b[6:], icmpMTU)
	case ICMPQuench:
		b[0] = 4
	}
	b = append(b, quoted[:headerIPv4+8]...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}
