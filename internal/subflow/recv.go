package subflow

import (
	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// quickACKs is how many segments at the beginning are acknowledged at once,
// so that delayed ACKs do not slow the peer's slow start down.
const quickACKs = 16

// ackDue says whether an ACK is owed to the peer.
type ackDue uint8

const (
	ackNone    ackDue = iota
	ackLater          // when timerDelAck fires or a second segment arrives
	ackForWait        // the same, or when the user waits for more (Knobs.PutOff)
	ackNow
)

// receiver holds the variables of RFC 9293, Section 3.3.1, for the sequence
// space that the peer sends in.
type receiver struct {
	irs     seq.SSN
	shift   uint8 // our window scale
	scaled  bool  // both sides scale windows
	quick   uint8 // segments still to be acknowledged at once
	due     ackDue
	nxt     relSSN
	edge    relSSN // right edge of what is accepted
	offer   relSSN // right edge to be advertised, at most edge
	space   int    // largest window ever asked for
	told    relSSN // right edge last advertised; 0 = no segment was sent
	lastAck relSSN // Last.ACK.sent
	stands  standing
	fin     relSSN // place of the peer's FIN; 0 = not known

	run    Data      // in order and not fetched yet; empty without Views
	beyond *beyond   // nil = nothing was received beyond a hole
	again  sackRange // received twice, to be reported by D-SACK (RFC 2883)
	mss    int       // largest payload seen, at most what our MSS option allowed
}

// beyond is what arrived before something that precedes it, and what follows
// until all was fetched.
type beyond struct {
	q      *stream.RecvQ // offset 0 is the first byte
	held   interval.Set  // numbers received beyond a hole
	recent [4]relSSN     // a number of each range of held that changed last, latest first; 0 = none
}

// holes reports whether something was received beyond a hole.
func (r *receiver) holes() bool { return r.beyond != nil && r.beyond.held.Len() > 0 }

// reports reports whether there is something to say in SACK blocks.
func (r *receiver) reports() bool { return r.holes() || r.again.hi > 0 }

// sackRange is a range [lo, hi) of the peer's numbers; empty when hi is 0.
type sackRange struct{ lo, hi relSSN }

// Data is received payload, each byte exactly once and in order.
type Data struct {
	Off   uint64     // stream offset of the first byte
	Views [][]byte   // valid until the next call to the subflow
	Owner wire.Owner // keeps Views alive; the receiver of Data calls DecRef; may be nil
}

// NextData hands out the next received payload and reports whether there was
// any.
func (s *Subflow) NextData(d *Data) bool {
	run := &s.rcv.run
	if len(run.Views) > 0 {
		*d = *run
		run.Views, run.Owner = run.Views[:0], nil
		return true
	}
	clear(run.Views[:cap(run.Views)]) // handed out before
	b := s.rcv.beyond
	if b == nil {
		return false
	}
	off, views, owner, ok := b.q.Pop()
	if !ok {
		if b.held.Len() == 0 {
			s.rcv.beyond = nil
		}
		return false
	}
	*d = Data{Off: off, Views: views}
	if owner != nil {
		d.Owner = owner
	}
	return true
}

// PeerClosed reports whether the peer's FIN has been reached: all payload
// before it was handed out by NextData.
func (s *Subflow) PeerClosed() bool {
	r := &s.rcv
	return r.fin != 0 && r.nxt > r.fin && len(r.run.Views) == 0 && (r.beyond == nil || r.beyond.q.Readable() == 0)
}

// RequestAck makes an ACK due at once, for a window update or an option.
func (s *Subflow) RequestAck() {
	s.stir()
	if s.state.Synchronized() && !s.state.over() {
		s.rcv.due = ackNow
	}
}

// AwaitInput says that the user, having answered or not, waits for input. It
// reports whether that makes an ACK due.
func (s *Subflow) AwaitInput() bool {
	if s.rcv.due != ackForWait {
		return false
	}
	s.stir()
	s.rcv.due = ackNow
	return true
}

// OweAck makes an ACK due for something that the user may well answer: with
// Knobs.PutOff together with the answer, if that is not long in coming.
func (s *Subflow) OweAck(now mono.Time) {
	if !s.cfg.PutOff || s.cfg.DelayedACK < 0 {
		s.RequestAck()
		return
	}
	s.stir()
	s.putOff(now, ackLater)
}

// putOff makes an ACK due that can wait, if none is due.
//
// RFC 9293, Section 3.8.6.3: "the delay MUST be less than 0.5 seconds".
func (s *Subflow) putOff(now mono.Time, until ackDue) {
	if s.rcv.due == ackNone {
		s.rcv.due = until
		s.timers.Set(timerDelAck, now.Add(s.cfg.DelayedACK))
	}
}

// receive takes the payload and the FIN of an acceptable segment that begins
// at num.
func (s *Subflow) receive(now mono.Time, seg *wire.Segment, num relSSN) {
	size := seg.PayloadLen()
	fin := seg.Flags.Has(wire.FIN)
	if size == 0 && !fin {
		return
	}
	if s.rcv.fin != 0 && s.rcv.nxt > s.rcv.fin {
		// RFC 9293, Section 3.10.7.4: after a FIN "This should not occur
		// [...] Ignore the segment text." The FIN may have come again.
		s.rcv.due = ackNow
		s.count.drops.Count(reason.DropDuplicateData)
		return
	}
	if size > 0 {
		s.noteCE(seg, size)
	}
	end := num + relSSN(size)
	limit := s.rcv.edge
	if s.rcv.fin != 0 {
		limit = min(limit, s.rcv.fin)
	}
	if end > limit {
		s.count.drops.Count(reason.DropOutOfWindow)
	}
	next := s.rcv.nxt
	s.store(seg, num, min(end, limit))
	// A FIN right behind a full window is taken: it needs no memory.
	if fin && end <= s.rcv.edge && s.rcv.fin == 0 && s.heldEnd() <= end {
		s.rcv.fin = end
	}
	s.noteSize(size)
	s.owe(now, seg, num, next)
	if s.rcv.fin != 0 && s.rcv.nxt == s.rcv.fin {
		s.rcv.nxt++
		s.oweFIN(now)
		s.finReceived(now)
	}
}

// heldEnd returns where the received numbers end.
func (s *Subflow) heldEnd() relSSN {
	if s.rcv.holes() {
		held := &s.rcv.beyond.held
		return relSSN(held.At(held.Len() - 1).Hi)
	}
	return s.rcv.nxt
}

// store keeps the payload in [num, end) as far as it is new.
func (s *Subflow) store(seg *wire.Segment, num, end relSSN) {
	lo := max(num, s.rcv.nxt)
	if num < s.rcv.nxt && end > num {
		s.noteAgain(num, min(end, s.rcv.nxt))
	}
	if end <= lo {
		return
	}
	views := cut(seg.Payload, int(lo-num), int(end-lo))
	if r := &s.rcv; r.beyond == nil && lo == r.nxt && len(r.run.Views) == 0 {
		r.run = Data{Off: uint64(lo - 1), Views: append(r.run.Views, views...), Owner: seg.Owner}
		seg.Owner = nil
		s.count.bytesReceived += uint64(end - lo)
		r.nxt = end
		return
	}
	s.storeBeyond(seg, views, lo, end)
}

// storeBeyond keeps [lo, end) of a segment while what precedes it is missing, or
// was not fetched yet.
func (s *Subflow) storeBeyond(seg *wire.Segment, views [][]byte, lo, end relSSN) {
	b := s.rcv.beyond
	if b == nil {
		b = &beyond{q: stream.NewRecvQ(uint64(s.rcv.nxt - 1))}
		s.rcv.beyond = b
	}
	fresh, kept := b.q.Insert(uint64(lo-1), views, streamOwner(seg.Owner))
	if kept {
		seg.Owner = nil
	}
	if dup := int(end-lo) - fresh; dup > 0 {
		s.count.drops.Count(reason.DropDuplicateData)
		if fresh == 0 {
			s.noteAgain(lo, end)
		}
	}
	s.count.bytesReceived += uint64(fresh)
	s.rcv.nxt = relSSN(b.q.Next()) + 1
	if lo > s.rcv.nxt {
		b.held.Add(uint64(lo), uint64(end))
		b.noteRecent(lo)
	} else if b.held.Len() > 0 {
		b.held.Remove(0, uint64(s.rcv.nxt))
	}
}

// streamOwner converts an owner without making a nil one look set.
func streamOwner(o wire.Owner) stream.Owner {
	if o == nil {
		return nil
	}
	return o
}

// cut returns the n bytes of views behind the first skip bytes. It may change
// views.
func cut(views [][]byte, skip, n int) [][]byte {
	for len(views) > 0 && skip >= len(views[0]) {
		skip -= len(views[0])
		views = views[1:]
	}
	if len(views) == 0 {
		return nil
	}
	views[0] = views[0][skip:]
	for i, v := range views {
		if len(v) >= n {
			views[i] = v[:n]
			return views[:i+1]
		}
		n -= len(v)
	}
	return views
}

// noteSize learns how large the peer's full segments are.
func (s *Subflow) noteSize(size int) {
	s.rcv.mss = max(s.rcv.mss, min(size, s.mtu-headerLen))
}

// owe decides when a segment whose payload begins at num is acknowledged; next
// was RCV.NXT before it.
func (s *Subflow) owe(now mono.Time, seg *wire.Segment, num, next relSSN) {
	size := seg.PayloadLen()
	switch {
	case size == 0:
		return
	// RFC 5681, Section 4.2: "A TCP receiver SHOULD send an immediate
	// duplicate ACK when an out-of-order segment arrives", and "an immediate
	// ACK when the incoming segment fills in all or part of a gap in the
	// sequence space".
	case num != next, s.rcv.holes(), s.rcv.nxt != next+relSSN(size):
		s.rcv.due = ackNow
	case s.rcv.quick > 0:
		s.rcv.quick--
		if s.mayPutOff(seg) {
			s.putOff(now, ackForWait)
			return
		}
		s.rcv.due = ackNow
	// RFC 9293, Section 3.8.6.3: "An ACK SHOULD be generated for at least
	// every second full-sized segment" (SHLD-19).
	case s.rcv.nxt-s.rcv.lastAck >= relSSN(2*s.rcv.mss), s.cfg.DelayedACK < 0:
		s.rcv.due = ackNow
	default:
		s.putOff(now, ackLater)
	}
}

// mayPutOff reports whether one of the first segments need not be acknowledged at
// once: a single one with all that the peer has to say, whose window it does not
// fill, which Nagle's algorithm may hold up, however, until the user waits in
// vain.
func (s *Subflow) mayPutOff(seg *wire.Segment) bool {
	return s.cfg.PutOff && s.cfg.DelayedACK > 0 && seg.Flags.Has(wire.PSH) && s.rcv.due == ackNone && seg.PayloadLen() <= s.rcv.mss
}

// oweFIN decides when a FIN is acknowledged. A user that is done as well has its
// own FIN say so.
func (s *Subflow) oweFIN(now mono.Time) {
	if s.state == StateEstablished && s.rcv.due != ackNow {
		s.OweAck(now)
		return
	}
	s.rcv.due = ackNow
}

// noteAgain remembers a duplicate for D-SACK.
func (s *Subflow) noteAgain(lo, hi relSSN) { s.rcv.again = sackRange{max(lo, 0), hi} }

// noteRecent puts n, which is in held, in front of the numbers whose ranges
// are reported, and forgets others of the same range.
func (b *beyond) noteRecent(n relSSN) {
	in, _ := b.held.Next(uint64(n))
	old := b.recent
	b.recent = [4]relSSN{n}
	i := 1
	for _, m := range old {
		if i < len(b.recent) && m > 0 && !in.Contains(uint64(m)) {
			b.recent[i] = m
			i++
		}
	}
}

// putSACK reports what lies beyond the first hole, in at most room bytes of
// options.
//
// RFC 2018, Section 4: "The first SACK block (i.e., the one immediately
// following the kind and length fields in the option) MUST specify the
// contiguous block of data containing the segment which triggered this ACK",
// and the others repeat the most recently reported ones. RFC 2883, Section 4:
// a duplicate is reported once, in front of them.
func (s *Subflow) putSACK(seg *wire.Segment, room int) {
	n := min((room-4)/8, len(seg.SACK))
	if !s.snd.sack || n <= 0 {
		return
	}
	used, first := 0, 0
	put := func(lo, hi relSSN) {
		b := wire.SACKBlock{Left: lo.absolute(s.rcv.irs), Right: hi.absolute(s.rcv.irs)}
		for _, old := range seg.SACK[first:used] {
			if old == b {
				return
			}
		}
		seg.SACK[used] = b
		used++
	}
	if a := s.rcv.again; a.hi > 0 {
		put(a.lo, a.hi)
		s.rcv.again = sackRange{}
		first = 1 // may be repeated: that is how it is told from what is new
	}
	if b := s.rcv.beyond; b != nil {
		for _, at := range b.recent {
			r, ok := b.held.Next(uint64(at))
			if used < n && ok && at > 0 && r.Contains(uint64(at)) {
				put(relSSN(r.Lo), relSSN(r.Hi))
			}
		}
		// Then, so that a sender that lost ACKs still learns of all, the lowest.
		for i := 0; used < n && i < min(b.held.Len(), n); i++ {
			r := b.held.At(i)
			put(relSSN(r.Lo), relSSN(r.Hi))
		}
	}
	if used > 0 {
		seg.Has |= wire.OptSACK
		seg.NumSACK = uint8(used)
	}
}
