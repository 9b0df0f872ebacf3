package subflow

import (
	"strconv"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// State is a state of RFC 9293, Section 3.3.2. LISTEN does not occur: the
// host listens and a subflow begins with the SYN.
type State uint8

// States of a connection.
const (
	StateClosed State = iota
	StateSynSent
	StateSynReceived
	StateEstablished
	StateFinWait1
	StateFinWait2
	StateCloseWait
	StateClosing
	StateLastAck
	StateTimeWait // TIME-WAIT, the host's: here the subflow is over
)

var stateNames = [...]string{
	"CLOSED", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2",
	"CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT",
}

// String returns the state as RFC 9293 writes it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Synchronized reports whether both sides' sequence numbers are known and
// acknowledged (RFC 9293, Section 3.5.2).
func (s State) Synchronized() bool { return s >= StateEstablished }

// over reports whether nothing but a last answer remains to be sent.
func (s State) over() bool { return s == StateClosed || s == StateTimeWait }

// State returns the state.
func (s *Subflow) State() State { return s.state }

// CanSend reports whether bytes may be pushed: in ESTABLISHED and CLOSE-WAIT,
// and after a fast open in SYN-RECEIVED.
func (s *Subflow) CanSend() bool {
	return s.state == StateEstablished || s.state == StateCloseWait ||
		s.state == StateSynReceived && s.early && s.snd.fin == 0
}

// establish enters ESTABLISHED, and from there FIN-WAIT-1 if Close was called
// meanwhile.
func (s *Subflow) establish(now mono.Time) {
	s.state = StateEstablished
	s.snd.syn = synAcked
	if s.snd.fin != 0 {
		s.state = StateFinWait1
	}
	s.handshakeDone()
	s.alive.heard(now)
	s.setKeepAlive(now)
	s.emit(Event{Kind: EventEstablished})
}

// finAcked acts on the acknowledgment of our FIN.
func (s *Subflow) finAcked(now mono.Time) {
	switch s.state {
	case StateFinWait1:
		s.state = StateFinWait2
		s.setFinWait2(now)
	case StateClosing:
		s.timeWait(now)
	case StateLastAck:
		s.end(reason.CloseDone)
	}
}

// finReceived acts on the peer's FIN, all data before it having arrived.
func (s *Subflow) finReceived(now mono.Time) {
	switch s.state {
	case StateEstablished:
		s.state = StateCloseWait
	case StateFinWait1:
		s.state = StateClosing
	case StateFinWait2:
		s.timeWait(now)
	}
}

// end enters CLOSED, the last event telling why.
func (s *Subflow) end(why reason.Close) {
	s.state = StateClosed
	s.timers.StopAll()
	s.rcv.due = ackNone
	s.alive.probe = false
	s.queue.clear()
	s.emit(Event{Kind: EventClosed, Close: why})
}
