package subflow

import (
	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// phase is where loss recovery stands.
type phase uint8

const (
	phaseOpen phase = iota // nothing is known to be lost
	phaseFast              // fast recovery, until SND.UNA reaches recovery.until
	phaseLoss              // after a timeout, until the same
)

// recovery is the state of loss recovery.
type recovery struct {
	phase     phase
	until     relSSN // RecoveryPoint of RFC 6675, recover of RFC 6582
	dupAcks   int    // since SND.UNA last moved
	dupThresh int
	guessed   int    // without SACK: bytes that duplicate ACKs say have arrived
	holes     relSSN // NextSeg's third rule has looked at everything before
	rescued   relSSN // RescueRxt of RFC 6675; 0 = undefined
	prr       prr
	undo      undo

	timeouts   int       // consecutive, without new data acknowledged
	timedOutAt mono.Time // the last one

	fullUntil relSSN // what lies before was in flight when the window was full
	ceiling   int    // bytes: bound of the window after a restart; 0 = none
}

// maxDupThresh bounds how far dupThresh adapts to reordering.
const maxDupThresh = 16

// lossRecovery finds losses in what an ACK says and moves between the phases.
func (s *Subflow) lossRecovery(a *ack) {
	s.detectSpurious(a)
	s.countDuplicates(a)
	if s.rec.phase != phaseOpen && s.snd.una >= s.rec.until {
		s.rec.phase = phaseOpen
		s.rec.dupAcks, s.rec.guessed, s.rec.rescued = 0, 0, 0
	}
	switch s.rec.phase {
	case phaseOpen:
		if s.findLosses(a) {
			s.enterFast(a)
		}
	case phaseFast:
		s.findLosses(a)
		s.prrAck(a)
	}
	s.rate.lost += a.lost
}

// countDuplicates counts duplicate ACKs: with SACK those that report new
// data, as RFC 6675, Section 2 defines them; without, those of RFC 5681, each
// of which is taken for the arrival of one segment.
func (s *Subflow) countDuplicates(a *ack) {
	mss := s.snd.mss
	switch {
	case a.advanced:
		s.rec.dupAcks = 0
		if s.rec.guessed > 0 {
			// The hole itself was not among what the duplicates stood for.
			known := min(s.rec.guessed, max(a.acked-mss, 0))
			s.rec.guessed -= known
			a.delivered -= known
		}
		if s.rec.phase == phaseOpen {
			s.rec.guessed = 0
		}
	case s.snd.sack:
		if a.sacked > 0 {
			s.rec.dupAcks++
		}
	case a.duplicate:
		s.rec.dupAcks++
		// RFC 9937, Section 6.2: no more than what was in flight can have
		// been delivered, whatever a receiver claims.
		n := min(mss, s.queue.total-s.queue.lost-s.rec.guessed)
		if n > 0 {
			s.rec.guessed += n
			a.delivered += n
		}
	}
}

// findLosses marks what is lost and reports whether that is a new sign of
// congestion.
func (s *Subflow) findLosses(a *ack) bool {
	q := &s.queue
	if s.snd.sack {
		a.lost += q.lose(q.lossEdge(s.rec.dupThresh, s.snd.mss))
		// RFC 6675, Section 5, (1): "If DupAcks >= DupThresh, go to step (4)",
		// even if the segments were too small for IsLost.
		if s.rec.phase == phaseOpen && s.rec.dupAcks >= s.rec.dupThresh && a.lost == 0 {
			a.lost += q.loseFirst()
		}
		return a.lost > 0
	}
	switch {
	// RFC 6582, Section 3.2: duplicates of data sent before the last recovery
	// ended do not start another one.
	case s.rec.phase == phaseOpen && s.rec.dupAcks >= s.rec.dupThresh && s.snd.una >= s.rec.until:
		a.lost += q.loseFirst()
	// "Partial acknowledgments: If this ACK does *not* acknowledge all of the
	// data up to and including recover, [...] retransmit the first
	// unacknowledged segment."
	case s.rec.phase == phaseFast && a.advanced:
		a.lost += q.loseFirst()
	}
	return a.lost > 0
}

// enterFast begins fast recovery.
func (s *Subflow) enterFast(a *ack) {
	s.count.recoveries++
	s.rec.phase = phaseFast
	s.rec.until = s.snd.nxt
	s.rec.holes, s.rec.rescued = s.snd.una, 0
	sm := s.sample(a)
	// RFC 5681, Section 3.2, step 2: what limited transmit sent does not
	// count. It only replaced what had left the network before this ACK.
	sm.InFlight = a.inFlight
	s.ctl.OnLoss(cc.LossFast, sm)
	s.rec.undo = undo{armed: undoWaits, by: cc.LossFast}
	s.prrBegin(a)
	s.prrAck(a)
}

// prr is Proportional Rate Reduction (RFC 9937).
type prr struct {
	delivered int // bytes delivered in recovery
	out       int // bytes sent in recovery
	flight    int // RecoverFS
	cwnd      int // bytes
}

// prrBegin initializes the episode that an ACK starts (RFC 9937, Section
// 6.1): RecoverFS is what may yet be delivered, that ACK's share included.
func (s *Subflow) prrBegin(a *ack) {
	flight := s.queue.total - s.queue.sacked + a.sacked + a.acked
	if !s.snd.sack {
		flight = s.queue.total + a.acked - s.rec.guessed + a.delivered
	}
	s.rec.prr = prr{flight: max(flight, 1)}
}

// prrAck computes the window of RFC 9937, Section 6.2.
func (s *Subflow) prrAck(a *ack) {
	p := &s.rec.prr
	if a.delivered <= 0 && p.cwnd > 0 {
		return
	}
	p.delivered += a.delivered
	inFlight := s.pipe()
	target := int(s.ctl.State().Cwnd)
	send := 0
	if inFlight > target {
		// Proportional Rate Reduction.
		send = (p.delivered*target+p.flight-1)/p.flight - p.out
	} else {
		// PRR-CRB by default, PRR-SSRB when recovery makes good progress.
		send = max(p.delivered-p.out, a.delivered)
		if a.advanced && a.lost == 0 {
			send += s.snd.mss
		}
		send = min(target-inFlight, send)
	}
	send = max(send, 0)
	if p.out == 0 {
		// "Force a fast retransmit upon entering recovery".
		send = max(send, s.snd.mss)
	}
	p.cwnd = inFlight + send
}

// undo watches for the proof that retransmission was needless.
type undo struct {
	armed undoState
	by    cc.Loss
	ts    uint32 // RetransmitTS of RFC 3522
}

type undoState uint8

const (
	undoOff   undoState = iota
	undoWaits           // nothing was sent again yet
	undoArmed           // ts is that of the first retransmission
)

// noteRetransmit stores the timestamp of the first retransmission.
func (u *undo) noteRetransmit(ts uint32) {
	if u.armed == undoWaits {
		u.armed, u.ts = undoArmed, ts
	}
}

// detectSpurious is the Eifel detection algorithm (RFC 3522), with a response
// after RFC 4015.
//
// RFC 3522, Section 3.2, (4): upon "the first acceptable ACK", compare "the
// value of the Timestamp Echo Reply field" with RetransmitTS: if it is
// smaller, the original was received and the retransmission was needless.
// The backoff of a needless timeout stays until the next measurement.
func (s *Subflow) detectSpurious(a *ack) {
	u := s.rec.undo
	if u.armed == undoOff || !a.advanced || s.rec.phase == phaseOpen {
		return
	}
	s.rec.undo = undo{}
	if u.armed == undoArmed {
		if !s.ts.on || a.seg.Has&wire.OptTimestamps == 0 || a.seg.TSEcr == 0 || int32(a.seg.TSEcr-u.ts) >= 0 {
			return
		}
	}
	s.count.spurious++
	if u.by == cc.LossFast {
		s.adaptThresh(a)
	}
	s.ctl.Undo()
	s.queue.unlose()
	s.rec.phase = phaseOpen
	s.rec.dupAcks, s.rec.guessed, s.rec.rescued = 0, 0, 0
}

// adaptThresh raises dupThresh to the reordering just seen, so that the same
// does not look like a loss again: the distance from what came late to the
// highest SACKed. It falls back to the configured value on a timeout.
func (s *Subflow) adaptThresh(a *ack) {
	top := s.snd.una
	if n := s.queue.ranges.Len(); n > 0 {
		top = relSSN(s.queue.ranges.At(n - 1).Hi)
	}
	seen := max(s.rec.dupThresh+1, int(top-a.prior)/s.snd.mss)
	s.rec.dupThresh = max(s.rec.dupThresh, min(seen, maxDupThresh))
}
