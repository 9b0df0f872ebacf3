package netstack

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
)

// Shape says how one direction of a link treats packets. The zero Shape is a
// perfect link. Its fields, of which 0 means the default or none:
//
//	Rate       float64       // bits/s, up to 10 Tb/s; 0 = unlimited
//	Delay      time.Duration // propagation, one way, up to 1 h
//	Jitter     time.Duration // each packet is delayed by up to this more, in order
//	QueueBytes int           // waiting bytes at most; 0 = Rate times twice Delay, at least 64 KiB
//	MarkBytes  int           // more waiting bytes mark a packet with CE; 0 = never
//	RED        RED           // random early detection, instead or besides
//	Overhead   int           // bytes that a packet costs beyond its IP size
//	Loss       float64       // probability that a packet is dropped
//	Reorder    float64       // probability that a packet is held back by ReorderBy
//	ReorderBy  time.Duration // 0 = four packets of 1500 bytes at Rate, at least 1 ms
//	Duplicate  float64       // probability that a packet arrives twice
//	Corrupt    float64       // probability that one bit of a packet is flipped
//
// A queue marks only packets that can be (ECT, RFC 3168): of connections with
// a congestion control that asks for ECN, such as "dctcp", or with ECN turned on.
// MarkBytes is the step at K of RFC 8257, Section 3.1, and for a queue that may
// be short: 20 packets at 1 Gb/s. What cannot be marked passes it and is
// dropped when the queue is full.
type Shape = link.Config

// RED is random early detection (Floyd and Jacobson, 1993): the share of
// packets that are marked, or dropped where they can't be, rises with the
// average length of the queue from 0 at Min to MaxP at Max, and is 1 above.
//
//	Min, Max int     // bytes waiting on average, Min < Max; Max 0 = no RED
//	MaxP     float64 // 0 = 0.1
//	Weight   float64 // of the present length in the average; 0 = 0.002
type RED = link.RED

// LinkStats counts what one direction of a link did.
type LinkStats struct {
	Packets    uint64 // that arrived
	Bytes      uint64 // of them, IP headers included
	Duplicated uint64
	Corrupted  uint64
	Marked     uint64 // with CE

	DroppedQueue uint64
	DroppedLoss  uint64
	DroppedDown  uint64
}

// maxInFlight bounds the bytes on their way in one direction, as a stop to
// what a link without a rate but with a delay could pile up: 1 s at 2 Gb/s.
const maxInFlight = 256 << 20

// shaper carries the packets of one direction as a link.Link says. Packets of
// a perfect link arrive on the sender's goroutine before send returns. All
// others wait in the order of their arrival; one timer stands for the first of
// them and hands over, when it fires, all that are due, so that a late timer
// costs a burst and no throughput.
type shaper struct {
	deliver func([]*stack.PacketBuffer) // takes over the packets, not the slice
	origin  time.Time

	perfect atomic.Bool // nothing to do but to deliver
	packets atomic.Uint64
	bytes   atomic.Uint64

	mu      sync.Mutex
	model   *link.Link  // guarded by mu
	shape   Shape       // guarded by mu
	stats   LinkStats   // guarded by mu; Packets and Bytes are kept above
	queue   flights     // guarded by mu
	held    int         // guarded by mu; bytes in queue
	timer   *time.Timer // guarded by mu; nil until needed
	armed   mono.Time   // guarded by mu; when timer fires; 0 = it does not
	running bool        // guarded by mu; a goroutine is delivering
	closed  bool        // guarded by mu
}

func newShaper(shape Shape, seed, stream uint64, deliver func([]*stack.PacketBuffer)) *shaper {
	s := &shaper{
		deliver: deliver,
		origin:  time.Now(),
		model:   link.New(shape, rand.New(rand.NewPCG(seed, stream))),
	}
	s.setShape(shape)
	return s
}

// now returns the time on the model's clock.
func (s *shaper) now() mono.Time { return mono.Time(1 + time.Since(s.origin)) }

// setShape changes the shape for packets sent from now on.
func (s *shaper) setShape(shape Shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape = shape
	s.model.SetConfig(shape)
	s.settle()
}

// setUp cuts the line, with what is on it, or mends it.
func (s *shaper) setUp(up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.SetUp(up)
	if !up {
		s.stats.DroppedDown += uint64(s.queue.len())
		s.drain()
	}
	s.settle()
}

