package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Range says which payload a segment carries: Len bytes from stream offset
// Off on. Offset 0 is the first byte after the SYN, so that the relative
// subflow sequence number of a DSS mapping is Off+1.
type Range struct {
	Off        uint64
	Len        int  // 0: no payload
	Retransmit bool // sent before
}

// PollSegment fills seg with the next segment to send, except for its payload
// and the connection's options, and reports whether there was one. The order
// is: RST, SYN, an ACK that reports a hole, what was lost, new data, what may
// be lost, a probe, an ACK. Only a SYN with FastOpen has a Range of payload.
func (s *Subflow) PollSegment(now mono.Time, seg *wire.Segment) (r Range, ok bool) {
	seg.Reset()
	if s.still {
		return r, false
	}
	if r, ok = s.poll(now, seg); ok {
		s.count.segsSent++
		s.moves++
	}
	s.still = !ok && len(s.events) == 0
	return r, ok
}

// stir makes the next poll look for something to send. Whatever may give the
// subflow something does so: each input, timeout and verb.
func (s *Subflow) stir() {
	s.still = false
	s.moves++
}

// Still reports whether the next poll would find nothing to send, for nothing
// has happened since the last one.
func (s *Subflow) Still() bool { return s.still }

// Moves returns a number that rises whenever something happens. While it stays,
// Snapshot and QueueRoom do.
func (s *Subflow) Moves() uint64 { return s.moves }

func (s *Subflow) poll(now mono.Time, seg *wire.Segment) (Range, bool) {
	if s.pollReset(now, seg) {
		return Range{}, true
	}
	if s.state == StateSynSent || s.state == StateSynReceived {
		if r, ok := s.pollSYN(now, seg); ok {
			return r, true
		}
		if r, ok := s.pollEarly(now, seg); ok {
			return r, true
		}
	} else if s.pollTurn(now, seg) {
		return Range{}, true
	} else if s.rcv.due == ackNow && s.rcv.reports() {
		// SACK blocks find no room beside full payloads.
		s.putACK(now, seg, int(s.room.ACK))
		return Range{}, true
	}
	if s.state.Synchronized() && !s.state.over() {
		s.restart(now)
		if r, ok := s.pollData(now, seg); ok {
			return r, true
		}
		if s.alive.probe {
			s.putProbe(now, seg)
			return Range{}, true
		}
		s.noteIdle(now)
		s.setPersist(now)
	}
	if s.rcv.due == ackNow {
		s.putACK(now, seg, int(s.room.ACK))
		return Range{}, true
	}
	return Range{}, false
}

// pollData picks what to send by RFC 6675, Section 4, NextSeg: first what is
// lost, then new data, then holes that may be losses, then a rescue.
func (s *Subflow) pollData(now mono.Time, seg *wire.Segment) (Range, bool) {
	if n := min(s.nextNew(now), s.frtoData()); n > 0 {
		s.rec.frtoLeft -= n
		return s.sendNew(now, seg, n, s.snd.mss), true
	}
	if i := s.queue.nextPending(); i >= 0 {
		if s.rec.frto == frtoNew {
			s.rec.frto = frtoOff // there is no new data
		}
		return s.resend(now, seg, i)
	}
	if n := s.probeSize(now); n > 0 {
		s.probed(s.snd.nxt, s.snd.nxt+relSSN(n))
		return s.sendNew(now, seg, n, n), true
	}
	if n := s.nextNew(now); n > 0 {
		return s.sendNew(now, seg, n, s.snd.mss), true
	}
	if s.finDue() {
		return s.sendNew(now, seg, 0, s.snd.mss), true
	}
	if s.rack.tlp.due {
		if i := s.lastPacket(); i >= 0 {
			s.probeSent(true)
			return s.resend(now, seg, i)
		}
		s.rack.tlp.due, s.rec.pass = false, false
	}
	if i := s.speculate(now); i >= 0 {
		return s.resend(now, seg, i)
	}
	return Range{}, false
}

