package mpconn

// State is the data-level state of a connection (RFC 8684, Appendix D), which
// a plain TCP connection takes over from its only subflow's.
type State uint8

// Data-level states.
const (
	StateOpening   State = iota // handshake of the first subflow
	StateEstab                  // M_ESTAB
	StateFinWait1               // M_FIN_WAIT-1: DATA_FIN queued or sent
	StateFinWait2               // M_FIN_WAIT-2: DATA_FIN acknowledged
	StateClosing                // M_CLOSING: both sent, ours not acknowledged
	StateCloseWait              // M_CLOSE_WAIT: the peer's arrived
	StateLastAck                // M_LAST_ACK: the peer's arrived, ours sent
	StateTimeWait               // M_TIME_WAIT: both acknowledged, subflows closing
	StateClosed                 // M_CLOSED
)

var stateNames = [...]string{
	"OPENING", "ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSING", "CLOSE-WAIT", "LAST-ACK", "TIME-WAIT", "CLOSED",
}

// String returns the state's name without RFC 8684's prefix "M_".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid"
}

// State returns the data-level state. It is derived from what was sent and
// what was acknowledged, so that it cannot contradict them.
func (c *Conn) State() State {
	finSent, finAcked, finRcvd := c.snd.closed, c.snd.finAcked(), c.rcv.eof()
	switch {
	case c.over:
		return StateClosed
	case !c.connected:
		return StateOpening
	case finSent && finAcked && finRcvd:
		return StateTimeWait
	case finSent && finAcked:
		return StateFinWait2
	case finSent && finRcvd && c.rcv.finFirst:
		return StateLastAck
	case finSent && finRcvd:
		return StateClosing
	case finSent:
		return StateFinWait1
	case finRcvd:
		return StateCloseWait
	}
	return StateEstab
}
