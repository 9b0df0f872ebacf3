package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Verdict says whether a segment passed TCP's checks.
type Verdict uint8

// Verdicts. Only the options of an accepted segment may be acted upon.
const (
	Dropped  Verdict = iota // not acceptable, or a duplicate
	Accepted                // in the window, its ACK plausible, RST and SYN as they may be
)

// HandleSegment takes a segment that arrived. If it keeps the payload it takes
// seg.Owner and sets it nil; it may shorten seg.Payload.
func (s *Subflow) HandleSegment(now mono.Time, seg *wire.Segment) Verdict {
	s.stir()
	s.count.segsReceived++
	switch s.state {
	case StateClosed:
		return s.drop(reason.DropState)
	case StateTimeWait:
		// RFC 9293, Section 3.10.7.4: "The only thing that can arrive in this
		// state is a retransmission of the remote FIN. Acknowledge it", or, if
		// the last ACK was lost, of the data before it.
		if seg.Len() > 0 && !seg.Flags.Has(wire.RST) {
			s.rcv.due = ackNow
		}
		return s.drop(reason.DropState)
	case StateSynSent:
		return s.handleSynSent(now, seg)
	}
	num := relative(seg.Seq, s.rcv.irs, s.rcv.nxt)
	if s.answersSYN(seg, num) {
		num = 1
		seg.Flags &^= wire.SYN | wire.ECE | wire.CWR
	}
	return s.handle(now, seg, num)
}

// answersSYN reports whether a segment is the SYN/ACK that completes a
// simultaneous open: the SYN that we know, with an acknowledgment of ours.
// Without its SYN it is an acceptable segment (RFC 9293, Appendix A.2).
func (s *Subflow) answersSYN(seg *wire.Segment, num relSSN) bool {
	return s.state == StateSynReceived && s.active && num == 0 &&
		seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN|wire.ACK &&
		s.acksSYN(relative(seg.Ack, s.snd.iss, s.snd.nxt))
}

// acksSYN reports whether an acknowledgment is one of our SYN, perhaps with
// data that went along.
func (s *Subflow) acksSYN(ackNum relSSN) bool { return ackNum >= 1 && ackNum <= s.snd.nxt }

// handle runs the numbered checks of RFC 9293, Section 3.10.7.4, on a segment
// that begins at num.
func (s *Subflow) handle(now mono.Time, seg *wire.Segment, num relSSN) Verdict {
	if seg.Flags.Has(wire.SYN) && !seg.Flags.Has(wire.RST) {
		return s.checkSYN(now, seg, num) // the fourth, whatever the first says
	}
	if why := s.checkSequence(now, seg, num); why != reason.DropNone {
		return s.drop(why)
	}
	if seg.Flags.Has(wire.RST) {
		return s.checkRST(now, num)
	}
	if !seg.Flags.Has(wire.ACK) {
		return s.drop(reason.DropNoAck)
	}
	ackNum := relative(seg.Ack, s.snd.iss, s.snd.nxt)
	if why := s.checkAck(now, seg, ackNum); why != reason.DropNone {
		return s.drop(why)
	}
	s.noteTimestamp(now, seg, num)
	s.alive.heard(now)
	if s.state == StateSynReceived {
		s.completeSYN(now, seg, ackNum)
	}
	s.handleAck(now, seg, num, ackNum)
	switch s.state {
	case StateEstablished, StateFinWait1, StateFinWait2:
		s.receive(now, seg, num)
		s.restartFinWait2(now, seg)
	case StateCloseWait, StateClosing, StateLastAck:
		s.receive(now, seg, num) // at most the FIN again
	}
	s.setPersist(now)
	return Accepted
}

// checkSequence is the first check: whether any of the segment is new and in
// the window, and its timestamp not an old one.
func (s *Subflow) checkSequence(now mono.Time, seg *wire.Segment, num relSSN) reason.Drop {
	size := seg.PayloadLen()
	why := reason.DropNone
	switch {
	case s.pawsFails(now, seg):
		why = reason.DropPAWS
	// RFC 7323, Section 3.2: "If a non-<RST> segment is received without a TSopt,
	// a TCP SHOULD silently drop the segment."
	// Deviation: only one with payload. Some peers leave timestamps out to
	// make room for other options on bare ACKs, and those do no harm.
	case s.ts.on && seg.Has&wire.OptTimestamps == 0 && size > 0 && !seg.Flags.Has(wire.RST):
		return reason.DropPAWS
	case !s.acceptable(num, seg.Len()):
		why = reason.DropOutOfWindow
	}
	if why == reason.DropNone {
		return why
	}
	// "If an incoming segment is not acceptable, an acknowledgment should be
	// sent in reply (unless the RST bit is set [...])". One without payload is
	// no retransmission that waits for it, and answered within limits.
	switch {
	case seg.Flags.Has(wire.RST):
	case size > 0:
		s.rcv.due = ackNow
		if num < s.rcv.nxt && why == reason.DropOutOfWindow {
			s.noteAgain(num, min(num+relSSN(size), s.rcv.nxt))
			why = reason.DropDuplicateData
		}
	case seg.Flags.Has(wire.FIN):
		s.rcv.due = ackNow
	default:
		s.challenge(now)
	}
	return why
}

// acceptable is the test of RFC 9293, Table 6, for a segment that occupies
// [num, num+n).
// Deviation: a segment may also begin right behind the window. A peer that
// has filled it sends its bare ACKs and its FIN from there, and ignoring them
// could stall both directions (RFC 9293, Appendix A.2). A segment at RCV.NXT
// is acceptable in a closed window, "to accept valid ACKs, URGs, and RSTs".
func (s *Subflow) acceptable(num relSSN, n int) bool {
	nxt, edge := s.rcv.nxt, max(s.rcv.edge, s.rcv.nxt)
	if num >= nxt && num <= edge {
		return true
	}
	last := num + relSSN(n) - 1
	return n > 0 && last >= nxt && last < edge
}

// checkAck is the fifth check.
//
// RFC 5961, Section 5.2: "The ACK value is considered acceptable only if it is
// in the range of ((SND.UNA - MAX.SND.WND) <= SEG.ACK <= SND.NXT). All
// incoming segments whose ACK value doesn't satisfy the above condition MUST
// be discarded and an ACK sent back."
func (s *Subflow) checkAck(now mono.Time, seg *wire.Segment, ackNum relSSN) reason.Drop {
	if s.state == StateSynReceived {
		// RFC 9293, Section 3.10.7.4: "If the segment acknowledgment is not
		// acceptable, form a reset segment <SEQ=SEG.ACK><CTL=RST> and send it."
		if ackNum <= s.snd.una || ackNum > s.snd.nxt {
			s.resetFor(now, seg)
			return reason.DropBadAck
		}
		return reason.DropNone
	}
	if ackNum > s.snd.nxt || ackNum < s.snd.una-relSSN(s.snd.maxWnd) {
		s.challenge(now)
		return reason.DropBadAck
	}
	return reason.DropNone
}

// completeSYN enters ESTABLISHED on the acknowledgment of our SYN.
func (s *Subflow) completeSYN(now mono.Time, seg *wire.Segment, ackNum relSSN) {
	s.snd.una = 1
	if s.active {
		s.takeSYNAck(ackNum)
	}
	s.establish(now)
	s.sampleSYN(now, seg)
	s.watchEarly(now)
	// RFC 9293, Section 3.10.7.4: "SND.WND <- SEG.WND, SND.WL1 <- SEG.SEQ,
	// SND.WL2 <- SEG.ACK"; here by making what is known older than any segment.
	s.snd.wl1, s.snd.wl2 = -1, 0
}
