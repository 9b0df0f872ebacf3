package simnet

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// deliverBatch is how many packets are delivered at a time.
const deliverBatch = 32

// direction carries packets from one end of a link to the other.
type direction struct {
	net             *Net
	to              *Node
	mtu, segmentMax int

	mu      sync.Mutex // leaf; guards all below
	model   *link.Link
	filter  Filter
	queue   packets
	count   uint64      // packets ever queued
	timer   *time.Timer // nil until it is first needed
	armed   mono.Time   // when timer fires; 0 = not
	running bool        // some goroutine is delivering
	stopped bool
}

// Filter sees every packet before the link does, and may change its options
// and header. It reports whether the packet may pass. It is called by one
// goroutine at a time.
type Filter func(seg *wire.Segment) bool

func newDirection(n *Net, to *Node, cfg LinkConfig, shape link.Config, seed, way uint64) *direction {
	return &direction{
		net: n, to: to, mtu: cfg.MTU, segmentMax: cfg.SegmentMax,
		model: link.New(shape, rand.New(rand.NewPCG(seed, way))),
	}
}

// SetFilter puts f before both directions of the link; nil removes it. What
// the former filter did happens before SetFilter returns.
func (l *Link) SetFilter(f Filter) {
	if f != nil {
		f = oneAtATime(f)
	}
	for _, d := range l.ways {
		d.mu.Lock()
		d.filter = f
		d.mu.Unlock()
	}
}

// oneAtATime keeps the two directions of a link, whose locks are their own,
// out of f at the same time.
func oneAtATime(f Filter) Filter {
	var mu sync.Mutex
	return func(seg *wire.Segment) bool {
		mu.Lock()
		defer mu.Unlock()
		return f(seg)
	}
}

func (d *direction) setUp(up bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.model.SetUp(up)
}

func (d *direction) setShape(shape link.Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.model.SetConfig(shape)
}

// stop drops what is queued and stops the timer.
func (d *direction) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped, d.queue = true, nil
	if d.timer != nil {
		d.timer.Stop()
	}
}

// send queues packets and delivers those that are due.
func (d *direction) send(batch []mptcp.Packet) {
	d.mu.Lock()
	now := d.net.now()
	for i := range batch {
		d.cut(now, &batch[i])
	}
	d.mu.Unlock()
	d.deliver()
}

// cut passes a packet on as it is, or as the parts of a super-segment.
func (d *direction) cut(now mono.Time, p *mptcp.Packet) {
	if p.SegSize == 0 && d.filter == nil {
		d.offer(now, newPacket(p.Src, p.Dst, p.Header, p.Payload, p.ECN, &d.net.held))
		return
	}
	whole := wire.Segment{Src: p.Src, Dst: p.Dst, Payload: p.Payload, ECN: wire.ECN(p.ECN), SegSize: p.SegSize}
	if drop := wire.Parse(p.Header, &whole); drop != 0 {
		panic("simnet: the stack sent a segment with a " + drop.String())
	}
	var part wire.Segment
	for c := wire.Split(&whole); c.Next(&part); {
		if d.filter != nil && !d.filter(&part) {
			continue
		}
		var header [wire.MaxHeader]byte
		n := wire.Build(&header, &part)
		d.offer(now, newPacket(part.Src, part.Dst, header[:n], part.Payload, uint8(part.ECN), &d.net.held))
	}
}

// offer gives a packet to the link. A packet that is damaged on the way would
// not pass TCP's checksum: it is lost.
func (d *direction) offer(now mono.Time, p packet) {
	size := ipHeader(p.Dst.Addr()) + p.size
	if size > d.mtu {
		panic("simnet: the stack sent a packet larger than the MTU")
	}
	v := d.model.Offer(now, size, p.ECN != uint8(wire.NotECT))
	if v.Drop != link.Delivered || v.Corrupt != link.NoCorruption {
		return
	}
	if v.Mark {
		p.ECN = uint8(wire.CE)
	}
	d.push(v.DeliverAt, p)
	if v.Duplicate != 0 {
		d.push(v.Duplicate, newPacket(p.Src, p.Dst, p.Header, p.Payload, p.ECN, &d.net.held))
	}
}

func (d *direction) push(at mono.Time, p packet) {
	p.at, p.number = at, d.count
	d.count++
	heap.Push(&d.queue, p)
}

// deliver hands over what is due, in order, unless another goroutine is doing
// it: that one looks again before it stops.
func (d *direction) deliver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running {
		return
	}
	d.running = true
	for {
		batch := d.due()
		if len(batch) == 0 {
			break
		}
		d.mu.Unlock()
		d.to.Deliver(batch)
		d.mu.Lock()
	}
	d.running = false
	d.arm()
}

// due takes packets that have arrived out of the queue.
func (d *direction) due() []mptcp.Packet {
	now := d.net.now()
	var batch []mptcp.Packet
	for len(d.queue) > 0 && d.queue[0].at <= now && len(batch) < deliverBatch {
		p := heap.Pop(&d.queue).(packet)
		if d.model.Up() {
			d.net.held.Add(1)
			batch = append(batch, p.Packet)
		}
	}
	return batch
}

// arm sets the timer for the next arrival.
func (d *direction) arm() {
	if d.stopped || len(d.queue) == 0 {
		return
	}
	at := d.queue[0].at
	if d.armed.Set() && d.armed <= at {
		return
	}
	d.armed = at
	left := at.Sub(d.net.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(left, d.alarm)
	} else {
		d.timer.Reset(left)
	}
}

func (d *direction) alarm() {
	d.mu.Lock()
	d.armed = 0
	d.mu.Unlock()
	d.deliver()
}

// packet is a packet under way.
type packet struct {
	mptcp.Packet
	size   int // bytes of header and payload
	at     mono.Time
	number uint64
}

// newPacket copies a packet.
func newPacket(src, dst netip.AddrPort, header []byte, payload [][]byte, ecn uint8, held *atomic.Int64) packet {
	size := len(header)
	for _, v := range payload {
		size += len(v)
	}
	b := append(make([]byte, 0, size), header...)
	for _, v := range payload {
		b = append(b, v...)
	}
	p := packet{size: size}
	p.Src, p.Dst, p.ECN = src, dst, ecn
	p.Header = b[:len(header):len(header)]
	if body := b[len(header):]; len(body) > 0 {
		p.Payload = [][]byte{body}
	}
	p.Owner = &memory{bytes: b, held: held}
	return p
}

// memory is a packet's memory, with one reference. It is overwritten when that
// is given back, so that whoever still reads it is found out.
type memory struct {
	bytes []byte
	freed atomic.Bool
	held  *atomic.Int64 // the Net's
}

// DecRef gives the reference back.
func (m *memory) DecRef() {
	if m.freed.Swap(true) {
		panic("simnet: memory of a packet was released twice")
	}
	for i := range m.bytes {
		m.bytes[i] = 0xdb
	}
	m.held.Add(-1)
}

// packets is a heap of packets in order of arrival, then of sending.
type packets []packet

func (q packets) Len() int { return len(q) }
func (q packets) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].number < q[j].number
}
func (q packets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *packets) Push(x any)   { *q = append(*q, x.(packet)) }
func (q *packets) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = packet{}
	*q = (*q)[:last]
	return p
}
