package mptcp

import "sync"

// alarmsAtOnce is how many connections of a Stack are looked at for their timers at
// the same time. Timers of a hundred thousand connections may go off together, and a
// goroutine for each, with the memory for what it sends, would do more harm than
// wait.
const alarmsAtOnce = 64

// alarms are the connections whose timers went off.
type alarms struct {
	mu      sync.Mutex // leaf
	due     []*Conn    // guarded by mu: for whom there is no goroutine yet
	serving int        // guarded by mu: goroutines
}

// serve looks at a connection, and at others that are due then, unless enough
// goroutines do so already.
func (a *alarms) serve(c *Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = append(a.due, c)
	if a.serving == alarmsAtOnce {
		return
	}
	a.serving++
	for len(a.due) > 0 {
		next := a.due[0]
		a.due[0], a.due = nil, a.due[1:]
		a.mu.Unlock()
		next.kick()
		a.mu.Lock()
	}
	a.serving--
	if a.serving == 0 {
		a.due = nil
	}
}

// alarm is what the timer of a connection calls.
func (c *Conn) alarm() {
	if c.inbox.ring() {
		c.stack.alarms.serve(c)
	}
}
