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

// Bytes that a packet costs on a link beyond its IP size (link.Config.Overhead).
const (
	OverheadNone     = 0
	OverheadMAC      = 14 // Ethernet header, as most simulators count
	OverheadEthernet = 38 // and preamble, check sequence and gap, as the wire counts
)

// Shape says what a link is like in both directions.
type Shape struct {
	Name       string // of the path, for figures and traces; "" = chosen by who makes the link
	AB, BA     link.Config
	MTU        int // bytes of an IP packet; 0 = 1500
	SegmentMax int // payload bytes of super-segments, which are cut at the link; 0 = none
}

// Symmetric returns the shape of a link that is the same in both directions.
func Symmetric(name string, cfg link.Config) Shape { return Shape{Name: name, AB: cfg, BA: cfg} }

// device is what a link can end at.
type device interface {
	// receive takes a packet that arrived at an interface, which is
	// valid during the call only.
	receive(*Iface, *packet)
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
	queue    packetQueue // on their way; the first has an event
	mtu      int
	id       int // among all directions; odd ones are BA
	epoch    uint32
	box      Box
	transmit func(*wire.Segment)
	stats    DirectionStats
}

// DirectionStats count what one direction of a link did.
type DirectionStats struct {
	Packets, Bytes uint64                // offered, IP header included
	Drops          [link.DropRED + 1]int // by reason
	Corrupted      int
	Arrived        uint64 // packets
	ArrivedBytes   uint64 // payload
	ArrivedSize    uint64 // IP header included
	Marked         uint64 // packets that were given CE
}

// Connect joins two interfaces by a new link, which is up. An empty name is
// that of the shape.
func (s *Sim) Connect(name string, a, b IfaceConfig, shape Shape) *Link {
	if shape.MTU == 0 {
		shape.MTU = 1500
	}
	if name == "" {
		name = shape.Name
	}
	l := &Link{Name: name, up: true}
	ia, ib := newIface(name, a, shape), newIface(name, b, shape)
	ia.peer, ib.peer = ib, ia
	l.AB = s.newDirection(2*len(s.links), ib, shape.MTU, shape.AB)
	l.BA = s.newDirection(2*len(s.links)+1, ia, shape.MTU, shape.BA)
	ia.out, ib.out = l.AB, l.BA
	ia.adopt()
	ib.adopt()
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

// Addr returns an address at the direction's end; none if a router is there.
func (d *Direction) Addr() netip.Addr {
	if len(d.to.addrs) == 0 {
		return netip.Addr{}
	}
	return d.to.addrs[0]
}

// Backlog returns the bytes that wait before the direction, Overhead included.
func (d *Direction) Backlog() int { return d.model.Backlog(d.sim.now) }

// Config returns what the direction is like now, defaults filled in.
func (d *Direction) Config() link.Config { return d.model.Config() }

// Stats returns a snapshot.
func (d *Direction) Stats() DirectionStats { return d.stats }

// enter takes a segment from the node at the direction's beginning.
func (d *Direction) enter(seg *wire.Segment) {
	d.checkSize(packetSize(seg))
	if d.box != nil {
		d.box(d.sim.now, seg, d.transmit)
		return
	}
	d.send(seg)
}

// forward takes a packet from the router at the direction's beginning.
func (d *Direction) forward(p *packet) {
	if d.box != nil {
		var seg wire.Segment
		p.fill(&seg)
		d.enter(&seg)
		return
	}
	d.checkSize(int(p.size))
	q := d.queue.push()
	*q = *p
	d.offer(q)
}

// send gives a segment that has passed the box, which may have made it larger
// than the link's packets, to the link.
func (d *Direction) send(seg *wire.Segment) {
	p := d.queue.push()
	p.set(seg)
	if !d.sim.fast {
		p.build()
	}
	d.offer(p)
}

func (d *Direction) checkSize(size int) {
	if size > d.mtu {
		d.sim.violate("packet of %d bytes on link %s with MTU %d", size, d.to.name, d.mtu)
	}
}

// offer gives p, the last packet of the queue, to the link.
func (d *Direction) offer(p *packet) {
	s := d.sim
	s.count++
	size := int(p.size)
	d.stats.Packets++
	d.stats.Bytes += uint64(size)
	if s.capture != nil {
		s.capture.write(s.now, d.id/2, p)
	}
	v := d.model.Offer(s.now, size, p.ecn == wire.ECT0 || p.ecn == wire.ECT1)
	d.stats.Drops[v.Drop]++
	if v.Drop == link.Delivered || v.Drop == link.DropLoss {
		s.count++ // it leaves the queue
	}
	if v.Drop != link.Delivered {
		d.queue.unpush()
		return
	}
	if v.Mark {
		p.ecn = wire.CE
		d.stats.Marked++
	}
	p.corrupt, p.epoch = v.Corrupt >= 0, d.epoch
	if v.Duplicate != 0 {
		d.stray(p, v.Duplicate)
	}
	p.at, p.n = v.DeliverAt, s.order()
	switch q := &d.queue; {
	case q.count == 1:
		s.arrivals.push(event[*Direction]{due{p.at, p.n}, d})
	case p.at < q.ring[(q.head+q.count-2)&(len(q.ring)-1)].at:
		q.unpush()
		late := *p
		s.events.push(event[handler]{due{p.at, p.n}, &single{d, late}})
	}
}

// single is a packet that does not arrive in the order of its queue.
type single struct {
	dir *Direction
	packet
}

func (d *Direction) stray(p *packet, at mono.Time) {
	d.sim.push(at, &single{d, *p})
}

func (s *single) fire(mono.Time) { s.dir.arrive(&s.packet) }

// arriveNext handles the arrival of the queue's first packet, which is the
// first of all events.
func (d *Direction) arriveNext() {
	p := d.queue.pop()
	if d.queue.count > 0 {
		next := d.queue.first()
		d.sim.arrivals.replace(event[*Direction]{due{next.at, next.n}, d})
	} else {
		d.sim.arrivals.pop()
	}
	d.arrive(p)
}

// arrive hands a packet to what is at the direction's end.
func (d *Direction) arrive(p *packet) {
	switch {
	case p.epoch != d.epoch: // the link went down meanwhile
		d.stats.Drops[link.DropDown]++
	case p.corrupt:
		// TCP's checksum, or that of IP, finds every single flipped bit.
		d.stats.Corrupted++
	default:
		d.stats.Arrived++
		d.stats.ArrivedBytes += uint64(p.payloadLen)
		d.stats.ArrivedSize += uint64(p.size)
		d.sim.trace.add(d.sim.now, d.id, p)
		d.to.dev.receive(d.to, p)
	}
}
