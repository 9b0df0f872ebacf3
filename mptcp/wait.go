package mptcp

import (
	"net"
	"sync"
	"sync/atomic"
)

// side is one direction of a connection as seen by the calls that wait in it:
// one call at a time has its turn, and sleeps until the pump wakes it.
type side struct {
	turn     turn
	ready    chan struct{} // guarded by Conn.mu: holds a token once the waiting call should look again; nil before one waits
	want     int           // guarded by Conn.mu: bytes the waiting call needs; 0 if none waits
	into     []byte        // guarded by Conn.mu: where the waiting Read wants them; nil = it will fetch them
	got      atomic.Int64  // how many were written there, for the Read to return; stored under Conn.mu
	deadline deadline
	patience patience
}

// begin waits for the call's turn. Calls whose turn came end with end.
//
// An expired deadline fails a call even if it would not have to wait, as it
// does in package net.
func (s *side) begin(done *closing) error {
	if done.isClosed() {
		return net.ErrClosed
	}
	if s.deadline.expired() {
		return errExpired
	}
	for {
		free := s.turn.take()
		if free == nil {
			return nil
		}
		select {
		case <-free:
		case <-s.deadline.wait():
			return errExpired
		case <-done.wait():
			return net.ErrClosed
		}
	}
}

func (s *side) end() { s.turn.give() }

// await says that the call which has its turn is about to sleep until there are
// n bytes. Conn.mu must be held.
func (s *side) await(n int) {
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
	}
	s.want = n
}

// trim gives up what only calls that wait need. Conn.mu must be held, and the turn
// be that of the caller.
func (s *side) trim() {
	s.ready = nil
	s.deadline.trim()
}

// turn is whose turn it is: a lock that can be waited for along with other
// things.
type turn struct {
	mu    sync.Mutex    // leaf; guards all fields
	taken bool          // a call has its turn
	free  chan struct{} // holds a token once a call that waits should look again; nil before one waits
}

// take takes the turn and returns nil, or a channel to wait for before trying
// again.
func (t *turn) take() (free <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		return nil
	}
	if t.free == nil {
		t.free = make(chan struct{}, 1)
	}
	return t.free
}

// idle takes the turn if nobody has it, and reports whether it did.
func (t *turn) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// give ends a turn.
func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	if t.free == nil {
		return
	}
	select {
	case t.free <- struct{}{}:
	default:
	}
}

// sleep waits until wake is called after want was set, which who makes the
// deadline pass or closes the connection does as well. Conn.mu must not be held.
// With brief it expects not to wait long.
func (s *side) sleep(brief bool) {
	if brief {
		s.patience.linger(s.ready)
	}
	<-s.ready
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
