package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
)

// Least MTUs that an ICMP message can make us believe in, without the IP
// header. IPv6 links carry 1280 bytes (RFC 8200, Section 5). For IPv4 this is
// what hosts commonly enforce, so that a forged message cannot make every
// segment tiny; a path that really is narrower is not supported.
const (
	leastMTU4 = 552 - 20
	leastMTU6 = 1280 - 40
)

// updateMSS computes the payload of a full data segment.
//
// RFC 9293, Section 3.7.1: "The maximum size of a segment that a TCP endpoint
// really sends, the 'effective send MSS', MUST be the smaller (MUST-16) of the
// send MSS (that reflects the available reassembly buffer size at the remote
// host, the EMTU_R) and the largest transmission size permitted by the IP
// layer (EMTU_S)", where options count.
func (s *Subflow) updateMSS() {
	packet := min(s.snd.peerMSS, s.snd.mtu-headerLen)
	s.snd.mss = packet - s.optionsLen() - int(s.room.Data)
}

// sentHere reports whether quoted lies in what is unacknowledged, so that an
// ICMP message that quotes it is about a segment of ours (RFC 5927, Section
// 4.1).
func (s *Subflow) sentHere(quoted seq.SSN) (relSSN, bool) {
	n := relative(quoted, s.snd.iss, s.snd.nxt)
	return n, n >= s.snd.una && n < s.snd.nxt
}

// HandlePacketTooBig acts on an ICMP message that says that the path carries
// only mtu bytes of TCP header, options and payload in a packet. quoted is the
// sequence number of the segment that it quotes.
//
// RFC 8201, Section 4: "After receiving a Packet Too Big message, a node must
// attempt to avoid eliciting more such messages in the near future."
// Retransmission is at once and without a reaction of congestion control.
func (s *Subflow) HandlePacketTooBig(now mono.Time, quoted seq.SSN, mtu int) {
	s.stir()
	num, ok := s.sentHere(quoted)
	if !ok || s.state.over() {
		return
	}
	least := leastMTU6
	if s.ends.Remote.Addr().Unmap().Is4() {
		least = leastMTU4
	}
	mtu = max(mtu, min(least, s.mtu))
	p := s.searching()
	if p.hi != 0 && num >= p.lo && num < p.hi && mtu < p.size {
		// RFC 8899, Section 4.6.2: "The PL can use the reported PL_PTB_SIZE
		// from the PTB message as the next search point".
		p.hi = 0
		p.top, p.bisect = max(mtu, s.snd.mtu), false
		s.queue.loseLarger(num, s.snd.mss)
	}
	if mtu < s.snd.mtu {
		s.snd.mtu = mtu
		*p = search{top: mtu, done: true, notBefore: now.Add(raiseAfter)}
		s.updateMSS()
		s.queue.loseLarger(num, s.snd.mss)
	}
}

// HandleUnreachable acts on an ICMP message that says that the destination is
// unreachable; hard means that no later segment can fare better.
//
// RFC 5461, Section 4.1: hard errors end a connection only while it is being
// opened. RFC 9293, Section 3.9.2.2: soft errors "MUST NOT abort the
// connection (MUST-56)"; if nothing gets through they are given as the reason
// at the end.
func (s *Subflow) HandleUnreachable(now mono.Time, quoted seq.SSN, hard bool) {
	s.stir()
	if _, ok := s.sentHere(quoted); !ok || s.state.over() {
		return
	}
	if hard && (s.state == StateSynSent || s.state == StateSynReceived) {
		s.flush(reason.CloseUnreachable)
		return
	}
	s.unreachable = true
}
