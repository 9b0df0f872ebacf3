package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Sizes of IP headers in bytes.
const (
	headerIPv4 = 20
	headerIPv6 = 40
)

// Box is a middlebox at the entry of one direction of a link. It calls forward
// for each packet that goes on: none, the one it was given, changed or not, or
// several. Payload memory is the sender's: a box that changes bytes puts a
// copy into the segment. It may also call forward later, with a segment of its
// own.
type Box func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment))

// Shape says what a link is like in both directions.
type Shape struct {
	AB, BA     link.Config
	MTU        int // bytes of an IP packet; 0 = 1500
	SegmentMax int // payload bytes of super-segments, which are cut at the link; 0 = none
}

// Link joins two interfaces.
type Link struct {
	Name   string
	AB, BA *Direction
	up     bool
}

// Direction is one direction of a link.
type Direction struct {
	sim      *Sim
	model    *link.Link
	to       *Iface
	mtu      int
	id       int // among all directions; odd ones are BA
	epoch    uint32
	box      Box
	transmit func(*wire.Segment)
	stats    DirectionStats
}

// DirectionStats count what one direction of a link did.
type DirectionStats struct {
	Packets, Bytes uint64                 // offered, IP header included
	Drops          [link.DropDown + 1]int // by reason
	Corrupted      int
	Arrived        uint64 // packets
	ArrivedBytes   uint64 // payload
}

// Connect joins two interfaces by a new link, which is up.
func (s *Sim) Connect(name string, a, b IfaceConfig, shape Shape) *Link {
	if shape.MTU == 0 {
		shape.MTU = 1500
	}
	l := &Link{Name: name, up: true}
	ia, ib := a.Node.addIface(name, a, shape), b.Node.addIface(name, b, shape)
	ia.peer, ib.peer = ib, ia
	l.AB = s.newDirection(2*len(s.links), ib, shape.MTU, shape.AB)
	l.BA = s.newDirection(2*len(s.links)+1, ia, shape.MTU, shape.BA)
	ia.out, ib.out = l.AB, l.BA
	s.links = append(s.links, l)
	if s.capture != nil {
		s.capture.addLink(name)
	}
	return l
}

func (s *Sim) newDirection(id int, to *Iface, mtu int, cfg link.Config) *Direction {
	if err := cfg.Validate(); err != nil {
		panic("sim: " + err.Error())
	}
	d := &Direction{sim: s, model: link.New(cfg, s.Rand()), to: to, mtu: mtu, id: id}
	d.transmit = d.send
	return d
}

// Up reports whether the link carries packets.
func (l *Link) Up() bool { return l.up }

// SetUp takes the link down, with all packets under way, or brings it up. The
// hosts are not told: to them the path is dead.
func (l *Link) SetUp(up bool) {
	l.up = up
	for _, d := range [2]*Direction{l.AB, l.BA} {
		d.model.SetUp(up)
		if !up {
			d.epoch++
		}
	}
}

// SetShape changes one direction of the link while it runs.
func (d *Direction) SetShape(cfg link.Config) { d.model.SetConfig(cfg) }

// SetBox puts a middlebox before the direction, in place of any other; nil
// takes it away.
func (d *Direction) SetBox(b Box) { d.box = b }

// Addr returns an address at the direction's end.
func (d *Direction) Addr() netip.Addr { return d.to.addrs[0] }

// Stats returns a snapshot.
func (d *Direction) Stats() DirectionStats { return d.stats }

// enter takes a packet from the node at the direction's beginning.
func (d *Direction) enter(seg *wire.Segment) {
	if size := packetSize(seg); size > d.mtu {
		d.sim.violate("packet of %d bytes on a link with MTU %d: %v", size, d.mtu, seg)
	}
	if d.box != nil {
		d.box(d.sim.now, seg, d.transmit)
		return
	}
	d.send(seg)
}

// send gives a packet to the link.
func (d *Direction) send(seg *wire.Segment) {
	s := d.sim
	p := s.newPacket(seg)
	size := p.size()
	d.stats.Packets++
	d.stats.Bytes += uint64(size)
	if s.capture != nil {
		s.capture.write(s.now, d.id/2, p)
	}
	v := d.model.Offer(s.now, size, seg.ECN == wire.ECT0 || seg.ECN == wire.ECT1)
	d.stats.Drops[v.Drop]++
	if v.Drop != link.Delivered {
		s.freePacket(p)
		return
	}
	if v.Mark {
		p.ecn = wire.CE
	}
	p.corrupt = v.Corrupt >= 0
	if v.Duplicate != 0 {
		s.push(event{at: v.Duplicate, kind: eventArrive, dir: d, packet: s.clonePacket(p), epoch: d.epoch})
	}
	s.push(event{at: v.DeliverAt, kind: eventArrive, dir: d, packet: p, epoch: d.epoch})
}

// arrive hands a packet to the node at the direction's end.
func (d *Direction) arrive(p *packet, epoch uint32) {
	switch {
	case epoch != d.epoch: // the link went down meanwhile
		d.stats.Drops[link.DropDown]++
	case p.corrupt:
		// TCP's checksum, or that of IP, finds every single flipped bit.
		d.stats.Corrupted++
	default:
		d.stats.Arrived++
		d.stats.ArrivedBytes += uint64(p.payloadLen())
		d.sim.trace.add(d.sim.now, d.id, p)
		d.to.node.receive(d.to, p)
	}
	d.sim.freePacket(p)
}

// packet is a packet on a link: a TCP header as bytes, so that the codec is
// part of every simulation, and views of the sender's payload.
type packet struct {
	src, dst netip.AddrPort
	head     [wire.MaxHeader]byte
	headLen  int
	payload  [][]byte
	ecn      wire.ECN
	corrupt  bool
}

func (p *packet) header() []byte { return p.head[:p.headLen] }

func (p *packet) payloadLen() int {
	n := 0
	for _, v := range p.payload {
		n += len(v)
	}
	return n
}

// size returns the bytes of the IP packet.
func (p *packet) size() int {
	n := headerIPv4
	if !p.src.Addr().Is4() {
		n = headerIPv6
	}
	return n + p.headLen + p.payloadLen()
}

// newPacket builds a packet from a segment.
func (s *Sim) newPacket(seg *wire.Segment) *packet {
	p := s.emptyPacket()
	p.src, p.dst, p.ecn = seg.Src, seg.Dst, seg.ECN
	p.headLen = wire.Build(&p.head, seg)
	p.payload = append(p.payload, seg.Payload...)
	return p
}

func (s *Sim) clonePacket(p *packet) *packet {
	q := s.emptyPacket()
	views := q.payload
	*q = *p
	q.payload = append(views, p.payload...)
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

func (s *Sim) freePacket(p *packet) {
	clear(p.payload)
	p.payload, p.corrupt = p.payload[:0], false
	s.packets = append(s.packets, p)
}
