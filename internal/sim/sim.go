package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// epoch is the time at which a simulation starts: not zero, which is no
// instant.
const epoch = mono.Time(time.Second)

// maxViolations bounds how many violations are kept; the first ones matter.
const maxViolations = 20

// Sim is a simulated network and its clock.
type Sim struct {
	now      mono.Time
	events   eventHeap[handler]
	arrivals eventHeap[*Direction] // the first packet of each queue: apart, as it changes with each packet and is small
	pushed   uint64                // events ever pushed; breaks ties

	seed    uint64
	streams uint64 // random sources given out

	fast      bool // see NewFast
	alloc     stream.Allocator
	count     uint64 // see Events
	nodes     []*Node
	routers   []*Router
	links     []*Link
	trace     trace
	capture   *Capture
	observers []Observer
	scratch   [chunk]byte // of what programs write and read: one at a time

	violations []string
}

// New makes an empty network. Everything random in it follows from seed.
func New(seed uint64) *Sim {
	return &Sim{now: epoch, seed: seed, trace: newTrace(), alloc: stream.Heap{}}
}

// NewFast is New for experiments at scale: segments pass as values instead of
// through the codec, the contents of what is sent are lost, connections are not
// watched, and those that are over are forgotten. What the hosts do, and when,
// is the same as with New. TraceHash covers times, places and sizes only.
func NewFast(seed uint64) *Sim {
	s := New(seed)
	s.fast, s.alloc = true, newBlank()
	s.trace.coarse = true
	return s
}

func newSim(seed uint64, fast bool) *Sim {
	if fast {
		return NewFast(seed)
	}
	return New(seed)
}

// Fast reports whether the simulation is a fast one.
func (s *Sim) Fast() bool { return s.fast }

// Links returns the links in the order in which they were made.
func (s *Sim) Links() []*Link { return s.links }

// Events returns how much the simulation has done: arrivals of packets at a
// link, departures from its queue, which the link's model foresees, and
// arrivals at its end; timers of hosts and connections; steps of the scenario.
func (s *Sim) Events() uint64 { return s.count }

// Now returns the time of the current event.
func (s *Sim) Now() mono.Time { return s.now }

// Elapsed returns the time since the simulation began.
func (s *Sim) Elapsed() time.Duration { return s.now.Sub(epoch) }

// Rand returns a new random source of its own, so that what one part draws
// does not depend on the others.
func (s *Sim) Rand() *rand.Rand {
	s.streams++
	return rand.New(rand.NewPCG(s.seed, s.streams))
}

// After calls f when d has passed.
func (s *Sim) After(d time.Duration, f func()) {
	s.push(s.now.Add(max(d, 0)), call(f))
}

// Every calls f each time d has passed, which must be more than 0, until f
// returns false.
func (s *Sim) Every(d time.Duration, f func() bool) {
	s.After(d, func() {
		if f() {
			s.Every(d, f)
		}
	})
}

// Run handles events until none is left.
func (s *Sim) Run() {
	for s.step(1<<63 - 1) {
	}
}

// RunFor handles the events of the next d and leaves the clock there.
func (s *Sim) RunFor(d time.Duration) {
	end := s.now.Add(d)
	for s.step(end) {
	}
	s.now = max(s.now, end)
}

// RunUntil handles events until done returns true, which is asked after each
// one, or limit has passed. It reports whether done did.
func (s *Sim) RunUntil(limit time.Duration, done func() bool) bool {
	end := s.now.Add(limit)
	for !done() {
		if !s.step(end) {
			return false
		}
	}
	return true
}

// step handles the next event unless it comes after end.
func (s *Sim) step(end mono.Time) bool {
	if len(s.arrivals) > 0 && (len(s.events) == 0 || s.arrivals[0].before(&s.events[0].due)) {
		e := &s.arrivals[0]
		if end < e.at {
			return false
		}
		s.now = e.at
		s.count++
		e.who.arriveNext()
		return true
	}
	if len(s.events) == 0 || end < s.events[0].at {
		return false
	}
	e := s.events[0]
	s.now = e.at
	s.count++
	s.events.pop()
	e.who.fire(e.at)
	return true
}

// push asks for who to be called at a time.
func (s *Sim) push(at mono.Time, who handler) {
	s.events.push(event[handler]{due{at, s.order()}, who})
}

// order returns the place of a new event among those of its time.
func (s *Sim) order() uint64 {
	s.pushed++
	return s.pushed
}

// violate notes that something happened that must not.
func (s *Sim) violate(format string, args ...any) {
	if len(s.violations) < maxViolations {
		s.violations = append(s.violations, fmt.Sprintf("%v: ", s.Elapsed())+fmt.Sprintf(format, args...))
	}
}

// Violations returns what went against the rules that hold in every run:
// windows, stream contents, timers. It is empty after a good run.
func (s *Sim) Violations() []string { return s.violations }

// TraceHash returns a hash over every segment delivered so far and its time.
func (s *Sim) TraceHash() uint64 { return s.trace.sum() }
