package wire

import "encoding/binary"

// Version is the MPTCP version that this package's forms belong to.
const Version = 1

// Lengths of MP_CAPABLE by what it carries.
const (
	lenCapable         = 4
	lenCapableKey      = 12
	lenCapableKeys     = 20
	lenCapableData     = 22
	lenCapableDataCsum = 24
)

// maxVersion is the largest value of the 4-bit version field.
const maxVersion = 15

// parse reads an MP_CAPABLE (RFC 8684, Section 3.1, Figure 4):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-------+---------------+
//	|     Kind      |    Length     |Subtype|Version|A|B|C|D|E|F|G|H|
//	+---------------+---------------+-------+-------+---------------+
//	|         Sender's key (64 bits), if Length > 4                 |
//	+---------------------------------------------------------------+
//	|         Receiver's key (64 bits), if Length > 12              |
//	+-------------------------------+-------------------------------+
//	|  Data-Level Length, if > 20   |     Checksum, if Length > 22  |
//	+-------------------------------+-------------------------------+
//
// An option of another version is read as far as its length is one of ours, so
// that the connection can answer it: version 0 has its key already in the SYN,
// with 12 bytes. Of any other length only version and flags are taken.
func (c *MPCapable) parse(b []byte) bool {
	if len(b) < lenCapable {
		return false
	}
	m := MPCapable{Version: b[2] & 0x0f, Flags: CapableFlags(b[3])}
	switch len(b) {
	case lenCapable:
	case lenCapableKey:
		m.Keys = 1
	case lenCapableKeys:
		m.Keys = 2
	case lenCapableData:
		m.Keys, m.HasData = 2, true
	case lenCapableDataCsum:
		m.Keys, m.HasData, m.HasChecksum = 2, true, true
	default:
		if m.Version == Version {
			return false
		}
	}
	if m.Keys >= 1 {
		copy(m.SenderKey[:], b[4:])
	}
	if m.Keys == 2 {
		copy(m.ReceiverKey[:], b[12:])
	}
	if m.HasData {
		m.DataLen = binary.BigEndian.Uint16(b[20:])
	}
	if m.HasChecksum {
		m.Checksum = binary.BigEndian.Uint16(b[22:])
	}
	*c = m
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (c *MPCapable) size() int {
	switch {
	case c.Version > maxVersion:
		return 0
	case c.HasData && c.Keys != 2:
		return 0
	case c.HasData && c.HasChecksum:
		return lenCapableDataCsum
	case c.HasData:
		return lenCapableData
	case c.Keys == 0:
		return lenCapable
	case c.Keys == 1:
		return lenCapableKey
	case c.Keys == 2:
		return lenCapableKeys
	}
	return 0
}

func (c *MPCapable) appendTo(b []byte) []byte {
	b = append(b, kindMPTCP, byte(c.size()), subCapable<<4|c.Version, byte(c.Flags))
	if c.Keys >= 1 {
		b = append(b, c.SenderKey[:]...)
	}
	if c.Keys == 2 {
		b = append(b, c.ReceiverKey[:]...)
	}
	if c.HasData {
		b = binary.BigEndian.AppendUint16(b, c.DataLen)
		if c.HasChecksum {
			b = binary.BigEndian.AppendUint16(b, c.Checksum)
		}
	}
	return b
}
