package mptcp

import (
	"sync"
	"sync/atomic"
)

// closing is the fact that something was closed, which can be waited for.
type closing struct {
	over atomic.Bool
	mu   sync.Mutex    // leaf; guards done
	done chan struct{} // closed with over; nil until somebody waits
}

// close makes it a fact. It may be called several times.
func (c *closing) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Swap(true) || c.done == nil {
		return
	}
	close(c.done)
}

// isClosed reports whether close was called.
func (c *closing) isClosed() bool { return c.over.Load() }

// wait returns a channel that is closed by close.
func (c *closing) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.over.Load() {
			close(c.done)
		}
	}
	return c.done
}

// trim gives up the channel. Nobody may be waiting.
func (c *closing) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = nil
}
