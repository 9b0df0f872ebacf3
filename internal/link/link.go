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
