package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Answers to segments that carry nothing for us are limited, so that nobody
// can make us send without end (RFC 5961, Section 7). The count is kept for
// each connection: a shared one would tell an attacker about others.
const limitPeriod = time.Second

// limiter counts answers in the current period.
type limiter struct {
	since mono.Time
	n     int
}

// allow reports whether one more answer may be sent at now, of most in a
// period, and counts it.
func (l *limiter) allow(now mono.Time, most int) bool {
	if !l.since.Set() || now.Sub(l.since) >= limitPeriod {
		l.since, l.n = now, 0
	}
	l.n++
	return l.n <= most
}

// mayAnswer reports whether one more answer may be sent at now, and counts it.
func (s *Subflow) mayAnswer(now mono.Time) bool { return s.limiter.allow(now, s.cfg.ChallengeACKs) }

// challenge makes an ACK due that shows the peer where we are.
func (s *Subflow) challenge(now mono.Time) {
	if s.mayAnswer(now) {
		s.rcv.due = ackNow
	}
}

// checkRST acts on a RST that begins at num.
//
// RFC 5961, Section 3.2: "If the RST bit is set and the sequence number is
// outside the current receive window, silently drop the segment", if it
// "exactly matches the next expected sequence number (RCV.NXT), then TCP MUST
// reset the connection", and otherwise "TCP MUST send an acknowledgment
// (challenge ACK)".
func (s *Subflow) checkRST(now mono.Time, num relSSN) Verdict {
	switch {
	case num == s.rcv.nxt:
		why := reason.CloseRemoteReset
		if s.state == StateSynReceived && s.active {
			why = reason.CloseRefused
		}
		s.flush(why)
		return Accepted
	case num > s.rcv.nxt && num < s.rcv.edge:
		s.challenge(now)
		return s.drop(reason.DropRSTChallenge)
	}
	return s.drop(reason.DropOutOfWindow)
}

// checkSYN acts on a SYN once the peer's SYN is known; num is its number.
//
// RFC 5961, Section 4.2: "If the SYN bit is set, irrespective of the sequence
// number, TCP MUST send an ACK (also referred to as challenge ACK) to the
// remote peer".
// Deviation: RFC 9293, Section 3.10.7.4, returns a passive opener in
// SYN-RECEIVED to LISTEN; it challenges, too, and if the SYN is the one it
// has, sends the SYN/ACK again.
func (s *Subflow) checkSYN(now mono.Time, seg *wire.Segment, num relSSN) Verdict {
	if s.state == StateSynReceived && num == 0 && !seg.Flags.Has(wire.ACK) {
		if !ecnSetup(seg.Flags) {
			s.ecn.both = false // it tries without
		}
		if s.snd.syn == synOut && s.mayAnswer(now) {
			s.snd.syn = synDue
		}
		return s.drop(reason.DropDuplicateData)
	}
	s.challenge(now)
	return s.drop(reason.DropSYNChallenge)
}
