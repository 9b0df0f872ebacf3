package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

// Budget is memory that connections share. A connection asks for what its
// buffers may hold beyond what every connection starts with, and gives it
// back when it ends.
type Budget interface {
	// Reserve takes n bytes and reports whether they were there.
	Reserve(n int) bool
	// Release gives n bytes back.
	Release(n int)
}

const (
	// startBuffer is what a buffer that is tuned begins with, in bytes.
	startBuffer = 256 << 10
	// minTuneRTT is the least round trip that buffers are made for: over
	// shorter ones the delays of whoever reads and writes dominate.
	minTuneRTT = 5 * time.Millisecond
)

// idleBuffer is how long nothing must have moved before buffers that grew give
// back what is beyond the size they began with.
const idleBuffer = 10 * time.Second

// buffer is how many bytes one direction may hold.
type buffer struct {
	limit    int
	ceiling  int // the limit grows no further; equal from the start when the size is fixed
	reserved int // bytes of the limit taken from the budget
	pinned   int // bytes besides the limit that a send queue's memory may take, from the budget, too
	tuned    bool
}

// blockSlack is what the memory of a send queue may take besides its bytes: it is
// counted in blocks, of which any stretch of bytes may begin one and end another.
const blockSlack = 2 * stream.DefaultBlock

// newBuffer returns a buffer of a fixed size, or with size 0 one that grows to
// the ceiling.
func (c *Conn) newBuffer(size int) buffer {
	b := buffer{limit: size, ceiling: size}
	if size <= 0 {
		b = buffer{limit: min(startBuffer, c.cfg.MaxBuffer), ceiling: c.cfg.MaxBuffer, tuned: true}
	}
	if over := b.limit - startBuffer; over > 0 {
		b.limit = startBuffer
		c.grow(&b, b.limit+over)
	}
	return b
}

// grow raises a limit as far as ceiling and budget let it, and reports whether
// it did.
func (c *Conn) grow(b *buffer, want int) bool {
	n := min(want, b.ceiling) - b.limit
	if n <= 0 || c.cfg.Budget != nil && !c.cfg.Budget.Reserve(n) {
		return false
	}
	b.limit += n
	b.reserved += n
	return true
}

// release gives back what a buffer took from the budget.
func (c *Conn) release(b *buffer) {
	if n := b.reserved + b.pinned; c.cfg.Budget != nil && n > 0 {
		c.cfg.Budget.Release(n)
	}
	b.reserved, b.pinned = 0, 0
}

// spare is what a send queue may hold besides the limit without asking.
func (b *buffer) spare() int { return min(b.limit, startBuffer) }

// coverPinned takes from the budget what the send queue holds, beyond what is
// spare, of bytes that the peer's connection has, but a slow subflow has yet to
// get acknowledged, or gives it back. The queue holds twice the limit and
// blockSlack at most: there, or earlier where the budget ends, such bytes take
// the room of what could be written.
func (c *Conn) coverPinned(now mono.Time) {
	b := &c.snd.buffer
	n := min(c.snd.q.Memory()-c.outstanding()-blockSlack, b.limit) - b.spare()
	n = max(n, 0) - b.pinned
	switch {
	case c.over:
		return
	case n < 0 && c.cfg.Budget != nil:
		c.cfg.Budget.Release(-n)
	case n > 0 && c.cfg.Budget != nil && !c.cfg.Budget.Reserve(n):
		n = 0
	}
	b.pinned += n
	if b.limit > c.outstanding() && c.WriteRoom() == 0 {
		c.unpin(now)
	}
}

// unpin gives up subflows that get no answer, also not to what was sent again
// after a timeout, and so keep memory without which nothing more could be written.
//
// RFC 8684, Section 3.6: "it is more efficient to reset and start again than it
// is to retransmit the queued data."
func (c *Conn) unpin(now mono.Time) {
	for _, f := range c.flows {
		pins := !f.out.empty() && f.out.first().data < c.snd.una
		if pins && f.stale && f.failed == reason.CloseNone && c.otherUsable(f) && f.tcp.Stats().Backoff > 1 {
			c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetOutstanding)
		}
	}
}

// moved is how far both streams had come when idleness was last looked for.
type moved struct{ written, acked, read, received uint64 }

func (c *Conn) moved() moved {
	next := c.rcv.q.Next()
	return moved{c.snd.q.End(), c.snd.una, next - uint64(c.rcv.q.Readable()), next}
}

// watchIdle sees to it that buffers that grew are looked at again.
func (c *Conn) watchIdle(now mono.Time) {
	grown := c.snd.buffer.tuned && c.snd.buffer.reserved > 0 || c.rcv.buffer.tuned && c.rcv.buffer.reserved > 0
	if grown && !c.timers.At(timerShrink).Set() {
		m := c.moved()
		c.lastMoved = &m
		c.timers.Set(timerShrink, now.Add(idleBuffer))
	}
}

