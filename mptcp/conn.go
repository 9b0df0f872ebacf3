package mptcp

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// Conn is a connection: MPTCP, or plain TCP if it was asked for or the peer,
// or a box on the way, speaks nothing else. It implements net.Conn and the
// further methods of *net.TCPConn that make sense without a file descriptor.
// Its methods may be called concurrently; Reads, and Writes, take turns.
//
// The addresses of a Conn are those of its first subflow and never change.
type Conn struct {
	stack    *Stack        // immutable
	trace    *tracer       // immutable
	probing  time.Duration // immutable: Config.KeepAlive
	lowWater int32         // immutable: free bytes of send buffer that wake a writer
	refuses  bool          // immutable: ends rather than fall back to plain TCP

	inbox       inbox
	read, write side
	done        closing // by the application, or the Stack

	// Lock order: mu, then Stack.mu. Whoever unlocks mu calls kick. All below
	// is guarded by mu.
	mu        sync.Mutex
	core      *host.Conn         // the pointer and its addresses are immutable
	timer     *time.Timer        // nil until it is first needed
	armed     mono.Time          // when timer fires; 0 = not
	used      mono.Time          // when something happened last; 0 = nothing has since trim
	accepted  *host.Listener     // to be woken after unlock
	changed   chan struct{}      // closed at the next event; nil if nobody waits for one
	joins     map[int]chan error // results that AddSubflow waits for, by subflow
	err       error              // why the connection is over; nil if it is not, or was closed in order
	fellBack  mono.Time          // when the connection became plain TCP; 0 = it did not
	wroteAt   mono.Time          // when the last large Write returned; belongs to the Write that has its turn
	keepAlive *keepAlive         // nil = as it began
	proven    bool               // joins were allowed at some time
	sized     bool               // the application declared the flow's size
	reset     reason.Reset       // MP_TCPRST code of the last subflow that the peer reset
	linger    bool               // Close lets data written before be delivered
	readShut  bool               // CloseRead was called
	writeShut bool               // CloseWrite was called
	closed    bool               // Close was called
	dead      bool               // the Stack is closed: touch core no more
	asked     bool               // the application wrote since it last waited to read
	streams   bool               // its last Write was large, and it did not ask to read since
}

// newConn makes the driver's side of hc. s.mu must be held.
func (s *Stack) newConn(hc *host.Conn, cfg *Config) *Conn {
	c := &Conn{
		stack:    s,
		core:     hc,
		lowWater: int32(lowWater(cfg.WriteBuffer)),
		linger:   true,
		refuses:  cfg.Fallback == FallbackRefuse && !cfg.Plain,
		probing:  cfg.KeepAlive,
	}
	c.sized = hc.FlowSize() > 0
	c.trace = newTracer(cfg, hc)
	hc.OnDecision(c.trace.decisions())
	hc.User = c
	switch why := hc.Fallback(); why {
	case reason.FallbackBlackhole, reason.FallbackCollision:
		// From the start, so that the core has no event of it.
		c.observe(mpconn.Event{Kind: mpconn.EventFallback, Fallback: why})
	}
	return c
}

// lowWater returns how much room wakes a writer whose buffer has a fixed size,
// or, with 0, one that is tuned.
func lowWater(size int) int {
	if size == 0 {
		return maxLowWater
	}
	return min(size/4, maxLowWater)
}

const (
	// maxLowWater is how much room wakes a writer at the latest: a quarter of
	// what a send buffer begins with.
	maxLowWater = 64 << 10
	// writeChunk is how much is copied under one hold of the lock, so that a
	// long Write does not keep arriving segments waiting.
	writeChunk = 256 << 10
	// largeWrite is how many bytes a Write must have to be one of a stream of
	// them: a super-segment.
	largeWrite = 64 << 10
	// soon is how long after a large Write the next one begins at most, if there is
	// to be still another as soon: that is what programs do that have much to send.
	soon = 100 * time.Microsecond
)

// LocalAddr returns the local address of the first subflow, a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.core.LocalAddr()) }

// RemoteAddr returns the remote address of the first subflow, a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.core.RemoteAddr()) }

// Write writes p. It returns once all of p is in the send buffer, from where
// it is delivered, and delivered again on another subflow if need be, as long
// as the connection lives.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.writeAll(p)
	return n, c.opError("write", err)
}

func (c *Conn) writeAll(p []byte) (int, error) {
	if err := c.write.begin(&c.done); err != nil {
		return 0, err
	}
	defer c.write.end()
	return c.writeTurn(p)
}

// writeTurn writes all of p. The caller has its turn.
func (c *Conn) writeTurn(p []byte) (int, error) {
	total, large := 0, len(p) >= largeWrite
	for {
		c.mu.Lock()
		if err := c.writeEnd(); err != nil {
			c.leave()
			return total, err
		}
		now := c.stack.now()
		n := c.core.Write(now, p[:min(len(p), writeChunk)])
		c.asked = true
		total += n
		p = p[n:]
		if n > 0 && (len(p) > 0 || large && c.streams && now.Sub(c.wroteAt) < soon) {
			c.core.Cork(now)
		}
		if len(p) == 0 {
			c.streams = large
		}
		// Under the lock, without which nobody is woken.
		late := len(p) > 0 && c.write.deadline.expired()
		full := n == 0 && len(p) > 0 && !late
		if full {
			c.write.await(min(len(p), max(int(c.lowWater), 1)))
		}
		c.unlock()
		switch {
		case len(p) == 0:
			if large {
				c.wroteAt = c.stack.now()
			}
			return total, nil
		case late:
			return total, errExpired
		case full:
			c.write.sleep(true)
		}
	}
}

