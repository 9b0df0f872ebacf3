package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// ack is what one acceptable ACK says and does.
type ack struct {
	now       mono.Time
	seg       *wire.Segment
	prior     relSSN    // SND.UNA before
	inFlight  int       // pipe before
	advanced  bool      // SND.UNA moved
	duplicate bool      // RFC 5681's duplicate ACK
	acked     int       // payload bytes cumulatively acknowledged
	delivered int       // payload bytes newly acknowledged either way
	sacked    int       // bytes newly SACKed
	lost      int       // bytes newly found lost
	episode   bool      // fast recovery was or is under way
	marked    bool      // it carries ECE
	restored  int       // bytes: the window in force before a needless reduction was taken back; 0 = none was
	lostAgain bool      // a retransmission of this round trip was found lost
	dsack     sackRange // reported as received twice; empty when hi is 0

	rackAt  mono.Time // when the latest delivered record that RACK trusts was sent; 0 = none
	rackNth uint64    // which transmission that was
	rackEnd relSSN    // where that ends

	sentAt   mono.Time // of the latest record delivered that was sent once; 0 = none
	original bool      // a record sent before the last timeout and not again is among those delivered
	repaired bool      // a record that was sent again is among those delivered
	wrong    bool      // a record believed lost and not sent again is among those delivered
	rtt      time.Duration
	newest   delivered // stamp of the latest record delivered
	newestAt mono.Time
	rate     float64 // bytes/s; 0 = no sample
	limited  bool    // rate is a lower bound
}

// handleAck acts on the ACK field, SACK blocks and window of an acceptable
// segment.
func (s *Subflow) handleAck(now mono.Time, seg *wire.Segment, num, ackNum relSSN) {
	a := ack{
		now: now, seg: seg, prior: s.snd.una, inFlight: s.pipe(),
		duplicate: s.isDuplicate(seg, ackNum), episode: s.rec.phase == phaseFast,
	}
	if ackNum > s.snd.una {
		s.advance(&a, ackNum)
	}
	if s.snd.sack && seg.Has&wire.OptSACK != 0 {
		s.takeSACK(&a)
	}
	s.updateWindow(seg, num, ackNum, a.advanced)
	s.sampleRTT(&a)
	s.lossRecovery(&a)
	s.echoed(&a)
	s.control(&a)
	if a.restored > 0 {
		s.limitBurst(&a)
	}
	s.retimeRexmit(&a)
	s.retimeUserTimeout(&a)
	if a.advanced || a.sacked > 0 {
		s.armProbe(now)
	}
	if a.advanced && s.FINAcked() && a.prior <= s.snd.fin {
		s.finAcked(now)
	}
}

// isDuplicate reports whether an ACK is a duplicate by RFC 5681, Section 2:
// data is outstanding, the segment has no data, SYN or FIN, acknowledges
// SND.UNA and does not change the window.
//
// RFC 8684, Section 3: a duplicate ACK that carries an MPTCP option other
// than DSS must not be taken for a sign of congestion.
func (s *Subflow) isDuplicate(seg *wire.Segment, ackNum relSSN) bool {
	return s.queue.total > 0 && ackNum == s.snd.una && seg.Len() == 0 &&
		s.PeerWindow(seg) == s.snd.wnd && seg.Has&(wire.OptMPTCP&^wire.OptDSS) == 0
}

// advance moves SND.UNA to una.
func (s *Subflow) advance(a *ack, una relSSN) {
	a.advanced = true
	s.queue.ackTo(una, func(r *record) { s.deliver(a, r) })
	s.snd.una = una
	s.rec.pass = false
	a.acked = s.payload(a.prior, una)
	s.count.bytesAcked += uint64(a.acked)
	if s.rec.timeouts > 0 {
		s.rec.timeouts = 0
		s.emit(Event{Kind: EventRecovered})
	}
	s.unreachable = false
}

// payload returns how many of the numbers [lo, hi) are payload bytes.
func (s *Subflow) payload(lo, hi relSSN) int {
	return int(max(min(hi, s.snd.end)-max(lo, 1), 0))
}

// deliver notes a record, or a part of one, as having reached the peer.
func (s *Subflow) deliver(a *ack, r *record) {
	n := s.payload(r.lo, r.hi)
	a.delivered += n
	a.wrong = a.wrong || r.marks&(markLost|markTwice) == markLost
	if r.marks&markTwice == 0 {
		a.sentAt = max(a.sentAt, r.sentAt)
		a.original = a.original || r.sentAt <= s.rec.timedOutAt
	} else {
		a.repaired = true
	}
	s.rate.deliver(a, r, n)
	if s.rack.on {
		s.rackDeliver(a, r)
	}
}

