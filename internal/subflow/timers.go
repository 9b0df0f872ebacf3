package subflow

import "github.com/gomptcp/gomptcp/internal/mono"

// timerKind tells the timers of a subflow apart.
type timerKind uint8

const (
	timerReorder   timerKind = iota // RACK waits for what was reordered
	timerTailProbe                  // the last ACKs do not come; before timerRexmit, which it moves
	timerRexmit                     // SYN, data or FIN is unacknowledged (RFC 6298)
	timerPersist                    // data waits behind a closed or silly window
	timerDelAck                     // an ACK was put off
	timerPacing                     // the next burst may begin
	timerKeepAlive                  // the peer may have gone
	timerUser                       // nothing was acknowledged for too long
	timerFinWait2                   // the peer's FIN does not come
)

// Deadline returns when HandleTimeout must be called next; 0 means never.
func (s *Subflow) Deadline() mono.Time { return s.timers.Next() }

// HandleTimeout acts on every timer that has expired at now. Every action
// stops its timer or moves it behind now.
func (s *Subflow) HandleTimeout(now mono.Time) {
	s.stir()
	for {
		k, ok := s.timers.Expired(now)
		if !ok {
			return
		}
		switch k {
		case timerReorder:
			s.onReorder(now)
		case timerTailProbe:
			s.onTailProbe(now)
		case timerRexmit:
			s.onRexmit(now)
		case timerPersist:
			s.onPersist(now)
		case timerDelAck:
			s.rcv.due = ackNow
		case timerPacing: // whoever called polls
		case timerKeepAlive:
			s.onKeepAlive(now)
		case timerUser:
			s.onUserTimeout(now)
		case timerFinWait2:
			s.onFinWait2()
		}
	}
}
