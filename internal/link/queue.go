package link

import (
	"math"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// queue is a drop-tail queue before a transmitter of constant rate, as a
// fluid: all that it knows is until when the transmitter is busy, and the
// bytes waiting are that time at the rate. What is left of the packet being
// sent counts as waiting.
type queue struct {
	rate  float64   // bits/s; 0 = unlimited, nothing ever waits
	limit int       // bytes
	busy  mono.Time // when the last byte accepted will have been sent
	carry float64   // part of a nanosecond by which busy is early, 0 to 1
}

// waiting returns the bytes not yet sent at now.
func (q *queue) waiting(now mono.Time) float64 {
	if q.rate == 0 || q.busy <= now {
		return 0
	}
	return (float64(q.busy.Sub(now)) + q.carry) * q.rate / 8 / float64(time.Second)
}

// accept takes a packet of size bytes and returns when its last byte leaves,
// rounded down to a nanosecond; ok is false if the queue is full. An idle
// transmitter takes any packet, however small the queue.
func (q *queue) accept(now mono.Time, size int) (leaves mono.Time, ok bool) {
	if q.rate == 0 {
		return now, true
	}
	if q.busy <= now {
		q.busy, q.carry = now, 0
	} else if q.waiting(now)+float64(size) > float64(q.limit) {
		return 0, false
	}
	// Rounding errors must not add up: at 10 Gb/s a packet of 64 bytes takes
	// 51.2 ns.
	exact := float64(size)*8/q.rate*float64(time.Second) + q.carry
	whole := math.Floor(exact)
	q.carry = exact - whole
	q.busy = q.busy.Add(time.Duration(whole))
	return q.busy, true
}
