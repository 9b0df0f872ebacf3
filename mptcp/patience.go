package mptcp

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A call that has to wait stands aside for others so many times before it
// parks, at first and at most.
const (
	firstTurns = 200
	mostTurns  = 400
)

// slowTurns is how long standing aside may take before it is others' work, and
// not an answer that is about to come, that it waits for.
const slowTurns = 100 * time.Microsecond

// retryTurns is after how many waits one that has learnt to park at once tries
// again.
const retryTurns = 32

// patience is what a kind of call has learnt about its waits. Parking a
// goroutine and waking it costs two system calls when there are idle
// processors, several times what a short answer takes: so a call first lets
// other goroutines run, as long as that is mostly enough. The zero value is
// ready for use; any number of calls may share it.
type patience struct {
	turns atomic.Int32 // how often the next wait stands aside, less firstTurns
	tired atomic.Int32 // waits since it was 0
}

// linger returns once ready holds something or patience is at its end.
func (p *patience) linger(ready <-chan struct{}) {
	turns := p.turns.Load() + firstTurns
	if turns <= 0 {
		if p.tired.Add(1) < retryTurns {
			return
		}
		p.tired.Store(0)
		turns = firstTurns
	}
	began := time.Now()
	for range turns {
		runtime.Gosched()
		if len(ready) > 0 && time.Since(began) < slowTurns {
			p.turns.Store(min(2*turns, mostTurns) - firstTurns)
			return
		}
	}
	p.turns.Store(turns/4 - firstTurns)
}
