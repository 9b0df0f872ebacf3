package netstack

import (
	"sync"
	"sync/atomic"

	"github.com/gomptcp/gomptcp/mptcp"
)

// gatherMost is how many packets are delivered at once at most.
const gatherMost = 32

// gatherRounds is how many deliveries one sender makes before it leaves the
// next to others that are sending.
const gatherRounds = 4

// gatherer brings packets to the mptcp.Stack of a host: one by one, or, while
// somebody sends it a batch, many at once, as network cards do. One look-up,
// one turn of the connection and above all one acknowledgement then serve many
// packets.
//
// A packet waits only while held is not zero or somebody delivers: whoever
// ends either state looks for packets, so that none is forgotten. A sender's
// packets do not wait for another sender: each delivers all that wait when its
// batch ends.
type gatherer struct {
	deliver func([]mptcp.Packet) // immutable

	held atomic.Int32 // batches that are being sent

	mu      sync.Mutex
	waiting []*inbound // guarded by mu
	busy    bool       // guarded by mu: somebody delivers

	// What is being delivered belongs to who set busy.
	from  [gatherMost]*inbound
	batch [gatherMost]mptcp.Packet
}

// hold begins a batch; release must follow.
func (g *gatherer) hold() { g.held.Add(1) }

// release ends a batch and delivers it.
func (g *gatherer) release() {
	g.held.Add(-1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush()
}

// add takes over a packet.
func (g *gatherer) add(in *inbound) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, in)
	if g.held.Load() == 0 || len(g.waiting) >= gatherMost {
		g.flush()
	}
}

// flush delivers what waits, unless that is being done: by another goroutine,
// or further up on this one's stack. Called with mu held, which it gives up
// meanwhile.
func (g *gatherer) flush() {
	if g.busy {
		return
	}
	g.busy = true
	for rounds := 0; len(g.waiting) > 0 && (rounds < gatherRounds || g.held.Load() == 0); rounds++ {
		n := copy(g.from[:], g.waiting)
		kept := copy(g.waiting, g.waiting[n:])
		clear(g.waiting[kept:])
		g.waiting = g.waiting[:kept]
		g.mu.Unlock()
		for i, in := range g.from[:n] {
			g.batch[i] = in.packet
		}
		g.deliver(g.batch[:n])
		for i, in := range g.from[:n] {
			in.free()
			g.from[i], g.batch[i] = nil, mptcp.Packet{}
		}
		g.mu.Lock()
	}
	g.busy = false
}
