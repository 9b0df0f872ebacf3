package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// packet is a packet on a link, small because links hold many of them: what
// nearly every segment has by value, the rest by reference. Where the
// simulation is not a fast one it also has the TCP header as bytes, which the
// receiver parses, so that the codec is part of it.
type packet struct {
	at    mono.Time // of its arrival
	n     uint64    // its place among events of that time
	epoch uint32    // of the direction, when it was sent

	size       int32 // bytes of the IP packet
	payloadLen int32

	wire.Header
	ecn     wire.ECN
	corrupt bool
	numSACK uint8
	has     wire.OptionSet

	tsVal, tsEcr uint32
	src, dst     netip.AddrPort
	dss          wire.DSS
	payload      []byte        // the first view of the sender's
	more         [][]byte      // the others
	others       *wire.Options // all options, if there are any but the usual
	head         []byte        // the header as bytes; nil = not made
	sack         [4]wire.SACKBlock
}

// usual are the options that a packet has by value.
const usual = wire.OptTimestamps | wire.OptDSS | wire.OptSACK

// set makes p the packet of a segment. What it had before is gone.
func (p *packet) set(seg *wire.Segment) {
	p.Header, p.ecn, p.corrupt = seg.Header, seg.ECN, false
	p.src, p.dst = seg.Src, seg.Dst
	p.has, p.others, p.head = seg.Has, nil, nil
	p.tsVal, p.tsEcr = seg.TSVal, seg.TSEcr
	if seg.Has&wire.OptDSS != 0 {
		p.dss = seg.DSS
	}
	if p.numSACK = 0; seg.Has&wire.OptSACK != 0 {
		p.numSACK, p.sack = seg.NumSACK, seg.SACK
	}
	if seg.Has&^usual != 0 || seg.Bad != 0 {
		o := seg.Options
		p.others = &o
	}
	p.payload, p.more = nil, nil
	if len(seg.Payload) > 0 {
		p.payload = seg.Payload[0]
		if len(seg.Payload) > 1 {
			p.more = append(p.more, seg.Payload[1:]...)
		}
	}
	n := seg.PayloadLen()
	p.payloadLen, p.size = int32(n), int32(headersSize(seg)+n)
}

// fill makes seg, which must be empty, the segment in the packet.
func (p *packet) fill(seg *wire.Segment) {
	seg.Src, seg.Dst, seg.Header = p.src, p.dst, p.Header
	if p.others != nil {
		seg.Options = *p.others
	} else {
		seg.Has, seg.TSVal, seg.TSEcr = p.has, p.tsVal, p.tsEcr
		if p.has&wire.OptDSS != 0 {
			seg.DSS = p.dss
		}
		if p.has&wire.OptSACK != 0 {
			seg.NumSACK, seg.SACK = p.numSACK, p.sack
		}
	}
	p.carry(seg)
}

// carry gives seg, which has no payload, that of the packet, and its ECN field.
func (p *packet) carry(seg *wire.Segment) {
	seg.ECN = p.ecn
	if p.payload != nil {
		seg.Payload = append(append(seg.Payload, p.payload), p.more...)
	}
}

// build makes the header as bytes.
func (p *packet) build() {
	var seg wire.Segment
	p.fill(&seg)
	var head [wire.MaxHeader]byte
	p.head = append([]byte(nil), head[:wire.Build(&head, &seg)]...)
	p.size = int32(headerIPv6 + len(p.head))
	if p.src.Addr().Is4() {
		p.size = int32(headerIPv4 + len(p.head))
	}
	p.size += p.payloadLen
}

// packetQueue is the packets on a link in the order in which they arrive: a
// ring of values.
type packetQueue struct {
	ring  []packet // its length is a power of two
	head  int
	count int
}

// push returns the place of a new last packet, which the caller fills.
func (q *packetQueue) push() *packet {
	// One place stays free: that of the packet that was popped last, which may
	// still be looked at.
	if q.count+1 >= len(q.ring) {
		q.grow()
	}
	p := &q.ring[(q.head+q.count)&(len(q.ring)-1)]
	q.count++
	return p
}

// unpush takes the last packet back.
func (q *packetQueue) unpush() { q.count-- }

func (q *packetQueue) grow() {
	ring := make([]packet, max(16, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

// first returns the first packet; there must be one.
func (q *packetQueue) first() *packet { return &q.ring[q.head] }

// pop takes the first packet out, which stays valid until the next pop.
func (q *packetQueue) pop() *packet {
	p := &q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
	return p
}
