package mptcp

import (
	"io"
	"net"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Read reads what has arrived, in order, into p. After the peer closed its
// side in order it returns io.EOF. It takes what it returns: there is no peeking
// and no waiting for a full buffer, so that a reader never waits for bytes that
// it has already been shown.
//
// While Read waits, whoever brings bytes writes them to p: they are in that
// processor's caches, and the memory that they came in is free for the next.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.readSome(p)
	return n, c.opError("read", err)
}

func (c *Conn) readSome(p []byte) (int, error) {
	if err := c.read.begin(&c.done); err != nil {
		return 0, err
	}
	defer c.read.end()
	if len(p) == 0 {
		return 0, nil
	}
	return c.awaitRead(p, func(now mono.Time) int { return c.core.Read(now, p) })
}

// awaitRead waits until something can be read and calls take for it under
// c.mu. It returns what take does, or how much was written to p meanwhile,
// which may be nil. The caller has its turn.
func (c *Conn) awaitRead(p []byte, take func(mono.Time) int) (int, error) {
	for {
		c.mu.Lock()
		c.streams = false
		switch n, closed := c.read.takeBack(), c.done.isClosed(); {
		case n > 0:
			c.leave()
			return n, nil
		case closed:
			c.leave()
			return 0, net.ErrClosed
		case !c.readShut && c.core.Readable() > 0:
			n = take(c.stack.now())
			c.unlock()
			return n, nil
		}
		err := c.readEnd()
		if err == nil && c.read.deadline.expired() {
			// Looked at under the lock, without which nobody is woken.
			err = errExpired
		}
		if err == nil {
			c.read.await(1)
			c.read.into = p
		}
		// Who has asked gives the processor to whoever answers: it may be the
		// one that has the question in its caches.
		brief := !c.asked
		c.asked = false
		if err == nil && c.core.AwaitInput(c.stack.now()) {
			c.unlock()
		} else {
			c.leave()
		}
		if err != nil {
			return 0, err
		}
		c.read.sleep(brief)
		if n := int(c.read.got.Swap(0)); n > 0 {
			return n, nil
		}
	}
}

// serve gives a Read that waits what has arrived. c.mu must be held.
func (c *Conn) serve(now mono.Time) {
	if c.read.into == nil || c.readShut || c.core.Readable() == 0 {
		return
	}
	p := c.read.into
	c.read.into = nil
	c.read.got.Store(int64(c.core.Read(now, p)))
}

// readEnd returns why nothing more can be read, nil if something may come.
// c.mu must be held.
func (c *Conn) readEnd() error {
	switch {
	case c.readShut || c.core.EOF():
		return io.EOF
	case !c.core.Closed():
		return nil
	case c.err != nil:
		return c.err
	}
	return io.EOF
}
