package mptcp

import (
	"sync"
	"time"
)

// deadline is an instant after which calls of one kind fail until it is moved.
// The zero deadline never passes.
type deadline struct {
	mu     sync.Mutex    // leaf; guards all fields
	timer  *time.Timer   // of the instant that is still to come; nil if none is
	passed chan struct{} // closed when the instant came; nil until somebody asks
}

// set moves the deadline to t; a zero t takes it away. Calls that wait already
// obey the new instant.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.passed == nil || isClosed(d.passed) {
		d.passed = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		close(d.passed)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// A timer that fired while the deadline was being moved is not the
		// one that counts.
		if d.timer == timer {
			d.timer = nil
			close(d.passed)
		}
	})
	d.timer = timer
}

// wait returns a channel that is closed when the deadline has passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

// trim gives up the channel, if nobody waits for it and it can be made again.
func (d *deadline) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil && d.passed != nil && !isClosed(d.passed) {
		d.passed = nil
	}
}

// expired reports whether the deadline has passed.
func (d *deadline) expired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed != nil && isClosed(d.passed)
}

// stop releases the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
