package subflow

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

const (
	// synOptionsLen is what MSS, SACK-permitted, timestamps and window scale
	// take on a SYN, padding included.
	synOptionsLen = 20
	// minPeerMSS bounds what a peer can make us pay in headers for each byte.
	// Deviation: smaller MSS options count as this one; no real path needs
	// them (RFC 791: every link carries 68 bytes, Linux refuses below 88).
	minPeerMSS = 88
	// lostSYNRTO is the least RTO for data after a lost SYN that left no RTT
	// measurement.
	lostSYNRTO = 3 * time.Second
)

// defaultMSS is the MSS of a peer that does not name one.
//
// RFC 9293, Section 3.7.1: "If an MSS Option is not received at connection
// setup, TCP implementations MUST assume a default send MSS of 536 (576 - 40)
// for IPv4 or 1220 (1280 - 60) for IPv6 (MUST-15)."
func defaultMSS(remote netip.Addr) int {
	if remote.Unmap().Is4() {
		return 536
	}
	return 1220
}

// windowShift returns the scale that lets a window of that many bytes be
// advertised.
func windowShift(window int) uint8 {
	shift := uint8(0)
	for window>>shift > 65535 && shift < maxShift {
		shift++
	}
	return shift
}

// synchronize learns from the peer's SYN: its sequence number, its window and
// the options both sides will use.
func (s *Subflow) synchronize(now mono.Time, syn *wire.Segment) {
	s.rcv.irs = syn.Seq
	s.snd.wnd = int(syn.Wnd) // RFC 7323, Section 2.2: the window of a SYN is not scaled
	s.snd.maxWnd = s.snd.wnd
	s.snd.wl1, s.snd.wl2 = 0, s.snd.una
	if syn.Has&wire.OptMSS != 0 && syn.MSS > 0 {
		s.snd.peerMSS = max(int(syn.MSS), minPeerMSS)
	}
	// RFC 7323, Section 2.2: "If a Window Scale option is received with a
	// shift.cnt value larger than 14, the TCP SHOULD log the error but MUST
	// use 14 instead of the specified value."
	if syn.Has&wire.OptWScale != 0 {
		s.snd.shift = min(syn.WScale, maxShift)
		s.rcv.shift = windowShift(s.cfg.MaxWindow)
		s.rcv.scaled = true
	}
	s.snd.sack = syn.Has&wire.OptSACKPermitted != 0 && !s.cfg.NoSACK
	s.rack.on = s.snd.sack && !s.cfg.NoRACK
	if syn.Has&wire.OptTimestamps != 0 && !s.cfg.NoTimestamps {
		s.ts = timestamps{on: true, recent: syn.TSVal, recentAt: now}
	}
	s.learnECN(syn)
	s.updateMSS()
	s.alive.heard(now)
}

// pollSYN builds our SYN, or SYN/ACK in SYN-RECEIVED, if it is due.
func (s *Subflow) pollSYN(now mono.Time, seg *wire.Segment) (Range, bool) {
	if s.snd.syn != synDue {
		return Range{}, false
	}
	answer := s.state == StateSynReceived
	if answer {
		s.putHeader(now, seg, 0, wire.SYN|wire.ACK)
	} else {
		seg.Src, seg.Dst = s.ends.Local, s.ends.Remote
		seg.Seq, seg.Flags = s.snd.iss, wire.SYN
		if !s.cfg.NoTimestamps {
			seg.Has |= wire.OptTimestamps
			seg.TSVal, seg.TSEcr = s.stamp(now), 0
		}
	}
	seg.Flags |= s.ecnFlags(answer)
	seg.Wnd = s.rcv.unscaled()
	s.putSYNOptions(seg, answer)
	s.markable(seg)
	n := s.putFastOpen(seg, answer)
	s.acked(seg)
	s.snd.syn = synOut
	if s.snd.nxt == 0 {
		// RFC 7413, Section 4.2.2: "Advance to SYN-SENT state and update SND.NXT
		// to include the data accordingly."
		s.snd.nxt, s.snd.synAt = relSSN(1+n), now
		s.snd.end = max(s.snd.end, s.snd.nxt)
	} else {
		s.count.trouble().segsRetransmitted++
	}
	s.startRexmit(now)
	return Range{Len: n}, true
}