// writeEnd returns why nothing more can be written, nil if something can.
// c.mu must be held.
func (c *Conn) writeEnd() error {
	switch {
	case c.done.isClosed():
		return net.ErrClosed
	case c.core.Closed() && c.err != nil:
		return c.err
	case c.writeShut || c.core.Closed():
		return syscall.EPIPE
	}
	return nil
}

// Close closes the connection. Data written before is still delivered, in the
// background, unless SetLinger(0) was called. If data that arrived was not
// read, or more arrives, the connection is reset, so that the peer learns that
// nobody reads what it sends.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.leave()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.finish()
	if c.dead {
		c.leave()
		return nil
	}
	if now := c.stack.now(); c.linger {
		c.core.Close(now)
	} else {
		c.core.Abort(now)
		c.core.Close(now)
	}
	c.unlock()
	return nil
}

// finish makes every call that waits, or comes later, fail with net.ErrClosed.
// c.mu must be held.
func (c *Conn) finish() {
	c.done.close()
	for _, s := range [...]*side{&c.read, &c.write} {
		s.deadline.stop()
		s.wake()
	}
}

// kill ends the connection together with its Stack.
func (c *Conn) kill() {
	c.mu.Lock()
	c.finish()
	if !c.dead {
		c.core.Abort(c.stack.now())
		c.core.Close(c.stack.now())
		c.pump()
		c.dead = true
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.leave()
}

// abort resets the connection without a Close, for one that the application
// never got.
func (c *Conn) abort() {
	c.mu.Lock()
	c.finish()
	if !c.dead {
		c.core.Abort(c.stack.now())
		c.core.Close(c.stack.now())
	}
	c.unlock()
}

// CloseWrite ends the outgoing stream: the peer reads io.EOF after all that
// was written. Reading goes on.
func (c *Conn) CloseWrite() error {
	return c.set("close", func(now mono.Time) {
		c.writeShut = true
		c.core.CloseWrite(now)
	})
}

// CloseRead drops what has arrived and will arrive; Read returns io.EOF.
func (c *Conn) CloseRead() error {
	return c.set("close", func(mono.Time) {
		c.readShut = true
		c.core.CloseRead()
	})
}

// set changes the connection under its lock, unless it was closed.
func (c *Conn) set(op string, change func(now mono.Time)) error {
	c.mu.Lock()
	if c.dead || c.done.isClosed() {
		c.leave()
		return c.opError(op, net.ErrClosed)
	}
	change(c.stack.now())
	c.unlock()
	return nil
}

// SetDeadline sets the deadlines of reads and writes. Like those of any
// net.Conn they are instants: calls that wait when they pass, and calls made
// after that, fail with os.ErrDeadlineExceeded until they are moved. A zero t
// takes them away.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.read, &c.write)
}

// SetReadDeadline sets the deadline of reads.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.read) }

// SetWriteDeadline sets the deadline of writes. A Write that fails because of
// it may have written a part, whose length it returns.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.write) }

func (c *Conn) setDeadlines(t time.Time, sides ...*side) error {
	if c.done.isClosed() {
		return c.opError("set", net.ErrClosed)
	}
	for _, s := range sides {
		s.deadline.set(t, func() { c.expire(s) })
	}
	return nil
}

// expire has the call that waits in a side look at its deadline.
func (c *Conn) expire(s *side) {
	c.mu.Lock()
	s.wake()
	c.leave()
}

// SetLinger says what Close does with data not yet delivered: with sec 0 it
// resets the connection (RFC 8684, Section 3.5: MP_FASTCLOSE) and drops the
// data; otherwise the data is delivered in the background, however long that
// takes.
func (c *Conn) SetLinger(sec int) error {
	return c.set("set", func(mono.Time) { c.linger = sec != 0 })
}

// SetNoDelay says whether small writes are sent at once, which is the
// default, or may wait for earlier ones to be acknowledged (Nagle's
// algorithm).
func (c *Conn) SetNoDelay(noDelay bool) error {
	return c.set("set", func(mono.Time) { c.core.SetNagle(!noDelay) })
}

// SetKeepAlive turns keepalive probes on each subflow, which are on by
// default, on or off.
func (c *Conn) SetKeepAlive(on bool) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: on, Idle: -1, Interval: -1, Count: -1})
}

// SetKeepAlivePeriod sets how long a subflow is idle before the first probe,
// and the time between probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: d, Interval: d, Count: -1})
}

// SetKeepAliveConfig configures keepalive probes as *net.TCPConn does: a zero
// field stands for its default of 15 s, 15 s and 9 probes, a negative one
// leaves what is set.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.set("set", func(now mono.Time) {
		var hc host.ConnConfig
		if c.keepAlive == nil {
			k := newKeepAlive(c.probing)
			c.keepAlive = &k
		}
		c.keepAlive.apply(config)
		c.keepAlive.forHost(&hc)
		c.core.SetKeepAlive(now, hc.Subflow.KeepAlive)
	})
}

// MultipathTCP reports whether the connection speaks MPTCP, as the method of
// *net.TCPConn does; false while that is not known. Info says more.
func (c *Conn) MultipathTCP() (bool, error) {
	c.mu.Lock()
	defer c.leave()
	if c.done.isClosed() {
		return false, c.opError("get", net.ErrClosed)
	}
	return c.core.IsMPTCP(), nil
}

// opError wraps an error of this connection.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return opError(op, c.LocalAddr(), c.RemoteAddr(), err)
}
