package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
)

// synState is how far our SYN has come.
type synState uint8

const (
	synDue   synState = iota // to be sent, for the first time or again
	synOut                   // sent
	synAcked                 // acknowledged
)

// sender holds the variables of RFC 9293, Section 3.3.1, for the sequence
// space that we send in.
type sender struct {
	iss      seq.SSN
	persists int32 // consecutive expiries of the persist timer
	una, nxt relSSN
	end      relSSN    // one past the last byte pushed
	fin      relSSN    // place of our FIN, behind the last byte; 0 = Close was not called
	synAt    mono.Time // when the SYN was first sent

	wnd, maxWnd int    // bytes from una on; the largest ever offered
	wl1         relSSN // peer's number of the segment that last set wnd
	wl2         relSSN // our number that it acknowledged

	peerMSS int // as the peer's SYN said: payload and options of a packet
	mtu     int // as Config.MTU, lowered by ICMP
	mss     int // payload of a full data segment

	borders []relSSN // borders between Pushes, beyond nxt, ascending
	waiting int      // bytes that the connection had left at the last Room
	lastAt  mono.Time

	syn      synState
	synAgain bool  // the SYN was sent more than once
	shift    uint8 // peer's window scale
	sack     bool  // the peer takes SACK blocks and sends them
	blocked  bool  // SetBlocked: the connection has data that it cannot push
	refused  bool  // the last Room said 0 for a silly window and nothing in flight
	override bool  // the next segment may be smaller than SWS avoidance wants
	half     bool  // CloseWrite: FIN-WAIT-2 may last
}

// queued returns how many bytes were pushed and not yet sent.
func (s *sender) queued() int { return int(max(s.end-max(s.nxt, 1), 0)) }

// usable returns how many bytes beyond end the peer's window has room for.
func (s *sender) usable() int { return int(s.una) + s.wnd - int(max(s.end, s.nxt)) }

// border returns where the next segment of new data must end at the latest.
func (s *sender) border() relSSN {
	if len(s.borders) > 0 {
		return s.borders[0]
	}
	return s.end
}

// passed forgets the borders up to nxt.
func (s *sender) passed() {
	i := 0
	for i < len(s.borders) && s.borders[i] <= s.nxt {
		i++
	}
	s.borders = append(s.borders[:0], s.borders[i:]...)
}

// Push adds n bytes that belong together under one mapping: no segment will
// hold bytes of two Pushes. It panics unless CanSend.
func (s *Subflow) Push(now mono.Time, n int) {
	if n > 0 && s.snd.end > s.snd.nxt {
		s.snd.borders = append(s.snd.borders, s.snd.end)
	}
	s.Extend(now, n)
}

// Extend adds n bytes to the last Push. It panics unless CanSend.
func (s *Subflow) Extend(_ mono.Time, n int) {
	s.stir()
	if n <= 0 {
		return
	}
	if !s.CanSend() {
		panic("subflow: push in state " + s.state.String())
	}
	s.snd.end += relSSN(n)
	s.snd.waiting = max(s.snd.waiting-n, 0)
}
