// Package mono gives the core its notion of time: an instant counted from an
// origin that the driver chose, so that the same state machines run on the
// system's clock and on a simulator's.
package mono

import "time"

// Time is an instant in nanoseconds since the driver's origin. The zero Time
// means "no instant": a timer that is off, an event that never happened.
// Drivers therefore start their clocks above zero.
type Time int64

// Add returns the instant d after t. It saturates instead of wrapping.
func (t Time) Add(d time.Duration) Time {
	u := t + Time(d)
	if d > 0 && u < t {
		return 1<<63 - 1
	}
	return u
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t lies before u.
func (t Time) Before(u Time) bool { return t < u }

// Set reports whether t is an instant at all.
func (t Time) Set() bool { return t != 0 }

// Reached reports whether t is an instant that has come at now.
func (t Time) Reached(now Time) bool { return t != 0 && t <= now }

// Duration returns t as the time since the origin, the form in which instants
// cross the public interfaces of schedulers and congestion controllers.
func (t Time) Duration() time.Duration { return time.Duration(t) }

// Earliest returns the earlier of two instants; one that is not set loses.
func Earliest(t, u Time) Time {
	if t == 0 || u != 0 && u < t {
		return u
	}
	return t
}
