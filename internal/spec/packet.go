package spec

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// packetOf writes a segment as bytes. raw are option bytes that follow those
// of the segment: scripts write there what package wire refuses to build.
func packetOf(seg *wire.Segment, raw []byte, now mono.Time) Packet {
	var b [wire.MaxHeader]byte
	n := wire.Build(&b, seg)
	header := append([]byte(nil), b[:n]...)
	header = append(header, raw...)
	for len(header)%4 != 0 {
		header = append(header, 0)
	}
	if len(header) > wire.MaxHeader {
		panic("spec: a script's options take more than 40 bytes")
	}
	header[dataOffset] = byte(len(header)/4) << 4
	wire.PutChecksum(header, wire.TCPChecksum(seg.Src.Addr(), seg.Dst.Addr(), header, seg.Payload))
	tcp := header
	for _, v := range seg.Payload {
		tcp = append(tcp, v...)
	}
	return Packet{Src: seg.Src.Addr(), Dst: seg.Dst.Addr(), ECN: seg.ECN, TCP: tcp, At: now}
}

// dataOffset is the place of the data offset in the TCP header.
const dataOffset = 12

// In is a segment that the target sent.
type In struct {
	wire.Segment
	At  mono.Time
	TCP []byte // as it came
}

// parse reads a packet of the target; ok is false if it is no TCP segment.
func parse(p Packet) (in *In, ok bool) {
	n := wire.HeaderLen(p.TCP)
	if n < 0 {
		return nil, false
	}
	in = &In{At: p.At, TCP: p.TCP}
	if wire.Parse(p.TCP[:n], &in.Segment) != reason.DropNone {
		return nil, false
	}
	src, dst := wire.Ports(p.TCP)
	in.Src, in.Dst, in.ECN = addrPort(p.Src, src), addrPort(p.Dst, dst), p.ECN
	if len(p.TCP) > n {
		in.Payload = append(in.Payload, p.TCP[n:])
	}
	return in, true
}

// Data returns the payload.
func (in *In) Data() []byte {
	if len(in.Payload) == 0 {
		return nil
	}
	return in.Payload[0]
}

// Intact reports whether the TCP checksum is right.
func (in *In) Intact() bool {
	n := wire.HeaderLen(in.TCP)
	return wire.TCPChecksum(in.Src.Addr(), in.Dst.Addr(), in.TCP[:n], [][]byte{in.TCP[n:]}) == 0
}

// option returns the bytes of the first TCP option of a kind, and, of kind 30,
// of a subtype; nil if there is none.
func (in *In) option(kind byte, subtype int) []byte {
	b := in.TCP[wire.HeaderSize:wire.HeaderLen(in.TCP)]
	for len(b) > 0 {
		switch {
		case b[0] == 0:
			return nil
		case b[0] == 1:
			b = b[1:]
			continue
		case len(b) < 2 || b[1] < 2 || int(b[1]) > len(b):
			return nil
		}
		o := b[:b[1]]
		if o[0] == kind && (kind != kindMPTCP || subtype < 0 || len(o) > 2 && int(o[2]>>4) == subtype) {
			return o
		}
		b = b[b[1]:]
	}
	return nil
}

// kindMPTCP is the option kind of MPTCP; the subtypes are those of RFC 8684,
// Section 7.2. Scripts look at bytes where package wire reads over them.
const kindMPTCP = 30

// MPTCP option subtypes.
const (
	anySubtype    = -1
	subCapable    = 0
	subJoin       = 1
	subDSS        = 2
	subAddAddr    = 3
	subRemoveAddr = 4
	subPrio       = 5
	subFail       = 6
	subFastClose  = 7
	subTCPRst     = 8
)
