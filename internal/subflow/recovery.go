package subflow

import (
	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
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
	pass      bool // one more segment may be sent, whatever the congestion window
	frto      frto
	creeps    bool   // the ceiling grows as in congestion avoidance
	timeouts  int32  // consecutive, without new data acknowledged
	until     relSSN // RecoveryPoint of RFC 6675, recover of RFC 6582
	dupAcks   int32  // since SND.UNA last moved
	dupThresh int32
	guessed   int // without SACK: bytes that duplicate ACKs say have arrived

	*episode // read it as it is, and change that of begin

	timedOutAt mono.Time // the last timeout

	fullUntil relSSN // what lies before was in flight when the window was full
	ceiling   int    // bytes: bound of the window after a restart or a penalty; 0 = none
}

// episode is what is only known while something is recovered, or may have been
// in vain.
type episode struct {
	holes    relSSN // NextSeg's third rule has looked at everything before
	rescued  relSSN // RescueRxt of RFC 6675; 0 = undefined
	prr      prr
	undo     undo
	frtoLeft int // bytes of new data that may still go first
	resent   resentQueue
}

// noEpisode is that of subflows that never lost anything. Nobody changes it.
var noEpisode episode

// begin returns the episode, to be changed.
func (r *recovery) begin() *episode {
	if r.episode == &noEpisode {
		r.episode = &episode{}
	}
	return r.episode
}

// forgetUndo stops to look for a proof that a recovery was in vain.
func (r *recovery) forgetUndo() {
	if r.undo.armed != undoOff {
		r.undo = undo{}
	}
}

// maxDupThresh bounds how far dupThresh adapts to reordering.
const maxDupThresh = 16

// lossRecovery finds losses in what an ACK says and moves between the phases.
func (s *Subflow) lossRecovery(a *ack) {
	s.detectSpurious(a)
	s.countDuplicates(a)
	if s.rack.on {
		s.rack.update(a)
		s.rackDSACK(a)
		s.probeAcked(a)
	}
	if s.rec.phase != phaseOpen && s.snd.una >= s.rec.until {
		s.rec.open()
		s.rack.recovered()
	}
	s.respond(a)
}

// open ends recovery.
func (r *recovery) open() {
	r.phase = phaseOpen
	r.dupAcks, r.guessed = 0, 0
	if r.rescued != 0 {
		r.rescued = 0
	}
}

// respond looks for losses and begins or goes on with recovery.
func (s *Subflow) respond(a *ack) {
	found := s.findLosses(a)
	if n := s.probeFate(a.now); n > 0 {
		a.lost -= n
		found = a.lost > 0
	}
	s.rate.lose(a.lost)
	switch {
	case s.rec.phase == phaseOpen && found:
		s.enterFast(a)
	case s.rec.phase == phaseFast && a.lostAgain:
		// RFC 5681, Section 4.3: "the loss of a retransmission, should be
		// taken as two indications of congestion and, therefore, cwnd (and
		// ssthresh) MUST be lowered twice in this case."
		s.enterFast(a)
		s.rec.undo = undo{}
	case s.rec.phase == phaseFast:
		s.prrAck(a)
	}
}

// reneged reports whether the receiver threw away what it had SACKed: all
// before it has arrived, and it is not acknowledged. Judged at a timeout only,
// since an old ACK whose SACK blocks cover SND.UNA looks the same.
//
// RFC 2018, Section 8: "The data receiver is permitted to discard data in its
// queue that has not been acknowledged to the data sender, even if the data has
// already been reported in a SACK option."
func (s *Subflow) reneged() bool {
	return s.queue.len() > 0 && s.queue.get(0).marks&markSACKed != 0
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
	switch {
	case s.rack.on:
		s.rackDetect(a)
		return a.lost > 0
	case s.rec.phase == phaseLoss:
		return false // everything was marked
	case s.snd.sack:
		a.lost += q.lose(q.lossEdge(int(s.rec.dupThresh), s.snd.mss))
		// RFC 6675, Section 5, (1): "If DupAcks >= DupThresh, go to step (4)",
		// even if the segments were too small for IsLost.
		if s.rec.phase == phaseOpen && s.rec.dupAcks >= s.rec.dupThresh && a.lost == 0 {
			a.lost += q.loseFirst()
		}
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
	s.count.trouble().recoveries++
	s.rec.begin()
	s.rec.phase = phaseFast
	s.rec.until = s.snd.nxt
	s.rack.began = a.now
	s.stopProbe()
	s.rec.holes, s.rec.rescued = s.snd.una, 0
	sm := s.sample(a)
	// RFC 5681, Section 3.2, step 2: what limited transmit sent does not
	// count. It only replaced what had left the network before this ACK.
	sm.InFlight = a.inFlight
	s.rec.undo = undo{}
	if s.snd.una >= s.ecn.until || a.lostAgain {
		s.congested(cc.LossFast, sm)
		s.beginUndo(cc.LossFast)
	}
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
		if a.lost > 0 {
			// What the reordering timer finds goes out one segment at first,
			// and then by what is delivered.
			p.cwnd = max(p.cwnd-a.lost, s.pipe()+s.snd.mss)
		}
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
