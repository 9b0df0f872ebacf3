package mptcp

import (
	"sync"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// batchSize is how many packets are given to the network at a time.
const batchSize = 32

// minSleep keeps a deadline that is due already from spinning.
const minSleep = time.Microsecond

// batch is memory for packets on their way out.
type batch struct {
	packets [batchSize]Packet
	segs    [batchSize]wire.Segment
	headers [batchSize][60]byte
	n       int
}

var batchPool = sync.Pool{New: func() any { return new(batch) }}

// fill polls segments until the batch is full or none is left.
func (b *batch) fill(now mono.Time, poll func(mono.Time, *wire.Segment) bool) {
	for b.n < batchSize {
		seg := &b.segs[b.n]
		seg.Reset()
		if !poll(now, seg) {
			return
		}
		header := &b.headers[b.n]
		b.packets[b.n] = Packet{
			Src: seg.Src, Dst: seg.Dst,
			Header:  header[:wire.Build(header, seg)],
			Payload: seg.Payload, Blocks: seg.Blocks,
			ECN: uint8(seg.ECN), SegSize: seg.SegSize,
		}
		b.n++
	}
}

// flush sends what is in the batch, and forgets it.
func (b *batch) flush(n Network) {
	if b.n == 0 {
		return
	}
	n.Send(b.packets[:b.n])
	clear(b.packets[:b.n])
	for i := range b.segs[:b.n] {
		b.segs[i].Reset()
	}
	b.n = 0
}

// free gives the batch back, which must be empty.
func (b *batch) free() { batchPool.Put(b) }

// kick makes the caller the owner of c.mu, and so the one who empties the
// inbox, unless somebody else is: the owner looks into the inbox after it
// gave the lock up. It never blocks, so that it may be called from within
// Network.Send, even from a Send of this very connection.
func (c *Conn) kick() {
	for c.inbox.any.Load() && c.mu.TryLock() {
		c.pump()
		c.release()
	}
}

// unlock gives up c.mu after calls that may have made output available.
func (c *Conn) unlock() {
	c.pump()
	c.leave()
}

// leave gives up c.mu after calls that made no output available.
func (c *Conn) leave() {
	c.release()
	c.kick()
}

// release unlocks c.mu, then does what must not be done under it: tell the
// listener that the connection can be accepted.
func (c *Conn) release() {
	l := c.accepted
	c.accepted = nil
	c.mu.Unlock()
	if l != nil {
		l.User.(*Listener).wake()
	}
}

// pumpRounds is how often one call of pump goes round at most. A connection
// that never runs dry would keep others from its lock otherwise.
const pumpRounds = 8

// pump moves what can move: items from the inbox into the core, segments out
// of it, events into the host's tables; it wakes the calls that can go on and
// sets the timer. c.mu must be held. What it leaves behind is noted in the
// inbox, for kick.
//
// Events are interpreted before the segments polled along with them leave: the
// answer to an MP_JOIN may come back before Send returns, and must find the
// new subflow in the tables.
func (c *Conn) pump() {
	if c.dead {
		c.drain(0)
		return
	}
	b := batchPool.Get().(*batch)
	defer b.free()
	for busy, round := true, 0; busy; round++ {
		if round == pumpRounds {
			c.inbox.ring()
			return
		}
		now := c.stack.now()
		c.drain(now)
		if c.core.Deadline().Reached(now) {
			c.core.HandleTimeout(now)
		}
		c.serve(now)
		b.fill(now, c.core.PollSegment)
		if b.n > 0 {
			c.used = now
		}
		// The core has nothing to send now unless the batch was full or the host
		// answered an event.
		busy = c.step(now) || b.n == batchSize
		c.trace.sent(b)
		c.trace.metrics(now)
		b.flush(c.stack.network)
		c.wake()
		if busy = busy || c.inbox.any.Load(); !busy {
			c.trim(now)
			c.arm(now)
		}
	}
}

// idleAfter is for how long nothing must have happened on a connection before it
// gives up memory that it does not use.
const idleAfter = time.Second

// trim gives up memory that is not in use, once nothing has happened for a time.
func (c *Conn) trim(now mono.Time) {
	if !c.used.Set() || now.Sub(c.used) < idleAfter {
		return
	}
	c.used = 0
	c.core.Trim()
	c.trimSides()
	if c.timer != nil && !c.core.Deadline().Set() {
		c.timer.Stop()
		c.timer, c.armed = nil, 0
	}
}

// trimSides gives up the channels that calls wait for, if none does.
func (c *Conn) trimSides() {
	reads, writes := c.read.turn.idle(), c.write.turn.idle()
	if reads {
		c.read.trim()
	}
	if writes {
		c.write.trim()
	}
	if reads && writes && c.changed == nil && len(c.joins) == 0 {
		c.done.trim()
	}
	if reads {
		c.read.end()
	}
	if writes {
		c.write.end()
	}
}

// drain gives the core what is in the inbox.
func (c *Conn) drain(now mono.Time) {
	it, alarm := c.inbox.fetch()
	if alarm {
		// The timer may not have fired, if pump asked for another look; it
		// is set again then, which is harmless.
		c.armed = 0
	}
	if it != nil {
		c.used = now
	}
	for it != nil {
		next := it.next
		if !c.dead {
			c.handle(now, it)
		}
		it.recycle()
		it = next
	}
}

// step has the host interpret the core's events. It reports whether there were
// any.
func (c *Conn) step(now mono.Time) bool {
	if !c.core.HasEvents() {
		return false
	}
	s := c.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.host.Step(now, c.core); l != nil {
		c.accepted = l
	}
	s.arm(now)
	return true
}

// wake lets calls go on that wait for something that is there now.
func (c *Conn) wake() {
	over := c.core.Closed()
	if c.read.want > 0 && (over || c.readShut || c.read.got.Load() > 0 || c.core.Readable() > 0 || c.core.EOF()) {
		c.read.wake()
	}
	if c.write.want > 0 && (over || c.writeShut || c.core.WriteRoom() >= c.write.want) {
		c.write.wake()
	}
}

// arm sets the timer for the core's deadline. A timer that is to fire earlier
// stays as it is: firing too early costs one look, moving it would cost that
// for each segment.
func (c *Conn) arm(now mono.Time) {
	at := c.core.Deadline()
	if c.used.Set() {
		at = mono.Earliest(at, c.used.Add(idleAfter))
	}
	if !at.Set() || c.armed.Set() && c.armed <= at {
		return
	}
	c.armed = at
	left := max(at.Sub(now), minSleep)
	if c.timer == nil {
		c.timer = time.AfterFunc(left, c.alarm)
	} else {
		c.timer.Reset(left)
	}
}
