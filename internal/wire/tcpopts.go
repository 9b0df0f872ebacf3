package wire

import (
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// TCP's own options:
//
//	+------+------+--------------+
//	|  2   |  4   |     MSS      |                  RFC 9293, Section 3.7.1
//	+------+------+-------+------+
//	|  3   |  3   | shift |                         RFC 7323, Section 2.2
//	+------+------+-------+
//	|  4   |  2   |                                 RFC 2018, Section 2
//	+------+------+------------+------------+
//	|  5   | 2+8n | left (4)   | right (4)  | ...   RFC 2018, Section 3; n = 1 to 4
//	+------+------+------------+------------+
//	|  8   |  10  | TSval (4)  | TSecr (4)  |       RFC 7323, Section 3.2
//	+------+------+------------+------------+
//	|  34  | 2+n  | cookie (n)              |       RFC 7413, Section 4.1.1; n = 0, 4 to 16, even
//	+------+------+-------------------------+
const (
	lenMSS           = 4
	lenWScale        = 3
	lenSACKPermitted = 2
	lenSACKBlock     = 8
	lenTimestamps    = 10
)

func (o *Options) parseMSS(b []byte) bool {
	if len(b) != lenMSS {
		return false
	}
	o.MSS = binary.BigEndian.Uint16(b[2:])
	return true
}

func appendMSS(b []byte, mss uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, kindMSS, lenMSS), mss)
}

func (o *Options) parseWScale(b []byte) bool {
	if len(b) != lenWScale {
		return false
	}
	o.WScale = b[2]
	return true
}

func appendWScale(b []byte, shift uint8) []byte {
	return append(b, kindNOP, kindWScale, lenWScale, shift)
}

func (o *Options) parseSACK(b []byte) bool {
	n := (len(b) - 2) / lenSACKBlock
	if n < 1 || n > len(o.SACK) || len(b) != 2+n*lenSACKBlock {
		return false
	}
	for i := range n {
		p := b[2+i*lenSACKBlock:]
		o.SACK[i] = SACKBlock{
			Left:  seq.SSN(binary.BigEndian.Uint32(p)),
			Right: seq.SSN(binary.BigEndian.Uint32(p[4:])),
		}
	}
	o.NumSACK = uint8(n)
	return true
}

func appendSACK(b []byte, blocks []SACKBlock) []byte {
	b = append(b, kindNOP, kindNOP, kindSACK, byte(2+lenSACKBlock*len(blocks)))
	for _, s := range blocks {
		b = binary.BigEndian.AppendUint32(b, uint32(s.Left))
		b = binary.BigEndian.AppendUint32(b, uint32(s.Right))
	}
	return b
}

func (o *Options) parseTimestamps(b []byte) bool {
	if len(b) != lenTimestamps {
		return false
	}
	o.TSVal = binary.BigEndian.Uint32(b[2:])
	o.TSEcr = binary.BigEndian.Uint32(b[6:])
	return true
}

func appendTimestamps(b []byte, val, ecr uint32) []byte {
	b = append(b, kindTimestamps, lenTimestamps)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, val), ecr)
}

// legalCookie reports whether n is the length of a cookie, or of none.
//
// RFC 7413, Section 4.1.1: "Cookie 0, or 4 to 16 bytes"; the length "MUST be
// even".
func legalCookie(n int) bool {
	return n == 0 || n >= 4 && n <= len(FastOpen{}.Cookie) && n%2 == 0
}

func (f *FastOpen) parse(b []byte) bool {
	n := len(b) - 2
	if !legalCookie(n) {
		return false
	}
	*f = FastOpen{Len: uint8(n)}
	copy(f.Cookie[:], b[2:])
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (f *FastOpen) size() int {
	if !legalCookie(int(f.Len)) {
		return 0
	}
	return 2 + int(f.Len)
}

func (f *FastOpen) appendTo(b []byte) []byte {
	b = append(b, kindFastOpen, byte(f.size()))
	return append(b, f.Cookie[:f.Len]...)
}