// takeSACK marks what the SACK blocks report. Blocks beyond SND.NXT are lies.
func (s *Subflow) takeSACK(a *ack) {
	before := s.queue.sacked
	var blocks [4]sackRange
	n := 0
	for i, b := range a.seg.SACK[:min(int(a.seg.NumSACK), len(a.seg.SACK))] {
		lo := relative(b.Left, s.snd.iss, s.snd.nxt)
		hi := relative(b.Right, s.snd.iss, s.snd.nxt)
		if lo >= hi || hi > s.snd.nxt {
			continue
		}
		if i == 0 && s.isDSACK(a.seg, lo, hi) {
			a.dsack = sackRange{lo, hi}
			s.count.trouble().dsacks++
			continue
		}
		if hi <= s.snd.una {
			continue
		}
		// In ascending order, lest one ACK look like reordering.
		k := n
		for ; k > 0 && blocks[k-1].lo > lo; k-- {
			blocks[k] = blocks[k-1]
		}
		blocks[k] = sackRange{max(lo, s.snd.una), hi}
		n++
	}
	for _, b := range blocks[:n] {
		s.queue.sack(b.lo, b.hi, func(r *record) { s.deliver(a, r) })
	}
	a.sacked = s.queue.sacked - before
}

// isDSACK reports whether the first SACK block of a segment, [lo, hi), tells of
// a duplicate.
//
// RFC 2883, Section 4: "the sender of the data first compares the first SACK
// block with the cumulative ACK [...] and then, if there is a second SACK
// block, compares the first one with the second": a duplicate lies below the
// one or inside the other.
func (s *Subflow) isDSACK(seg *wire.Segment, lo, hi relSSN) bool {
	if hi <= s.snd.una {
		return true
	}
	if seg.NumSACK < 2 {
		return false
	}
	in := seg.SACK[1]
	return relative(in.Left, s.snd.iss, s.snd.nxt) <= lo && hi <= relative(in.Right, s.snd.iss, s.snd.nxt)
}

// control tells the congestion controller about an ACK that delivered
// something.
func (s *Subflow) control(a *ack) {
	if a.delivered <= 0 {
		return
	}
	s.rate.measure(a, s.rtt.min)
	if a.restored == 0 {
		s.raiseCeiling(a.acked)
	}
	s.ctl.OnAck(s.sample(a))
	s.rate.untold = 0
}

// oneWayDelay returns how much longer than the fastest so far our data took
// to be acknowledged one way, by the difference of both clocks, plus one tick
// so that it is never 0 when it is known. It assumes that the peer's clock
// ticks once a millisecond, too. While there are holes ACKs echo the timestamp
// of what came before them (RFC 7323, Section 4.2), which says nothing.
func (s *Subflow) oneWayDelay(a *ack) time.Duration {
	seg := a.seg
	if !a.advanced || a.repaired || a.sacked > 0 || s.rec.phase != phaseOpen || !s.ts.on || seg.Has&wire.OptTimestamps == 0 {
		return 0
	}
	d := int32(seg.TSVal - seg.TSEcr)
	if !s.ts.based || d-s.ts.base < 0 {
		s.ts.based, s.ts.base = true, d
	}
	return time.Duration(d-s.ts.base+1) * time.Millisecond
}

// sample fills what controllers want to know into memory that is reused.
func (s *Subflow) sample(a *ack) *cc.Sample {
	if s.shown == nil {
		s.shown = new(cc.Sample)
	}
	*s.shown = cc.Sample{
		Now: a.now.Duration(), RTT: a.rtt, SRTT: s.rtt.srtt, MinRTT: s.rtt.min, OneWayDelay: s.oneWayDelay(a),
		MSS: s.snd.mss, Acked: a.acked, Delivered: a.delivered, Lost: s.rate.untold,
		InFlight: s.pipe(), Unsent: s.snd.queued() + s.snd.waiting,
		DeliveryRate: a.rate, AppLimited: a.limited, ECN: s.ecn.sends(),
		// The data acknowledged was in flight when the window was last full.
		CwndLimited: a.prior < s.rec.fullUntil,
		// RFC 3168, Section 6.1.2: "The sending TCP SHOULD NOT increase the
		// congestion window in response to the receipt of an ECN-Echo ACK".
		InRecovery: a.episode || s.rec.phase == phaseFast || a.marked, Round: s.rate.round,
	}
	if a.marked {
		s.shown.Marked = a.delivered
	}
	if n := &a.newest; n.at.Set() {
		s.shown.SentInFlight = n.inFlight
		s.shown.LostSince = int(s.rate.lostAll - n.lost)
		s.shown.GotSince = int(s.rate.bytes - n.bytes)
	}
	return s.shown
}
