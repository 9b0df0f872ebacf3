package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// tlp is the state of the tail loss probe (RFC 8985, Section 7).
type tlp struct {
	end     relSSN // TLP.end_seq; 0 = no probe is outstanding
	again   bool   // TLP.is_retrans
	due     bool   // the next segment is the probe
	sampled bool   // an RTT was measured since the last probe
}

const (
	// maxAckDelay is how long a peer may put off the ACK of a single segment.
	// RFC 8985, Section 7.2, leaves the value open; Linux uses the same.
	maxAckDelay = 200 * time.Millisecond
	// blindProbe is the PTO while there is no SRTT.
	blindProbe = time.Second
)

// armProbe starts or restarts the timer of the loss probe.
//
// RFC 8985, Section 7.2: "The sender SHOULD start or restart a loss probe PTO
// timer after transmitting new data (that was not itself a loss probe) or upon
// receiving an ACK that cumulatively acknowledges new data unless it is
// already in fast recovery, RTO recovery, or segments have been SACKed".
// Deviation: it does not start either where Section 7.3 would have no probe
// sent when it expires, and the retransmission timer runs on as it is.
func (s *Subflow) armProbe(now mono.Time) {
	t := &s.rack.tlp
	rto := s.timers.At(timerRexmit)
	if !s.rack.on || s.rec.phase != phaseOpen || s.queue.sacked > 0 || !rto.Set() ||
		t.end != 0 || !t.sampled || t.due || s.queue.total == 0 {
		s.timers.Stop(timerTailProbe)
		return
	}
	pto := blindProbe
	if s.rtt.srtt > 0 {
		pto = 2 * s.rtt.srtt
		if s.queue.total <= s.snd.mss {
			pto += maxAckDelay
		}
	}
	s.timers.Set(timerTailProbe, min(now.Add(pto), rto))
}

// onTailProbe makes the probe the next segment. It may exceed the congestion
// window: new data that the connection still has, or else the last segment
// sent.
func (s *Subflow) onTailProbe(now mono.Time) {
	if s.queue.total == 0 {
		return
	}
	s.count.trouble().probes++
	s.rack.tlp.due, s.rec.pass = true, true
	// "After attempting to send a loss probe, regardless of whether a loss
	// probe was sent, the sender MUST re-arm the RTO timer, not the PTO timer".
	s.timers.Set(timerRexmit, now.Add(s.rtt.timeout()))
}

// probeSent notes that the probe was sent; again tells which kind it was.
func (s *Subflow) probeSent(again bool) {
	s.rack.tlp = tlp{end: s.snd.nxt, again: again}
	s.timers.Stop(timerTailProbe)
}

// stopProbe forgets the probe (RFC 8985, Section 7.1).
func (s *Subflow) stopProbe() {
	t := &s.rack.tlp
	t.end, t.again, t.due = 0, false, false
	s.rec.pass = false
	s.timers.Stop(timerTailProbe)
}

// lastPacket returns the index of the record of the last packet sent, cut out
// of a larger one; -1 if it has arrived.
func (s *Subflow) lastPacket() int {
	q := &s.queue
	i := q.len() - 1
	if i < 0 || q.get(i).marks&(markSACKed|markLost|markAgain) != 0 {
		return -1
	}
	if r, mss := q.get(i), s.snd.mss; r.len() > mss {
		q.split(i, r.lo+relSSN((r.len()-1)/mss*mss))
		i++
	}
	return i
}

// probeAcked acts on an ACK while a probe is outstanding (RFC 8985, Section
// 7.4.2, TLP_process_ack).
func (s *Subflow) probeAcked(a *ack) {
	t := &s.rack.tlp
	if t.due && (a.advanced || s.queue.sacked > 0) {
		t.due, s.rec.pass = false, false
	}
	if t.end == 0 || s.snd.una < t.end {
		return
	}
	switch {
	case !t.again, a.dsack.hi == t.end:
	case s.snd.una > t.end:
		// The probe repaired the loss of the last segment. "The sender then
		// SHOULD invoke a congestion control response equivalent to a fast
		// recovery."
		s.count.trouble().recoveries++
		sm := s.sample(a)
		sm.InFlight = a.inFlight
		s.congested(cc.LossFast, sm)
		s.rec.forgetUndo()
	case !a.advanced && a.seg.Len() == 0 && a.seg.Has&wire.OptSACK == 0:
		// Both copies arrived.
	default:
		return
	}
	t.end = 0
}
