package wire

import (
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// Sizes of a TCP header in bytes (RFC 9293, Section 3.1).
const (
	HeaderSize = 20 // without options
	MaxOptions = 40 // room for options that the 4-bit data offset leaves
	MaxHeader  = HeaderSize + MaxOptions
)

// The fixed part of the header (RFC 9293, Figure 1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|          Source Port          |       Destination Port        |
//	+-------------------------------+-------------------------------+
//	|                        Sequence Number                        |
//	+---------------------------------------------------------------+
//	|                    Acknowledgment Number                      |
//	+-------+-------+---------------+-------------------------------+
//	| DOffs | Rsrvd |     Flags     |            Window             |
//	+-------+-------+---------------+-------------------------------+
//	|           Checksum            |         Urgent Pointer        |
//	+-------------------------------+-------------------------------+
const (
	offSeq      = 4
	offAck      = 8
	offData     = 12
	offFlags    = 13
	offWnd      = 14
	offChecksum = 16
	offUrgent   = 18
)

// HeaderLen returns the length in bytes of the TCP header at the start of b,
// options included, or -1 when b is too short for it or the data offset is
// less than a header.
func HeaderLen(b []byte) int {
	if len(b) < HeaderSize {
		return -1
	}
	n := int(b[offData]>>4) * 4
	if n < HeaderSize || n > len(b) {
		return -1
	}
	return n
}

// Ports returns the port fields of the TCP header at the start of b, zeros
// when b is too short for them.
func Ports(b []byte) (src, dst uint16) {
	if len(b) < 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}

// PutChecksum writes the checksum field of a header that Build made.
func PutChecksum(header []byte, sum uint16) {
	binary.BigEndian.PutUint16(header[offChecksum:], sum)
}

// parse reads the fixed header; b has at least HeaderSize bytes.
//
// RFC 9293, Section 3.1: the reserved bits "must be zero in generated segments
// and must be ignored in received segments".
func (h *Header) parse(b []byte) {
	_ = b[HeaderSize-1]
	h.Seq = seq.SSN(binary.BigEndian.Uint32(b[offSeq:]))
	h.Ack = seq.SSN(binary.BigEndian.Uint32(b[offAck:]))
	h.Flags = Flags(b[offFlags])
	h.Wnd = binary.BigEndian.Uint16(b[offWnd:])
	h.Urgent = binary.BigEndian.Uint16(b[offUrgent:])
}

// put writes the fixed header with a zero checksum; n is the header's whole
// length.
func (h *Header) put(b *[MaxHeader]byte, src, dst uint16, n int) {
	binary.BigEndian.PutUint16(b[0:], src)
	binary.BigEndian.PutUint16(b[2:], dst)
	binary.BigEndian.PutUint32(b[offSeq:], uint32(h.Seq))
	binary.BigEndian.PutUint32(b[offAck:], uint32(h.Ack))
	b[offData] = byte(n/4) << 4
	b[offFlags] = byte(h.Flags)
	binary.BigEndian.PutUint16(b[offWnd:], h.Wnd)
	binary.BigEndian.PutUint16(b[offChecksum:], 0)
	binary.BigEndian.PutUint16(b[offUrgent:], h.Urgent)
}
