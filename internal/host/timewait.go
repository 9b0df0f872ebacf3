package host

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

const (
	// defaultTimeWait is 2 MSL with an MSL of 30 s.
	// Deviation: RFC 9293, Section 3.4.2, has an MSL of two minutes; 60 s is
	// what Linux waits.
	defaultTimeWait = 60 * time.Second
	// defaultMaxTimeWait bounds the entries; the oldest gives way.
	defaultMaxTimeWait = 16384
	// issGap is how far beyond the old connection's last number a new
	// incarnation starts at least: more than any window without scaling.
	issGap = 1<<16 + 2
)

// waiting is what is kept of a subflow in TIME-WAIT.
type waiting struct {
	tuple   tuple
	expires mono.Time
	tcp     subflow.TimeWait

	prev, next int32 // slots of those that expire before and after it
}

// timeWaitTable holds the subflows in TIME-WAIT. All wait equally long, so they
// are chained in order of expiry. As there may be very many, they lie in one piece
// of memory, which is given up once none is left.
type timeWaitTable struct {
	entries map[tuple]int32 // slots
	slots   []waiting       // the first is both ends of the chain
	free    int32           // slot that serves next, chained to others; 0 = a new one
	wait    time.Duration
	most    int
}

func newTimeWaitTable(wait time.Duration, most int) timeWaitTable {
	return timeWaitTable{entries: make(map[tuple]int32), wait: wait, most: most}
}

func (tw *timeWaitTable) has(t tuple) bool {
	_, ok := tw.entries[t]
	return ok
}

// get returns the entry of t, nil if there is none. What it says stays, even if
// the entry is removed, until another is added.
func (tw *timeWaitTable) get(t tuple) *waiting {
	i, ok := tw.entries[t]
	if !ok {
		return nil
	}
	return &tw.slots[i]
}

// add starts the wait of a subflow.
//
// RFC 9293, Section 3.6.1: "When a connection is closed actively, it MUST
// linger in the TIME-WAIT state for a time 2xMSL (Maximum Segment Lifetime)
// (MUST-13)." Deviation: the oldest entry leaves early when the table is full.
func (tw *timeWaitTable) add(now mono.Time, t tuple, tcp subflow.TimeWait) {
	tw.remove(t)
	if len(tw.entries) >= tw.most {
		tw.remove(tw.slots[tw.slots[0].next].tuple)
	}
	i := tw.slot()
	w := &tw.slots[i]
	w.tuple, w.expires, w.tcp = t, now.Add(tw.wait), tcp
	tw.entries[t] = i
	tw.chain(i)
}

// slot takes an unused slot.
func (tw *timeWaitTable) slot() int32 {
	i := tw.free
	switch {
	case i > 0:
		tw.free = tw.slots[i].next
		return i
	case len(tw.slots) == 0:
		tw.slots = append(tw.slots, waiting{})
	}
	tw.slots = append(tw.slots, waiting{})
	return int32(len(tw.slots) - 1)
}

// chain makes slot i the last to expire.
func (tw *timeWaitTable) chain(i int32) {
	last := tw.slots[0].prev
	tw.slots[i].prev, tw.slots[i].next = last, 0
	tw.slots[last].next, tw.slots[0].prev = i, i
}

func (tw *timeWaitTable) unchain(i int32) {
	w := &tw.slots[i]
	tw.slots[w.prev].next, tw.slots[w.next].prev = w.next, w.prev
}

// restart begins the wait of w anew.
func (tw *timeWaitTable) restart(now mono.Time, w *waiting) {
	w.expires = now.Add(tw.wait)
	i := tw.entries[w.tuple]
	tw.unchain(i)
	tw.chain(i)
}

func (tw *timeWaitTable) remove(t tuple) {
	i, ok := tw.entries[t]
	if !ok {
		return
	}
	delete(tw.entries, t)
	if len(tw.entries) == 0 {
		*tw = newTimeWaitTable(tw.wait, tw.most)
		return
	}
	tw.unchain(i)
	tw.slots[i].next, tw.free = tw.free, i
}

