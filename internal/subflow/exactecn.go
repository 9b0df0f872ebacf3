package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// turn is an ACK that is owed from before the CE state changed.
type turn struct {
	ack relSSN
	ce  bool
}

// turns holds the last few of them. There is more than one only if the driver
// hands in several segments before it polls; what finds no room costs the peer
// some precision.
type turns struct {
	queue [4]turn
	n     int
}

// noteExact takes the ECN field of a segment with payload where each change is
// echoed.
//
// RFC 8257, Section 3.2: "If the CE codepoint is set and DCTCP.CE is false, set
// DCTCP.CE to true and send an immediate ACK", and the other way round. As that
// ACK would tell of older data, too, "an implementation MAY choose to send two
// ACKs: one for previously unacknowledged packets and another acknowledging the
// most recently received packet."
func (s *Subflow) noteExact(marked bool) {
	if marked == s.ecn.echo {
		return
	}
	if s.ecn.turns == nil {
		s.ecn.turns = new(turns)
	}
	t := s.ecn.turns
	told := s.rcv.lastAck
	if t.n > 0 {
		told = t.queue[t.n-1].ack
	}
	if s.rcv.nxt > told && t.n < len(t.queue) {
		t.queue[t.n] = turn{s.rcv.nxt, s.ecn.echo}
		t.n++
	}
	s.ecn.echo = marked
	s.rcv.due = ackNow
}

// pollTurn fills seg with an ACK that is owed from before a change of the CE
// state, and reports whether there was one. The window stays what it is now,
// or it would be too wide for the number that the connection acknowledges.
func (s *Subflow) pollTurn(now mono.Time, seg *wire.Segment) bool {
	t := s.ecn.turns
	if t == nil || t.n == 0 || !s.state.Synchronized() {
		return false
	}
	first := t.queue[0]
	copy(t.queue[:], t.queue[1:t.n])
	t.n--
	s.putHeader(now, seg, s.snd.nxt, wire.ACK)
	seg.Ack = first.ack.absolute(s.rcv.irs)
	seg.Flags &^= wire.ECE
	if first.ce {
		seg.Flags |= wire.ECE
	}
	return true
}

// markable lets a SYN, SYN/ACK or RST be marked instead of dropped.
//
// RFC 8257, Section 3.6: "for DCTCP connections, the sender SHOULD set ECT for
// SYN, SYN-ACK, and RST packets."
func (s *Subflow) markable(seg *wire.Segment) {
	if s.ecn.wanted && s.ecn.exact {
		seg.ECN = wire.ECT0
	}
}
