package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// handleMapping notes the mapping of a DSS, and its DATA_FIN.
func (c *Conn) handleMapping(now mono.Time, f *flow, seg *wire.Segment) {
	d := &seg.DSS
	if d.Len == 0 {
		c.infiniteMapping(now, f, d)
		return
	}
	place := c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, c.rcv.q.Next())
	n := int(d.Len)
	if d.Flags&wire.DSSFin != 0 {
		// RFC 8684, Section 3.3.3: the DATA_FIN is counted in the length and
		// takes the last number.
		n--
		c.handleDataFin(now, f, place+int64(n), seg.Flags&wire.FIN != 0)
	}
	if n == 0 || d.SSN == 0 {
		return
	}
	if place < 0 || uint64(place)+uint64(n) > c.rcv.adv+uint64(c.rcv.buffer.limit) {
		// Wholly outside what could ever have been offered.
		c.drop(reason.DropDataWindow)
		return
	}
	c.addMapping(now, f, mapping{
		off: f.offsetOf(d.SSN), data: uint64(place), n: n, dssLen: d.Len, checksum: d.Checksum,
	})
}

// handleDataFin notes where the peer's stream ends. withFIN: the subflow's end came
// along, which is acknowledged in any case.
func (c *Conn) handleDataFin(now mono.Time, f *flow, place int64, withFIN bool) {
	if c.rcv.hasFin && uint64(place) != c.rcv.fin {
		// The end of a stream does not move.
		c.drop(reason.DropMapping)
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMPTCP)
		return
	}
	again := c.rcv.hasFin
	if !again {
		if uint64(place) < c.rcv.q.Next() || uint64(place) > c.rcv.adv {
			c.drop(reason.DropDataWindow)
			return
		}
		c.rcv.fin, c.rcv.hasFin = uint64(place), true
		c.rcv.finFirst = !c.snd.closed
	}
	switch {
	case withFIN:
	case again, c.snd.closed: // a repeated one asks for the DATA_ACK again
		f.tcp.RequestAck()
	default:
		f.tcp.OweAck(now)
	}
}

// receive takes a run of a subflow's payload, in subflow order.
func (c *Conn) receive(f *flow, d *subflow.Data) {
	c.rcv.lastOn = f
	n := 0
	for _, v := range d.Views {
		n += len(v)
	}
	f.got = d.Off + uint64(n)
	if c.mode == modePlain {
		c.deliver(f, d.Off+f.infiniteDelta, d.Views, d.Owner)
		return
	}
	// The common case: one mapping covers the run, nothing waits.
	if m, ok := f.in.find(d.Off); ok && f.held.empty() && m.end() >= f.got && c.intact(f, m, d) {
		c.deliver(f, m.data+(d.Off-m.off), d.Views, d.Owner)
		c.forgetMappings(f)
		return
	}
	f.hold(d)
}

// forgetMappings drops incoming mappings whose bytes have all been used.
func (c *Conn) forgetMappings(f *flow) {
	done := f.heldFrom()
	for !f.in.empty() && f.in.first().end() <= done {
		f.in.pop()
	}
}

// deliver puts payload at its place in the stream.
func (c *Conn) deliver(f *flow, off uint64, views [][]byte, owner wire.Owner) {
	n := 0
	for _, v := range views {
		n += len(v)
	}
	next := c.rcv.q.Next()
	kept := false
	beyond := off+uint64(n) > max(c.rcv.adv, next) || c.rcv.hasFin && off+uint64(n) > c.rcv.fin
	switch {
	case beyond && c.mode == modeMPTCP:
		// RFC 8684, Section 3.8: data outside the window is dropped; the
		// subflow has acknowledged it, the connection does not. On plain TCP
		// the subflow's own window, which may reach further at a fallback, is
		// the only one.
		c.drop(reason.DropDataWindow)
		f.tcp.RequestAck()
	default:
		if off > next {
			if _, touches := c.rcv.q.RangeOf(off - 1); touches {
				c.oddity().OutOfOrderMerged++
			}
		}
		var fresh int
		fresh, kept = c.rcv.q.Insert(off, views, owner)
		c.stats.BytesReceived += uint64(fresh)
		c.rcv.late = c.rcv.late || c.userClosed && fresh > 0
		c.stats.BytesDuplicate += uint64(n - fresh)
		c.countPlace(off, n, fresh, next)
		if fresh < n {
			c.drop(reason.DropDuplicateData)
		}
		if c.rcv.q.Next() > off+uint64(n) && off <= next {
			// A hole was filled: the sender may be waiting for the window.
			f.tcp.RequestAck()
		}
	}
	if owner != nil && !kept {
		owner.DecRef()
	}
	if c.rcv.discard {
		c.rcv.q.Discard(c.rcv.q.Readable())
	}
}

// countPlace counts where a run of n bytes, of which some were fresh, came to
// lie; next was the first byte missing before.
func (c *Conn) countPlace(off uint64, n, fresh int, next uint64) {
	switch {
	case fresh == 0:
		c.oddity().Duplicates++
	case off > next:
		c.oddity().OutOfOrder++
		if off >= c.rcv.high {
			c.oddity().OutOfOrderTail++
		}
	}
	c.rcv.high = max(c.rcv.high, off+uint64(n))
}

// Read copies received bytes to p and returns how many.
func (c *Conn) Read(now mono.Time, p []byte) int {
	n := c.rcv.q.Read(p)
	if n > 0 {
		c.windowOpened(now)
	}
	return n
}

// Readable returns how many bytes Read could copy now.
func (c *Conn) Readable() int { return c.rcv.q.Readable() }

// Peek returns the next contiguous view of received bytes, without copying;
// it is valid until the next call.
func (c *Conn) Peek() []byte { return c.rcv.q.Peek() }

// Discard drops the next n received bytes.
func (c *Conn) Discard(now mono.Time, n int) {
	c.rcv.q.Discard(n)
	c.windowOpened(now)
}

// Pop takes the next whole piece of received bytes out of the queue. The
// reference, which may be nil, moves to the caller, who gives it back under the
// lock that guards the connection. The views' slice is valid until the next
// call.
func (c *Conn) Pop(now mono.Time) (views [][]byte, owner stream.Owner) {
	_, views, owner, ok := c.rcv.q.Pop()
	if ok {
		c.windowOpened(now)
	}
	return views, owner
}

// EOF reports whether the peer has ended its stream and all of it was read.
func (c *Conn) EOF() bool { return c.rcv.eof() && c.rcv.q.Readable() == 0 }