// deadline returns when the next entry expires.
func (tw *timeWaitTable) deadline() mono.Time {
	if len(tw.entries) == 0 {
		return 0
	}
	return tw.slots[tw.slots[0].next].expires
}

// expire removes the entries whose wait is over.
func (tw *timeWaitTable) expire(now mono.Time) {
	for tw.deadline().Reached(now) {
		tw.remove(tw.slots[tw.slots[0].next].tuple)
	}
}

// handleTimeWait answers a segment for w that opens nothing new.
func (h *Host) handleTimeWait(now mono.Time, w *waiting, seg *wire.Segment) Verdict {
	switch {
	// RFC 1337, Section 3: ignoring RST in TIME-WAIT is the fix for its
	// premature end; the wait costs little here.
	case seg.Flags.Has(wire.RST):
		return h.drop(reason.DropState)
	// RFC 6191, Section 2: "Otherwise, silently drop the incoming SYN segment".
	case seg.Flags.Has(wire.SYN):
		return h.drop(reason.DropState)
	// An ACK that occupies no sequence space needs no answer, and an answer
	// could go back and forth without end.
	case seg.Len() == 0:
		return h.drop(reason.DropState)
	}
	// RFC 9293, Section 3.10.7.4: "The only thing that can arrive in this
	// state is a retransmission of the remote FIN. Acknowledge it, and restart
	// the 2 MSL timeout."
	if seg.Flags.Has(wire.FIN) {
		h.timeWait.restart(now, w)
	}
	return h.answer(w.ack(now), true, reason.DropDuplicateData)
}

// ack returns the ACK that repeats the last one of the subflow.
func (w *waiting) ack(now mono.Time) reply {
	r := reply{src: w.tuple.local, dst: w.tuple.remote}
	r.header = wire.Header{Seq: w.tcp.SndNxt, Ack: w.tcp.RcvNxt, Flags: wire.ACK, Wnd: w.tcp.Window}
	if w.tcp.Timestamps {
		r.options.Has = wire.OptTimestamps
		r.options.TSVal, r.options.TSEcr = w.tcp.TSVal(now), w.tcp.TSRecent
	}
	return r
}

// mayReopen reports whether a SYN may begin a new incarnation of w, by the
// rules of RFC 6191, Section 2: its timestamp, or failing that its sequence
// number, must be newer than everything that the old incarnation sent.
// timestamps says that we would use timestamps in the new one.
func (w *waiting) mayReopen(syn *wire.Segment, timestamps bool) bool {
	newer := w.tcp.RcvNxt.LessEq(syn.Seq) // RCV.NXT is one beyond the old FIN
	if !timestamps || syn.Has&wire.OptTimestamps == 0 {
		return newer
	}
	if !w.tcp.Timestamps {
		return true
	}
	d := int32(syn.TSVal - w.tcp.TSRecent)
	return d > 0 || d == 0 && newer
}

// reuseAfter is how long a tuple stays in TIME-WAIT at least before a dial may
// use it again.
const reuseAfter = time.Second

// mayLeave reports whether w, of a table where all wait that long, may give way
// to a dial from the same port. Timestamps have to have been in use: ours has
// then moved on, so that the peer can tell new segments from old duplicates,
// as RFC 6191 has it of the other side.
func (w *waiting) mayLeave(now mono.Time, wait time.Duration) bool {
	return w.tcp.Timestamps && w.expires.Add(reuseAfter-wait).Reached(now)
}

// issAfter returns iss, moved beyond the numbers that w used.
//
// RFC 9293, Section 3.6.1: a SYN may reopen the connection if the host
// "assigns its initial sequence number for the new connection to be larger
// than the largest sequence number it used on the previous connection
// incarnation".
func (w *waiting) issAfter(iss seq.SSN) seq.SSN {
	if w.tcp.SndNxt.Less(iss) {
		return iss
	}
	return w.tcp.SndNxt.Add(issGap)
}
