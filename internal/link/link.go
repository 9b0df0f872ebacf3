// Package link models one direction of a link without holding packets: the
// owner of a packet asks when it would arrive and carries it there itself, so
// that the same model shapes simulated links and real ones.
package link

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Config describes a link. The zero Config is a perfect one: no limit of
// rate, no delay, no loss.
type Config struct {
	Rate       float64       // bits a second; 0 = unlimited
	Delay      time.Duration // propagation, one way
	Jitter     time.Duration // each packet is delayed by up to this more, in order
	QueueBytes int           // waiting bytes at most, drop-tail; 0 = one bandwidth-delay product (of twice Delay) but at least 64 KiB
	MarkBytes  int           // more bytes waiting than so many mark a packet that can be (RFC 8257, Section 3.1); 0 = never
	RED        RED           // marks, or drops what can't be, before the queue is full
	Overhead   int           // bytes a packet costs beyond its IP size (0, 14, 38 ...)
	Loss       float64       // probability that a packet is dropped
	Reorder    float64       // probability that a packet is held back by ReorderBy
	ReorderBy  time.Duration // 0 = the time of four packets of 1500 bytes at Rate, at least 1 ms
	Duplicate  float64       // probability that a packet arrives twice
	Corrupt    float64       // probability that one bit of a packet is flipped
}

// Drop says why a link dropped a packet.
type Drop uint8

// Reasons to drop.
const (
	Delivered Drop = iota // not dropped
	DropQueue             // queue full
	DropLoss              // random loss
	DropDown              // link down
	DropRED               // random early detection
)

// Verdict is what happens to one packet.
type Verdict struct {
	DeliverAt mono.Time // arrival at the far end
	Drop      Drop
	Duplicate mono.Time // arrival of a second copy; 0 = none
	Mark      bool      // set CE
	Corrupt   int       // flip this bit, counted modulo the packet's bits; -1 = none
}

// Rand is the source of a link's chances.
type Rand interface{ Float64() float64 }

// NoCorruption is Verdict.Corrupt of a packet that arrives as it was sent.
const NoCorruption = -1

// Link is one direction of a link. Nothing is allocated a packet, and the
// same offers with the same chances give the same verdicts. A Link is not
// safe for concurrent use.
type Link struct {
	config Config
	rng    Rand
	queue  queue
	marker marker
	down   bool
	last   mono.Time // latest arrival of a packet that was not held back
}

// New returns a link that is up. cfg must be valid (see [Config.Validate]);
// rng may be nil if cfg leaves nothing to chance.
func New(cfg Config, rng Rand) *Link {
	l := &Link{rng: rng}
	l.SetConfig(cfg)
	return l
}

// Config returns the configuration in force, defaults filled in.
func (l *Link) Config() Config { return l.config }

// SetConfig changes the link. Packets accepted before keep the times they
// were given, later ones queue behind them; the time for which the
// transmitter is busy stays and is counted as bytes at the new rate.
func (l *Link) SetConfig(cfg Config) {
	l.config = cfg.withDefaults()
	l.queue.rate, l.queue.limit = l.config.Rate, l.config.QueueBytes
	l.marker.step, l.marker.red = l.config.MarkBytes, l.config.RED
}

// Up reports whether the link takes packets.
func (l *Link) Up() bool { return !l.down }

// SetUp takes the link down or brings it up. Packets accepted before have
// left the sender: whether they still arrive is for their owner to decide,
// who can ask Up at DeliverAt.
func (l *Link) SetUp(up bool) { l.down = !up }

// Backlog returns the bytes waiting at now, Overhead included.
func (l *Link) Backlog(now mono.Time) int { return int(l.queue.waiting(now)) }

// Offer says what happens to a packet of size bytes, IP header included, that
// reaches the link at now. Times of offers must not decrease. ect reports
// whether the packet may be marked instead of dropped.
//
// Loss strikes on the medium: a lost packet has taken its place in the queue
// and its time on the link.
func (l *Link) Offer(now mono.Time, size int, ect bool) Verdict {
	if l.down {
		return dropped(DropDown)
	}
	waiting := l.queue.waiting(now)
	mark := ect && l.marker.over(waiting)
	if l.chosen(now, waiting) {
		if !ect {
			return dropped(DropRED)
		}
		mark = true
	}
	leaves, ok := l.queue.accept(now, size+l.config.Overhead)
	if !ok {
		return dropped(DropQueue)
	}
	if l.chance(l.config.Loss) {
		return dropped(DropLoss)
	}
	v := Verdict{DeliverAt: l.arrival(leaves), Mark: mark, Corrupt: NoCorruption}
	if l.chance(l.config.Duplicate) {
		v.Duplicate = v.DeliverAt
	}
	if size > 0 && l.chance(l.config.Corrupt) {
		v.Corrupt = int(l.rng.Float64() * float64(8*size))
	}
	return v
}
