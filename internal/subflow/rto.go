package subflow

import (
	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// startRexmit starts the retransmission timer unless it runs.
//
// RFC 6298, Section 5.1: "Every time a packet containing data is sent
// (including a retransmission), if the timer is not running, start it running
// so that it will expire after RTO seconds".
func (s *Subflow) startRexmit(now mono.Time) {
	if !s.timers.At(timerRexmit).Set() {
		s.timers.Set(timerRexmit, now.Add(s.rtt.timeout()))
	}
	s.startUserTimeout(now)
}

// retimeRexmit stops or restarts the timer after an ACK.
//
// RFC 6298, Section 5.2: "When all outstanding data has been acknowledged,
// turn off the retransmission timer." Section 5.3: "When an ACK is received
// that acknowledges new data, restart the retransmission timer so that it
// will expire after RTO seconds".
func (s *Subflow) retimeRexmit(a *ack) {
	switch {
	case s.queue.total == 0:
		s.timers.Stop(timerRexmit)
		s.timers.Stop(timerReorder)
		s.timers.Stop(timerTailProbe)
	case a.advanced:
		s.timers.Set(timerRexmit, a.now.Add(s.rtt.timeout()))
	}
}

// deferRexmit restarts the timer when something is sent again in fast recovery. The
// first retransmission is answered after a whole round trip, at the end of a queue
// that has just overflowed: in slow start that is longer than SRTT has learnt of,
// and no ACK moves SND.UNA before.
//
// RFC 6675, Section 6: "a more careful variant that re-arms the RTO timer on each
// retransmission that is sent during recovery MAY be used."
func (s *Subflow) deferRexmit(now mono.Time) {
	if s.rec.phase == phaseFast {
		s.timers.Set(timerRexmit, now.Add(s.rtt.timeout()))
	}
}

// onRexmit acts on the expiry of the retransmission timer.
//
// RFC 6298, Section 5.4: "Retransmit the earliest segment that has not been
// acknowledged by the TCP receiver." Section 5.6: "Start the retransmission
// timer, such that it expires after RTO seconds (for the value of RTO after
// the doubling operation outlined in 5.5)."
func (s *Subflow) onRexmit(now mono.Time) {
	s.count.trouble().timeouts++
	most := s.cfg.Retries
	if s.snd.syn != synAcked {
		most = s.cfg.SYNRetries
	}
	if s.snd.wnd == 0 && s.snd.syn == synAcked && s.alive.lastHeard >= s.rec.timedOutAt {
		// RFC 9293, Section 3.8.6: a sender "SHOULD NOT time out the
		// connection if data beyond the right window edge is not
		// acknowledged" while the peer answers.
		s.rec.timeouts = 0
	}
	s.rec.timedOutAt = now
	if int(s.rec.timeouts) >= most {
		s.giveUp()
		return
	}
	s.rec.timeouts++
	s.rtt.backOff()
	s.emit(Event{Kind: EventTimeout, Backoff: int(s.rec.timeouts)})
	if s.snd.syn != synAcked {
		s.snd.syn = synDue
		s.snd.synAgain = true
	} else {
		s.loseAll(now)
	}
	s.timers.Set(timerRexmit, now.Add(s.rtt.timeout()))
}

// RetransmitNow makes the retransmission timer expire at now, after at least
// one timeout without progress: the path, which had been silent, was found to
// work again. What the last timeout sent gets a round trip to be answered.
//
// RFC 6298 says how long to wait while nothing is heard. As with RFC 6069, one
// retransmission ahead of the timer follows news of the path; the timeouts are
// counted and backed off as always.
func (s *Subflow) RetransmitNow(now mono.Time) {
	s.stir()
	if s.rec.timeouts > 0 && s.timers.At(timerRexmit).Set() {
		s.timers.Set(timerRexmit, max(now, min(s.rec.timedOutAt.Add(s.rtt.srtt), s.timers.At(timerRexmit))))
	}
}

// giveUp ends a connection whose peer does not answer.
func (s *Subflow) giveUp() {
	if s.unreachable {
		s.flush(reason.CloseUnreachable)
		return
	}
	s.flush(reason.CloseTimeout)
}

// loseAll begins again from SND.UNA after a timeout.
//
// RFC 5681, Section 3.1: "When a TCP sender detects segment loss using the
// retransmission timer and the given segment has not yet been resent by way of
// the retransmission timer, the value of ssthresh MUST be set", and if it has,
// "the value of ssthresh is held constant."
func (s *Subflow) loseAll(now mono.Time) {
	s.rec.begin()
	if s.rec.timeouts == 1 {
		sm := s.sample(&ack{now: now})
		sm.InFlight = s.queue.total
		sm.Lost = s.pipe()
		s.congested(cc.LossTimeout, sm)
		s.beginUndo(cc.LossTimeout)
	}
	s.stopProbe()
	before := s.pipe()
	if s.rack.on && s.rec.timeouts == 1 && !s.reneged() {
		s.markTimedOut(now)
	} else {
		// RFC 2018, Section 8: "the timeout might indicate that the data
		// receiver has reneged". With RACK the first one forgets what was
		// SACKed only if the receiver shows it.
		s.queue.loseAll()
	}
	s.rate.lose(before - s.pipe())
	s.probeFate(now)
	s.blackHole()
	s.rec.pass = true
	s.beginFRTO()
	s.rec.phase = phaseLoss
	s.rec.until = s.snd.nxt
	s.rec.dupAcks, s.rec.guessed, s.rec.rescued = 0, 0, 0
	s.rec.dupThresh = int32(s.cfg.DupThresh)
}
