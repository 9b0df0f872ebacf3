package mptcp

import (
	"sync"
	"sync/atomic"
	"time"
)

// deadline is an instant after which calls of one kind fail until it is moved.
// The zero deadline never passes.
type deadline struct {
	mu     sync.Mutex    // leaf; guards all fields
	over   atomic.Bool   // the instant came; written under mu
	timer  *time.Timer   // of the instant that is still to come; nil if none is
	passed chan struct{} // closed with over; nil until somebody waits for it
}

// set moves the deadline to t; a zero t takes it away. Calls that wait already
// obey the new instant. When it has come, tell is called, unless it is nil, after
// expired would say so.
func (d *deadline) set(t time.Time, tell func()) {
	if d.move(t, tell) && tell != nil {
		tell()
	}
}

// move is set, but reports that the instant has come already.
func (d *deadline) move(t time.Time, tell func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over.Load() {
		d.over.Store(false)
		d.passed = nil
	}
	if t.IsZero() {
		return false
	}
	left := time.Until(t)
	if left <= 0 {
		d.pass()
		return true
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		// A timer that fired while the deadline was being moved is not the
		// one that counts.
		counts := d.timer == timer
		if counts {
			d.timer = nil
			d.pass()
		}
		d.mu.Unlock()
		if counts && tell != nil {
			tell()
		}
	})
	d.timer = timer
	return false
}

// pass makes it a fact that the instant came. d.mu must be held.
func (d *deadline) pass() {
	d.over.Store(true)
	if d.passed != nil {
		close(d.passed)
	}
}

// wait returns a channel that is closed when the deadline has passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
		if d.over.Load() {
			close(d.passed)
		}
	}
	return d.passed
}

// trim gives up the channel, which nobody waits for.
func (d *deadline) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed = nil
}

// expired reports whether the deadline has passed.
func (d *deadline) expired() bool { return d.over.Load() }

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
