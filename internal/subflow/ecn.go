package subflow

import (
	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// ecn is the state of Explicit Congestion Notification (RFC 3168).
type ecn struct {
	wanted bool // offer and accept it
	exact  bool // and echo each change of CE

	asked bool // we sent an ECN-setup SYN or SYN/ACK
	plain bool // we sent one that was none
	both  bool // the peer sent one, too, and none that was none: CE is echoed

	echo  bool   // ACKs carry ECE: until the peer's CWR, or while DCTCP.CE
	cwr   bool   // the next new data carries CWR
	until relSSN // the window was reduced for what was sent before
	turns *turns // with exact; nil before the first
}

// sends reports whether data packets are marked as ECN-capable.
//
// RFC 3168, Section 6.1.1: "A host MUST NOT set ECT on data packets unless it
// has sent at least one ECN-setup SYN or ECN-setup SYN-ACK packet, and has
// received at least one [...], and has sent no non-ECN-setup SYN or
// non-ECN-setup SYN-ACK packet."
func (e *ecn) sends() bool { return e.both && e.asked && !e.plain }

// ecnSetup reports whether a SYN, or SYN/ACK, says that its sender is capable.
//
// RFC 3168, Section 6.1.1: "we call a SYN packet with the ECE and CWR flags set
// an 'ECN-setup SYN packet'", and "a SYN-ACK packet with only the ECE flag set
// but the CWR flag not set an 'ECN-setup SYN-ACK packet'".
func ecnSetup(f wire.Flags) bool {
	if f.Has(wire.ACK) {
		return f&(wire.ECE|wire.CWR) == wire.ECE
	}
	return f.Has(wire.ECE | wire.CWR)
}

// ecnFlags returns what our SYN, or SYN/ACK, says, and remembers it.
//
// RFC 3168, Section 6.1.1.1: "A host that receives no reply to an ECN-setup
// SYN within the normal SYN retransmission timeout interval MAY resend the SYN
// and any subsequent SYN retransmissions with CWR and ECE cleared."
func (s *Subflow) ecnFlags(answer bool) wire.Flags {
	flags := wire.ECE | wire.CWR
	wanted := s.ecn.wanted && !s.snd.synAgain
	if answer {
		flags = wire.ECE
		wanted = s.ecn.both
	}
	if !wanted {
		s.ecn.plain = true
		return 0
	}
	s.ecn.asked = true
	return flags
}

// learnECN takes what the peer's SYN, or SYN/ACK, says.
func (s *Subflow) learnECN(syn *wire.Segment) {
	s.ecn.both = s.ecn.wanted && ecnSetup(syn.Flags) && (s.ecn.asked || !s.active)
}

// congested tells the controller of congestion. The data receiver learns of
// the reduction by CWR.
//
// RFC 3168, Section 6.1.2: "When an ECN-Capable TCP sender reduces its
// congestion window for any reason [...], the TCP sender sets the CWR flag in
// the TCP header of the first new data packet sent after the window reduction."
func (s *Subflow) congested(l cc.Loss, sm *cc.Sample) {
	s.ctl.OnLoss(l, sm)
	s.ecn.until = s.snd.nxt
	s.ecn.cwr = s.ecn.sends()
}

// echoed acts on an ACK that may carry ECE.
//
// RFC 3168, Section 6.1.2: "the TCP sender's congestion window should be
// reduced only once in response to a series of dropped and/or CE packets from a
// single window of data."
func (s *Subflow) echoed(a *ack) {
	if !s.ecn.sends() || !a.seg.Flags.Has(wire.ECE) {
		return
	}
	a.marked = true
	s.count.trouble().marked += uint64(a.delivered)
	if s.rec.phase != phaseOpen || s.snd.una <= s.ecn.until {
		return
	}
	sm := s.sample(a)
	sm.InFlight = a.inFlight
	least := s.ctl.State().Cwnd <= float64(s.snd.mss)
	s.congested(cc.LossECN, sm)
	// "the sending TCP MUST reset the retransmit timer on receiving the ECN-Echo
	// packet when the congestion window is one. The sending TCP will then be
	// able to send a new packet only when the retransmit timer expires."
	if least {
		s.hold(a.now.Add(s.rtt.timeout()))
	}
}

// noteCE takes the ECN field and CWR of a segment with payload that is in the
// window.
//
// RFC 3168, Section 6.1.3: a TCP receiver "continues to set the ECN-Echo flag
// in all the ACK packets it sends [...] until it receives a CWR packet".
func (s *Subflow) noteCE(seg *wire.Segment, size int) {
	if !s.ecn.both {
		return
	}
	if s.ecn.exact {
		s.noteExact(seg.ECN == wire.CE)
	} else if seg.Flags.Has(wire.CWR) {
		s.ecn.echo = false
	}
	if seg.ECN != wire.CE {
		return
	}
	s.count.trouble().ceBytes += uint64(size)
	s.count.trouble().cePackets++
	if seg.SegSize > 0 {
		s.count.trouble().cePackets += uint64((size - 1) / seg.SegSize)
	}
	if !s.ecn.echo {
		s.ecn.echo = true
		s.rcv.due = ackNow // the news is worth an ACK
	}
}
