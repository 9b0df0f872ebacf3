package mptcp

import (
	"runtime"
	"time"
)

// mostPatience is how long a call that has to wait stands aside for others
// before it parks: what a batch of super-segments takes on its way through two
// hosts of one process, and some more.
const mostPatience = 150 * time.Microsecond

// A call that stands aside gives way to other goroutines mostTurns times at
// most, even if the clock stands still, looks at the clock every turnsPerLook
// times, and watches in between for a time if there is a second processor that
// could bring the answer meanwhile.
const (
	mostTurns    = 400
	turnsPerLook = 4
	watch        = 500
)

// mostSkips is how many waits park at once, at most, until one tries again.
const mostSkips = 64

// patience is what a kind of call has learnt about its waits. Parking a
// goroutine and waking it costs two system calls when there are idle
// processors, several times what a short answer takes: so a call first lets
// other goroutines run, as long as that is enough. Each time in a row that it
// is not doubles how many waits park at once before the next try. The zero
// value is ready for use, by one call at a time.
type patience struct {
	failed int32 // tries in a row that were in vain
	skips  int32 // waits that are still to park at once
}

// linger returns once ready holds something or patience is at its end.
func (p *patience) linger(ready <-chan struct{}) {
	if p.skips > 0 {
		p.skips--
		return
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
		if late := time.Since(began) >= mostPatience; late || len(ready) > 0 {
			p.learn(!late)
			return
		}
	}
	p.learn(false)
}

// learn makes the end of a try a lesson for the next waits.
func (p *patience) learn(rewarded bool) {
	if rewarded {
		p.failed = 0
		return
	}
	p.failed++
	p.skips = min(int32(1)<<min(p.failed-1, 30)-1, mostSkips)
}
