package sim

import "github.com/gomptcp/gomptcp/internal/wire"

// packet is a packet on a link: a segment that is no longer than a packet, and
// views of the sender's payload. Where the simulation is not a fast one it
// also has the TCP header as bytes, which the receiver parses, so that the
// codec is part of it.
type packet struct {
	seg     wire.Segment
	head    [wire.MaxHeader]byte
	headLen int // 0 = no bytes were made
	size    int // bytes of the IP packet
	corrupt bool
}

func (p *packet) header() []byte { return p.head[:p.headLen] }

// newPacket makes a packet of a segment.
func (s *Sim) newPacket(seg *wire.Segment) *packet {
	p := s.emptyPacket()
	p.seg.CopyOf(seg)
	p.size = packetSize(seg)
	p.headLen, p.corrupt = 0, false
	if !s.fast {
		p.headLen = wire.Build(&p.head, seg)
	}
	return p
}

func (s *Sim) clonePacket(p *packet) *packet {
	q := s.emptyPacket()
	q.seg.CopyOf(&p.seg)
	q.head, q.headLen, q.size, q.corrupt = p.head, p.headLen, p.size, p.corrupt
	return q
}

func (s *Sim) emptyPacket() *packet {
	if n := len(s.packets); n > 0 {
		p := s.packets[n-1]
		s.packets = s.packets[:n-1]
		return p
	}
	return &packet{}
}

// freePacket takes back a packet that nobody refers to.
func (s *Sim) freePacket(p *packet) {
	clear(p.seg.Payload)
	p.seg.Payload = p.seg.Payload[:0]
	s.packets = append(s.packets, p)
}