// settle works out whether packets can skip the model. Called with mu held.
func (s *shaper) settle() { s.perfect.Store(s.model.Up() && !s.closed && s.shape == Shape{}) }

// close drops what is on the way and all that comes.
func (s *shaper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.drain()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.settle()
}

// drain empties the queue. Called with mu held.
func (s *shaper) drain() {
	for s.queue.len() > 0 {
		s.queue.pop().DecRef()
	}
	s.held = 0
}

// snapshot returns the counters.
func (s *shaper) snapshot() LinkStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Packets, st.Bytes = s.packets.Load(), s.bytes.Load()
	return st
}

// send takes over inbound packets of the far end, not the slice, and brings
// them there.
func (s *shaper) send(pkts []*stack.PacketBuffer) {
	if s.perfect.Load() {
		s.arrive(pkts)
		return
	}
	for i := range pkts {
		if s.carry(&pkts[i]) {
			s.arrive(pkts[i : i+1])
		}
	}
}

// carry has one packet treated as the model says, which may change it. It
// reports whether the packet arrives now.
func (s *shaper) carry(pkt **stack.PacketBuffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	v := s.offer(now, *pkt)
	if v.Drop != link.Delivered {
		s.countDrop(v.Drop)
		(*pkt).DecRef()
		return false
	}
	if v.Mark {
		s.stats.Marked++
		*pkt = marked(*pkt)
	}
	if v.Duplicate.Set() {
		s.stats.Duplicated++
		s.push(v.Duplicate, (*pkt).Clone())
	}
	if v.Corrupt >= 0 {
		s.stats.Corrupted++
		*pkt = corrupted(*pkt, v.Corrupt)
	}
	if v.DeliverAt <= now && s.queue.len() == 0 && !s.running {
		return true
	}
	s.push(v.DeliverAt, *pkt)
	s.arm(now)
	return false
}

// offer asks the model about a packet. Called with mu held.
func (s *shaper) offer(now mono.Time, pkt *stack.PacketBuffer) link.Verdict {
	switch {
	case s.closed:
		return link.Verdict{Drop: link.DropDown}
	case s.held > maxInFlight:
		return link.Verdict{Drop: link.DropQueue}
	}
	return s.model.Offer(now, pkt.Size(), capable(pkt))
}

// arrive hands packets over at the far end.
func (s *shaper) arrive(pkts []*stack.PacketBuffer) {
	bytes := 0
	for _, pkt := range pkts {
		bytes += pkt.Size()
	}
	s.packets.Add(uint64(len(pkts)))
	s.bytes.Add(uint64(bytes))
	s.deliver(pkts)
}

// countDrop is called with mu held.
func (s *shaper) countDrop(d link.Drop) {
	switch d {
	case link.DropLoss:
		s.stats.DroppedLoss++
	case link.DropDown:
		s.stats.DroppedDown++
	default:
		s.stats.DroppedQueue++
	}
}

// push is called with mu held.
func (s *shaper) push(at mono.Time, pkt *stack.PacketBuffer) {
	s.queue.push(at, pkt)
	s.held += pkt.Size()
}

// arm sees to it that somebody delivers the first packet in time. Called with
// mu held.
func (s *shaper) arm(now mono.Time) {
	if s.running || s.queue.len() == 0 {
		return // whoever delivers arms when done
	}
	at := s.queue.first()
	if s.armed.Set() && s.armed <= at {
		return
	}
	s.armed = at
	wait := max(at.Sub(now), 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.fire)
		return
	}
	s.timer.Reset(wait)
}

// fire delivers what is due. Only one goroutine at a time does, so that order
// is kept.
func (s *shaper) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = 0
	if s.running {
		return
	}
	s.running = true
	b := burstPool.Get().(*burst)
	for s.due(b) {
		s.mu.Unlock()
		s.arrive(b.pkts)
		s.mu.Lock()
		b.pkts = b.pkts[:0]
	}
	b.free()
	s.running = false
	s.arm(s.now())
}

// burstMost is how many packets that are due at once are handed over together.
const burstMost = 64

// due moves packets that are due from the queue to an empty burst, and reports
// whether there are any. Called with mu held.
func (s *shaper) due(b *burst) bool {
	now := s.now()
	for s.queue.len() > 0 && s.queue.first() <= now && len(b.pkts) < burstMost {
		pkt := s.queue.pop()
		s.held -= pkt.Size()
		b.pkts = append(b.pkts, pkt)
	}
	return len(b.pkts) > 0
}
