package mptcp

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A call that has to wait stands aside for others so long before it parks, at
// first and at most. The most is what a batch of super-segments takes on its
// way through two hosts of one process.
const (
	firstPatience = 40 * time.Microsecond
	mostPatience  = 150 * time.Microsecond
	// leastPatience is less than what parking takes.
	leastPatience = 5 * time.Microsecond
)

// A call that stands aside gives way to other goroutines mostTurns times at
// most, even if the clock stands still, looks at the clock every turnsPerLook
// times, and watches in between for a time if there is a second processor that
// could bring the answer meanwhile.
const (
	mostTurns    = 400
	turnsPerLook = 4
	watch        = 500
)

// retryWaits is after how many waits one that has learnt to park at once tries
// again.
const retryWaits = 32

// patience is what a kind of call has learnt about its waits. Parking a
// goroutine and waking it costs two system calls when there are idle
// processors, several times what a short answer takes: so a call first lets
// other goroutines run, as long as that is mostly enough. The zero value is
// ready for use; any number of calls may share it.
type patience struct {
	limit atomic.Int64 // how long the next wait stands aside, less firstPatience
	tired atomic.Int32 // waits since it was too short to be of use
}

// linger returns once ready holds something or patience is at its end.
func (p *patience) linger(ready <-chan struct{}) {
	limit := time.Duration(p.limit.Load()) + firstPatience
	if limit < leastPatience {
		if p.tired.Add(1) < retryWaits {
			return
		}
		p.tired.Store(0)
		limit = firstPatience
	}
	times := 1
	if runtime.GOMAXPROCS(0) > 1 {
		times = watch
	}
	began := time.Now()
	for range mostTurns / turnsPerLook {
		for turn := 0; turn < turnsPerLook && len(ready) == 0; turn++ {
			runtime.Gosched()
			for i := 0; i < times && len(ready) == 0; i++ {
			}
		}
		// An answer that came after others had the processor for long is no
		// reason to wait for the next.
		if late := time.Since(began) >= limit; late || len(ready) > 0 {
			p.learn(limit, !late)
			return
		}
	}
	p.learn(limit, false)
}

// learn makes a wait of some patience a lesson for the next.
func (p *patience) learn(limit time.Duration, rewarded bool) {
	next := limit / 4
	if rewarded {
		next = min(2*limit, mostPatience)
	}
	p.limit.Store(int64(next - firstPatience))
}