// Largest returns the most payload bytes of one segment, in full packets, pacing
// apart.
func (s *Subflow) Largest() int { return max(s.segmentMax/s.snd.mss, 1) * s.snd.mss }

// largest returns the most payload bytes of the next segment.
func (s *Subflow) largest() int {
	most := s.segmentMax
	if rate := s.pacingRate(); rate > 0 {
		most = min(most, s.burst(rate))
	}
	return max(most/s.snd.mss, 1) * s.snd.mss
}

// nextNew returns how many new bytes the next segment holds: as many as are
// pushed up to the next border and the windows allow, in full packets unless
// that is all of them.
func (s *Subflow) nextNew(now mono.Time) int {
	piece := int(s.snd.border() - s.snd.nxt)
	if piece <= 0 || s.snd.queued() == 0 {
		return 0
	}
	window := int(s.snd.una) + s.snd.wnd - int(s.snd.nxt)
	n := min(piece, s.largest(), s.budget(now), window)
	switch {
	case n == piece, n <= 0:
		return max(n, 0)
	case n >= s.snd.mss:
		return n - n%s.snd.mss
	case s.silly(n):
		return 0
	}
	return n
}

// budget returns how many bytes the congestion window and pacing have room for. One
// segment is always allowed when nothing is in flight, and once as a probe or
// after a timeout.
func (s *Subflow) budget(now mono.Time) int {
	inFlight := s.pipe()
	n := s.cwnd() - inFlight
	if s.rec.pass {
		return max(n, s.snd.mss)
	}
	if inFlight == 0 {
		n = max(n, s.snd.mss)
	}
	return min(n, s.paced(now))
}

// finDue reports whether our FIN is to be sent and all data before it was.
// It is sent whatever the peer's window is, and repeated until it fits.
func (s *Subflow) finDue() bool {
	return s.snd.fin != 0 && s.snd.nxt == s.snd.fin
}

// sendNew sends n new bytes in packets of mss, and the FIN if it follows them.
func (s *Subflow) sendNew(now mono.Time, seg *wire.Segment, n, mss int) Range {
	lo := s.snd.nxt
	s.rack.sent++
	rec := record{nth: s.rack.sent, lo: lo, hi: lo + relSSN(n), sentAt: now, mss: mss, at: s.rate.stamp(now, s.pipe(), n)}
	// Before the third ACK the FIN waits (RFC 9293, Section 3.10.4: "queue for
	// processing after entering ESTABLISHED state").
	if s.snd.fin == rec.hi && s.state != StateSynReceived {
		rec.hi++
	}
	s.snd.nxt = rec.hi
	s.snd.passed()
	s.queue.push(rec)
	if n > 0 {
		s.snd.lastAt = now
		s.snd.override, s.snd.refused, s.snd.persists = false, false, 0
	}
	if s.pipe()+s.snd.mss > int(s.ctl.State().Cwnd) {
		s.rec.fullUntil = s.snd.nxt
	}
	s.rec.pass = false
	s.putData(now, seg, &rec)
	if n > 0 && s.ecn.sends() {
		seg.ECN = wire.ECT0
		if s.ecn.cwr {
			seg.Flags |= wire.CWR
			s.ecn.cwr = false
		}
	}
	if s.rack.tlp.due {
		s.probeSent(false)
	} else {
		s.armProbe(now)
	}
	return Range{Off: uint64(lo - 1), Len: n}
}

