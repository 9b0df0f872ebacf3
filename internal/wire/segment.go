package wire

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// Flags are the control bits of the TCP header (RFC 9293, Section 3.1).
type Flags uint8

// Control bits.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Has reports whether all bits of g are set in f.
func (f Flags) Has(g Flags) bool { return f&g == g }

// ECN is the ECN field of the IP header (RFC 3168, Section 5).
type ECN uint8

// ECN codepoints.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// Owner keeps payload memory alive; DecRef gives the reference back. A gVisor
// packet buffer is an Owner as it is.
type Owner interface{ DecRef() }

// Header is the fixed part of a TCP header without ports, which travel in
// Segment.Src and Segment.Dst.
type Header struct {
	Seq    seq.SSN
	Ack    seq.SSN // meaningful with ACK only
	Flags  Flags
	Wnd    uint16 // as on the wire, unscaled
	Urgent uint16
}

// Segment is one TCP segment, or a super-segment that the lowest layer cuts
// (see Split), in a form without bytes for everything but the payload. It is
// caller-owned and reused: Reset keeps the capacity of its slices.
type Segment struct {
	Src, Dst netip.AddrPort
	Header
	Options

	// Payload are views of memory that stays valid while Owner (inbound) or
	// the send queue's reference (outbound) is held.
	Payload [][]byte
	// Blocks are, outbound only, the allocator's handles of the memory behind
	// each Payload view, for adapters that share memory instead of copying.
	Blocks []any
	// Owner is, inbound only, a reference on the memory of Payload. Whoever
	// keeps payload takes it and sets it nil; the driver releases the rest.
	Owner Owner

	// ECN is the codepoint of the IP header.
	ECN ECN
	// SegSize is the payload size of each packet that a super-segment is cut
	// into; 0 means that the segment is one packet.
	SegSize int
}

// Reset empties the segment for reuse.
func (s *Segment) Reset() {
	clear(s.Payload)
	clear(s.Blocks)
	s.Src, s.Dst = netip.AddrPort{}, netip.AddrPort{}
	s.Header = Header{}
	s.Options.Reset()
	s.Payload, s.Blocks = s.Payload[:0], s.Blocks[:0]
	s.Owner, s.ECN, s.SegSize = nil, NotECT, 0
}

// PayloadLen returns the number of payload bytes.
func (s *Segment) PayloadLen() int {
	n := 0
	for _, p := range s.Payload {
		n += len(p)
	}
	return n
}

// Len returns SEG.LEN: payload bytes, with SYN and FIN counted as one each
// (RFC 9293, Section 3.4).
func (s *Segment) Len() int {
	n := s.PayloadLen()
	if s.Flags&SYN != 0 {
		n++
	}
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}
