package wire

import (
	"encoding/binary"
	"net/netip"
)

// addEcho is the E flag in the third byte.
const addEcho = 0x01

// Lengths of the parts of ADD_ADDR.
const (
	addHead = 4
	lenIPv4 = 4
	lenIPv6 = 16
	lenPort = 2
)

// parse reads an ADD_ADDR (RFC 8684, Section 3.4.1, Figure 12):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-----+-+---------------+
//	|     Kind      |     Length    |Subtype|(rsv)|E|  Address ID   |
//	+---------------+---------------+-------+-----+-+---------------+
//	|           Address (IPv4: 4 octets / IPv6: 16 octets)          |
//	+-------------------------------+-------------------------------+
//	|   Port (2 octets, optional)   |                               |
//	+-------------------------------+                               |
//	|                Truncated HMAC (8 octets, if E=0)              |
//	+---------------------------------------------------------------+
//
// Length is 16 or 18 with a port (IPv4), 28 or 30 (IPv6); 8 less for an echo.
// Section 2.3 draws an echo with its HMAC; Section 3.4.1, which defines the
// option, leaves it out, and so do we.
//
// RFC 8684, Section 3.4.1: the three unassigned flags "MUST be set to 0 by a
// sender and MUST be ignored by the receiver".
func (a *AddAddr) parse(b []byte) bool {
	if len(b) < addHead {
		return false
	}
	m := AddAddr{Echo: b[2]&addEcho != 0, ID: b[3]}
	n := len(b) - addHead
	if !m.Echo {
		n -= len(m.HMAC)
	}
	b = b[addHead:]
	switch n {
	case lenIPv4, lenIPv4 + lenPort:
		m.Addr, b = netip.AddrFrom4([4]byte(b)), b[lenIPv4:]
		n -= lenIPv4
	case lenIPv6, lenIPv6 + lenPort:
		m.Addr, b = netip.AddrFrom16([16]byte(b)), b[lenIPv6:]
		n -= lenIPv6
	default:
		return false
	}
	if n == lenPort {
		m.Port, b = binary.BigEndian.Uint16(b), b[lenPort:]
	}
	if !m.Echo {
		copy(m.HMAC[:], b)
	}
	*a = m
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (a *AddAddr) size() int {
	if !a.Addr.IsValid() {
		return 0
	}
	n := addHead + a.Addr.BitLen()/8
	if a.Port != 0 {
		n += lenPort
	}
	if !a.Echo {
		n += len(a.HMAC)
	}
	return n
}

func (a *AddAddr) appendTo(b []byte) []byte {
	head := byte(subAddAddr << 4)
	if a.Echo {
		head |= addEcho
	}
	b = append(b, kindMPTCP, byte(a.size()), head, a.ID)
	if a.Addr.Is4() {
		p := a.Addr.As4()
		b = append(b, p[:]...)
	} else {
		p := a.Addr.As16()
		b = append(b, p[:]...)
	}
	if a.Port != 0 {
		b = binary.BigEndian.AppendUint16(b, a.Port)
	}
	if !a.Echo {
		b = append(b, a.HMAC[:]...)
	}
	return b
}