// resend sends the first part of record i again, as much as the congestion
// window allows.
func (s *Subflow) resend(now mono.Time, seg *wire.Segment, i int) (Range, bool) {
	r := s.queue.get(i)
	size := s.payload(r.lo, r.hi)
	n := min(size, s.largest(), s.budget(now))
	if n < size {
		n -= n % s.snd.mss
		if n <= 0 {
			return Range{}, false
		}
		s.queue.split(i, r.lo+relSSN(n))
		r = s.queue.get(i)
	}
	before := s.pipe()
	s.queue.mark(r, markAgain|markTwice, 0)
	s.rack.sent++
	r.nth = s.rack.sent
	r.sentAt, r.mss, r.at = now, s.snd.mss, s.rate.stamp(now, before, n)
	s.rec.pass = false
	if s.rack.on {
		s.rec.begin().resent.push(resent{r.lo, r.hi, r.nth})
	}
	if s.rec.phase != phaseOpen {
		s.rec.undo.noteRetransmit(s.tsVal(now), r.len())
	}
	s.count.trouble().segsRetransmitted++
	s.count.trouble().bytesRetransmitted += uint64(n)
	s.snd.lastAt = now
	s.deferRexmit(now)
	s.putData(now, seg, r)
	return Range{Off: uint64(r.lo - 1), Len: n, Retransmit: true}, true
}

// speculate returns the index of a record to send again although it is not
// known to be lost, because the congestion window has room and there is no
// new data to send; -1 if there is none.
//
// RFC 6675, Section 4, NextSeg, (3): the first hole before the highest SACKed
// number. (4): once an episode, "one segment of up to SMSS octets that MUST
// include the highest outstanding unSACKed sequence number".
func (s *Subflow) speculate(now mono.Time) int {
	q, rec := &s.queue, &s.rec
	if rec.phase != phaseFast || !s.snd.sack || q.ranges.Len() == 0 || s.budget(now) < s.snd.mss {
		return -1
	}
	if s.snd.waiting > 0 && s.snd.usable() > 0 {
		return -1 // new data is about to come
	}
	top := relSSN(q.ranges.At(q.ranges.Len() - 1).Hi)
	for i := q.find(rec.holes); i < q.len() && q.get(i).hi <= top; i++ {
		if q.get(i).marks&(markSACKed|markAgain) == 0 {
			return i
		}
		rec.holes = q.get(i).hi
	}
	if rec.rescued != 0 && s.snd.una <= rec.rescued {
		return -1
	}
	i := q.find(rec.until - 1)
	for i >= 0 && (i >= q.len() || q.get(i).marks&markSACKed != 0) {
		i--
	}
	if i < 0 || q.get(i).marks&markAgain != 0 {
		return -1
	}
	rec.rescued = rec.until
	if r := q.get(i); r.len() > s.snd.mss {
		q.split(i, r.lo+relSSN((r.len()-1)/s.snd.mss*s.snd.mss))
		i++
	}
	return i
}

// putData fills seg for a record that is being sent.
func (s *Subflow) putData(now mono.Time, seg *wire.Segment, r *record) {
	n := s.payload(r.lo, r.hi)
	flags := wire.ACK
	if s.snd.fin != 0 && r.hi > s.snd.fin {
		flags |= wire.FIN
	}
	// RFC 9293, Section 3.9.1.2: without a PUSH call, a sender "MUST set the
	// PSH bit in the last buffered segment (i.e., when there is no more queued
	// data to be sent) (MUST-61)".
	if n > 0 && r.hi >= s.snd.end && s.snd.waiting == 0 {
		flags |= wire.PSH
	}
	s.putHeader(now, seg, r.lo, flags)
	if n > r.mss {
		seg.SegSize = r.mss
	} else if s.rcv.reports() {
		s.putSACK(seg, min(maxOptionsLen-s.optionsLen()-int(s.room.Data), s.snd.mss-n))
	}
	s.acked(seg)
	s.count.bytesSent += uint64(n)
	if s.rec.phase == phaseFast {
		s.rec.prr.out += n
	}
	s.pacedOut(now, n)
	s.startRexmit(now)
}

// putHeader fills what every segment with an ACK has.
func (s *Subflow) putHeader(now mono.Time, seg *wire.Segment, num relSSN, flags wire.Flags) {
	seg.Src, seg.Dst = s.ends.Local, s.ends.Remote
	seg.Seq = num.absolute(s.snd.iss)
	seg.Ack = s.rcv.nxt.absolute(s.rcv.irs)
	seg.Flags = flags
	seg.Wnd = s.rcv.advertise(num)
	if s.ecn.echo {
		seg.Flags |= wire.ECE
	}
	if s.ts.on {
		seg.Has |= wire.OptTimestamps
		seg.TSVal, seg.TSEcr = s.stamp(now), s.ts.recent
	}
}