// shrinkIdle shrinks buffers if nothing has moved since it was set up: the send
// buffer to where it began, the receive buffer to what was promised to the peer,
// as the right edge of the window must not move left.
func (c *Conn) shrinkIdle(now mono.Time) {
	if c.lastMoved == nil || c.moved() != *c.lastMoved {
		c.watchIdle(now)
		return
	}
	c.shrink(&c.snd.buffer, c.outstanding())
	next := c.rcv.q.Next()
	c.shrink(&c.rcv.buffer, int(max(c.rcv.adv, next)-next)+c.rcv.q.Readable())
}

// shrink gives back what a tuned buffer has beyond its first size and what is
// still needed.
func (c *Conn) shrink(b *buffer, needed int) {
	n := min(b.limit-max(needed, startBuffer), b.reserved)
	if !b.tuned || n <= 0 {
		return
	}
	b.limit -= n
	b.reserved -= n
	if c.cfg.Budget != nil {
		c.cfg.Budget.Release(n)
	}
}

// round is a measurement of how fast the user reads: dynamic right-sizing, over
// all subflows.
type round struct {
	start mono.Time
	read  uint64 // offset read up to then
	got   uint64 // bytes received up to then, in order or not
	last  int    // bytes received in the round before
}

// tuneReceive grows the receive buffer to twice what the user reads in the
// longest round trip, which is twice the sum of the subflows' rates times the
// largest RTT: one half is in flight while the other is being recovered. While
// the peer speeds up it grows to four times, to stay ahead of slow start, and with
// several subflows to eight, for those on shorter round trips double more than once
// in the longest. Bytes beyond a hole do not count, nobody has read them; when it is
// filled they are read all at once, and count no more than came in that round trip.
func (c *Conn) tuneReceive(now mono.Time) {
	b, r := &c.rcv.buffer, &c.rcv.round
	if b.limit >= b.ceiling {
		return
	}
	read := c.rcv.q.Next() - uint64(c.rcv.q.Readable())
	got := read + uint64(c.rcv.q.Buffered())
	if !r.start.Set() {
		*r = round{start: now, read: read, got: got}
		return
	}
	elapsed, rtt := now.Sub(r.start), c.receiveRTT()
	if elapsed < rtt {
		return
	}
	scale := float64(rtt) / float64(elapsed)
	came := int(float64(got-r.got) * scale)
	n := min(int(float64(read-r.read)*scale), came)
	want := 2 * n
	if came > r.last+r.last/4 {
		want = 4 * n
		if len(c.flows) > 1 {
			want = 8 * n
		}
	}
	c.grow(b, want)
	c.watchIdle(now)
	*r = round{start: now, read: read, got: got, last: came}
	for _, f := range c.flows {
		f.echoRTT = 0
	}
}

// receiveRTT returns the largest round trip of the subflows, as it shows at the
// receiver: the least of this round, so that a sender's pauses do not count.
func (c *Conn) receiveRTT() time.Duration {
	rtt := minTuneRTT
	for _, f := range c.flows {
		if f.phase != phaseUp {
			continue
		}
		if f.echoRTT > 0 {
			rtt = max(rtt, f.echoRTT)
		} else {
			rtt = max(rtt, f.tcp.Snapshot().SRTT)
		}
	}
	return rtt
}

// measureEcho takes a sample of the round trip from the timestamp that a data
// segment echoes: for a receiver that sends no data there is no other.
func (f *flow) measureEcho(now mono.Time, tsecr uint32) {
	clock := subflow.TimeWait{TSOffset: f.tsOffset}
	ms := int32(clock.TSVal(now) - tsecr)
	if d := time.Duration(ms) * time.Millisecond; d > 0 && (f.echoRTT == 0 || d < f.echoRTT) {
		f.echoRTT = d
	}
}

// tuneSend grows the send buffer, when it is nearly all in flight, to twice the
// congestion windows, and to twice the sum of the subflows' rates times the
// largest RTT. What the peer has but cannot acknowledge, because a hole before
// it is being filled, comes on top.
func (c *Conn) tuneSend() {
	b := &c.snd.buffer
	if b.limit >= b.ceiling || int(c.snd.q.End()-c.snd.una) < b.limit/2 || c.Unsent() > b.limit/4 {
		return
	}
	blocked := int(c.snd.nxt - min(c.snd.una, c.snd.nxt))
	windows, rate, longest := 0, 0.0, time.Duration(0)
	for _, f := range c.flows {
		if !f.usable() {
			continue
		}
		s := f.tcp.Snapshot()
		if s.SRTT <= 0 {
			continue
		}
		windows += s.Cwnd
		blocked -= s.InFlight
		rate += min(float64(s.Cwnd)/s.SRTT.Seconds(), s.DeliveryRate)
		longest = max(longest, s.SRTT)
	}
	c.grow(b, 2*max(windows, int(rate*longest.Seconds()))+max(blocked, 0))
}
