package wire

import "encoding/binary"

// dssHead is the length of kind, length, subtype and flags.
const dssHead = 4

// DSSLen returns the length in bytes, without padding, of a DSS option with
// these flags, and with a checksum if it has a mapping and asks for one. It is
// 0 for flags with neither DATA_ACK nor mapping: RFC 8684 gives such an option
// no meaning.
func DSSLen(f DSSFlags, checksum bool) int {
	n := dssHead
	if f&DSSAck != 0 {
		n += 4
		if f&DSSAck8 != 0 {
			n += 4
		}
	}
	if f&DSSMap != 0 {
		n += 4 + 4 + 2
		if f&DSSDSN8 != 0 {
			n += 4
		}
		if checksum {
			n += 2
		}
	}
	if n == dssHead {
		return 0
	}
	return n
}

// Known returns the flags that have a meaning: no reserved bits, a width only
// with its number, DATA_FIN only with the mapping that gives its DSN.
//
// RFC 8684, Section 3.3: 'The flags "a" and "m" only have meaning if the
// corresponding "A" or "M" flags are set; otherwise, they will be ignored.'
func (f DSSFlags) Known() DSSFlags {
	f &= dssKnown
	if f&DSSAck == 0 {
		f &^= DSSAck8
	}
	if f&DSSMap == 0 {
		f &^= DSSDSN8 | DSSFin
	}
	return f
}

// parse reads a DSS (RFC 8684, Section 3.3, Figure 9):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+----------------------+
//	|     Kind      |    Length     |Subtype| (reserved) |F|m|M|a|A|
//	+---------------+---------------+-------+----------------------+
//	|           Data ACK (4 or 8 octets, depending on flags)       |
//	+--------------------------------------------------------------+
//	|   Data Sequence Number (4 or 8 octets, depending on flags)   |
//	+--------------------------------------------------------------+
//	|              Subflow Sequence Number (4 octets)              |
//	+-------------------------------+------------------------------+
//	|  Data-Level Length (2 octets) |      Checksum (2 octets)     |
//	+-------------------------------+------------------------------+
//
// RFC 8684, Section 3.3: "The presence of the checksum can be inferred from the
// length of the option." Whether it ought to be there the connection knows.
func (d *DSS) parse(b []byte) bool {
	if len(b) < dssHead {
		return false
	}
	m := DSS{Flags: DSSFlags(b[3]).Known()}
	switch n := DSSLen(m.Flags, false); {
	case n == 0:
		return false
	case len(b) == n:
	case len(b) == n+2 && m.Flags&DSSMap != 0:
		m.HasChecksum = true
	default:
		return false
	}
	b = b[dssHead:]
	if m.Flags&DSSAck != 0 {
		m.Ack, b = number(b, m.Flags&DSSAck8 != 0)
	}
	if m.Flags&DSSMap != 0 {
		m.DSN, b = number(b, m.Flags&DSSDSN8 != 0)
		m.SSN = binary.BigEndian.Uint32(b)
		m.Len = binary.BigEndian.Uint16(b[4:])
		if m.HasChecksum {
			m.Checksum = binary.BigEndian.Uint16(b[6:])
		}
	}
	*d = m
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (d *DSS) size() int { return DSSLen(d.Flags, d.HasChecksum) }

func (d *DSS) appendTo(b []byte) []byte {
	f := d.Flags.Known()
	b = append(b, kindMPTCP, byte(d.size()), subDSS<<4, byte(f))
	if f&DSSAck != 0 {
		b = appendNumber(b, d.Ack, f&DSSAck8 != 0)
	}
	if f&DSSMap != 0 {
		b = appendNumber(b, d.DSN, f&DSSDSN8 != 0)
		b = binary.BigEndian.AppendUint32(b, d.SSN)
		b = binary.BigEndian.AppendUint16(b, d.Len)
		if d.HasChecksum {
			b = binary.BigEndian.AppendUint16(b, d.Checksum)
		}
	}
	return b
}

// number reads a number of 4 or, if wide, 8 bytes; it returns what follows.
func number(b []byte, wide bool) (uint64, []byte) {
	if wide {
		return binary.BigEndian.Uint64(b), b[8:]
	}
	return uint64(binary.BigEndian.Uint32(b)), b[4:]
}

// appendNumber writes n, or only its low half.
func appendNumber(b []byte, n uint64, wide bool) []byte {
	if wide {
		return binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}
