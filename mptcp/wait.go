package mptcp

import (
	"net"
	"sync/atomic"
)

// side is one direction of a connection as seen by the calls that wait in it:
// one call at a time has its turn, and sleeps until the pump wakes it.
type side struct {
	turn     chan struct{} // holds a token while a call runs
	ready    chan struct{} // holds a token once the waiting call should look again
	want     int           // guarded by Conn.mu: bytes the waiting call needs; 0 if none waits
	into     []byte        // guarded by Conn.mu: where the waiting Read wants them; nil = it will fetch them
	got      atomic.Int64  // how many were written there, for the Read to return; stored under Conn.mu
	deadline deadline
	patience patience
}

func newSide() side {
	return side{turn: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
}

// begin waits for the call's turn. Calls whose turn came end with end.
//
// An expired deadline fails a call even if it would not have to wait, as it
// does in package net.
func (s *side) begin(closed <-chan struct{}) error {
	if isClosed(closed) {
		return net.ErrClosed
	}
	if s.deadline.expired() {
		return errExpired
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.deadline.wait():
		return errExpired
	case <-closed:
		return net.ErrClosed
	}
}

func (s *side) end() { <-s.turn }

// sleep waits until wake is called after want was set, or the deadline passes,
// or closed is closed. Conn.mu must not be held. With brief it expects not to
// wait long.
func (s *side) sleep(closed <-chan struct{}, brief bool) error {
	if brief {
		s.patience.linger(s.ready)
	}
	select {
	case <-s.ready:
		return nil
	case <-s.deadline.wait():
		return errExpired
	case <-closed:
		return net.ErrClosed
	}
}

// wake lets the waiting call look again. Conn.mu must be held.
func (s *side) wake() {
	if s.want == 0 {
		return
	}
	s.want = 0
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// takeBack ends that bytes may be written to the buffer of a Read, and returns
// how many were. Conn.mu must be held.
func (s *side) takeBack() int {
	s.into = nil
	return int(s.got.Swap(0))
}