// putSYNOptions offers what a SYN offers, or in a SYN/ACK what the peer
// offered too.
func (s *Subflow) putSYNOptions(seg *wire.Segment, answer bool) {
	// RFC 9293, Section 3.7.1: "TCP implementations SHOULD send an MSS Option
	// in every SYN segment when its receive MSS differs from the default".
	// RFC 6691: options are not subtracted from it.
	seg.Has |= wire.OptMSS
	seg.MSS = uint16(min(s.mtu-headerLen, 65535))
	if !answer || s.rcv.scaled {
		seg.Has |= wire.OptWScale
		seg.WScale = windowShift(s.cfg.MaxWindow)
	}
	if !s.cfg.NoSACK && (!answer || s.snd.sack) {
		seg.Has |= wire.OptSACKPermitted
	}
}

// handleSynSent acts on a segment in SYN-SENT, by the checks of RFC 9293,
// Section 3.10.7.3.
func (s *Subflow) handleSynSent(now mono.Time, seg *wire.Segment) Verdict {
	acks := seg.Flags.Has(wire.ACK)
	// First, the ACK: "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset
	// (unless the RST bit is set [...]) and discard the segment."
	una := relative(seg.Ack, s.snd.iss, s.snd.nxt)
	if acks && (una <= 0 || una > s.snd.nxt) {
		if !seg.Flags.Has(wire.RST) {
			s.resetFor(now, seg)
		}
		return s.drop(reason.DropBadAck)
	}
	// Second, RST: "If the ACK was acceptable, then signal to the user 'error:
	// connection reset', drop the segment, enter CLOSED state".
	if seg.Flags.Has(wire.RST) {
		if !acks {
			return s.drop(reason.DropNoAck)
		}
		s.flush(reason.CloseRefused)
		return Accepted
	}
	if !seg.Flags.Has(wire.SYN) {
		return s.drop(reason.DropState)
	}
	s.synchronize(now, seg)
	if !acks {
		// Both sides open at the same time: "enter SYN-RECEIVED, form a
		// SYN,ACK segment <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK> and send it."
		s.state = StateSynReceived
		s.snd.syn = synDue
		return Accepted
	}
	s.learnCookie(seg)
	s.takeSYNAck(una)
	s.snd.wl2 = una
	s.establish(now)
	s.sampleSYN(now, seg)
	s.rcv.due = ackNow
	return Accepted
}

// handshakeDone prepares for data once our SYN is acknowledged.
func (s *Subflow) handshakeDone() {
	s.timers.Stop(timerRexmit)
	s.timers.Stop(timerUser)
	s.rec.timeouts = 0
	s.rtt.shift = 0
	if !s.snd.synAgain {
		return
	}
	// RFC 6298, Section 5.7: "If the timer expires awaiting the ACK of a SYN
	// segment and the TCP implementation is using an RTO less than 3 seconds,
	// the RTO MUST be re-initialized to 3 seconds when data transmission
	// begins".
	s.rtt.rto = max(s.rtt.rto, lostSYNRTO)
	// RFC 5681, Section 3.1: "if the SYN or SYN/ACK is lost, the initial
	// window used by a sender after a correctly transmitted SYN MUST be one
	// segment consisting of at most SMSS bytes."
	s.rec.ceiling = s.snd.mss
}

// sampleSYN takes the round trip of the SYN as the first measurement. Of a
// SYN that was sent several times only a timestamp tells which copy was
// acknowledged.
func (s *Subflow) sampleSYN(now mono.Time, seg *wire.Segment) {
	switch {
	case !s.snd.synAgain:
		s.noteSYN(now, now.Sub(s.snd.synAt))
	case s.ts.on && seg.Has&wire.OptTimestamps != 0:
		s.noteSYN(now, s.tsAge(now, seg.TSEcr))
	}
}

func (s *Subflow) noteSYN(now mono.Time, rtt time.Duration) {
	s.rtt.sample(rtt, 1)
	s.rack.noteRTT(now, max(rtt, 1))
}