// acked notes that the peer will learn from a segment what was received and
// what may come.
func (s *Subflow) acked(seg *wire.Segment) {
	shift := s.rcv.shift
	if seg.Flags.Has(wire.SYN) {
		shift = 0
	}
	s.rcv.told = s.rcv.nxt + relSSN(seg.Wnd)<<shift
	s.rcv.lastAck = s.rcv.nxt
	s.rcv.due = ackNone
	s.timers.Stop(timerDelAck)
}

// optionsLen returns what the subflow's own options take beside SACK.
func (s *Subflow) optionsLen() int {
	if s.ts.on {
		return timestampsLen
	}
	return 0
}

// putACK builds a bare ACK that keeps room bytes of options free.
func (s *Subflow) putACK(now mono.Time, seg *wire.Segment, room int) {
	s.putHeader(now, seg, s.snd.nxt, wire.ACK)
	s.putSACK(seg, maxOptionsLen-s.optionsLen()-room)
	s.acked(seg)
}

// ForceAck builds a bare ACK at once, with at least room bytes of options left
// for the connection, and reports whether it could: the state must be a
// synchronized one and the room there. It counts as the ACK that was due.
func (s *Subflow) ForceAck(now mono.Time, seg *wire.Segment, room int) bool {
	s.stir()
	seg.Reset()
	if !s.state.Synchronized() || room > maxOptionsLen-s.optionsLen() {
		return false
	}
	s.putACK(now, seg, room)
	s.count.segsSent++
	return true
}

// Sending reports whether bytes that were pushed are not acknowledged yet.
func (s *Subflow) Sending() bool { return s.queue.total > 0 || s.snd.queued() > 0 }

// ForceMarked is ForceAck with a timestamp that no segment had before or will
// have, so that its echo proves that the peer got this ACK; if need be, one of
// the next milliseconds, which the clock makes good soon. That takes timestamps
// in use and no data in flight: without, marked is false and the ACK an
// ordinary one. A probe of the keepalive follows, to fetch the echo.
//
// RFC 7323, Section 4.1: "Values of this clock MUST be at least approximately
// proportional to real time", which they remain, and they never go back.
func (s *Subflow) ForceMarked(now mono.Time, seg *wire.Segment, room int) (marked, ok bool) {
	marked = s.ts.on && !s.Sending()
	if marked {
		s.ts.least = s.ts.last + 1
	}
	if !s.ForceAck(now, seg, room) {
		return false, false
	}
	if marked {
		s.ts.least = s.ts.last + 1
		s.Probe()
	}
	return marked, true
}

// putProbe builds a segment that makes the peer send an ACK.
//
// RFC 9293, Section 3.8.4: "Such a segment generally contains SEG.SEQ =
// SND.NXT-1". Deviation: a window probe has no byte of new data either
// (Section 3.8.6.1); what the peer must do with a segment before its window
// is the same, and nothing needs to be taken back.
//
// It does not stand for an ACK that is due: being outside the window, it is no
// answer to a probe of the peer's that crossed it.
func (s *Subflow) putProbe(now mono.Time, seg *wire.Segment) {
	s.alive.probe = false
	s.putHeader(now, seg, s.snd.una-1, wire.ACK)
}

// noteIdle notes that nothing more is to be sent although there is room for
// it: delivery rates measured until it is delivered are only lower bounds.
func (s *Subflow) noteIdle(now mono.Time) {
	if s.snd.queued() == 0 && s.queue.pending == 0 && s.pipe()+s.snd.mss <= s.cwnd() && s.paced(now) > 0 {
		s.rate.starve(s.pipe())
	}
}
