package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
)

// EventKind tells events apart.
type EventKind uint8

// Events. EventClosed and EventTimeWait end a subflow: exactly one of the two
// comes, as its last event.
const (
	EventEstablished EventKind = iota + 1
	EventTimeout               // a retransmission timeout fired: Backoff
	EventRecovered             // new data was acknowledged after EventTimeout
	EventClosed                // CLOSED: Close
	EventTimeWait              // both directions closed in order: TimeWait, for the host to keep
)

// Event is something that the connection should know.
type Event struct {
	Kind     EventKind
	Close    reason.Close // EventClosed: why; EventTimeWait: CloseDone
	Backoff  int          // EventTimeout: consecutive timeouts
	TimeWait *TimeWait
}

// TimeWait is what it takes to answer for a connection in TIME-WAIT.
type TimeWait struct {
	SndNxt, RcvNxt seq.SSN
	Window         uint16 // to advertise, as on the wire
	Timestamps     bool   // in use: only then TSRecent and TSVal mean anything
	TSRecent       uint32 // the peer's clock, as last seen
	TSOffset       uint32 // of our clock
}

// TSVal returns the timestamp of a segment sent at now.
func (t *TimeWait) TSVal(now mono.Time) uint32 { return uint32(tsTick(now)) + t.TSOffset }

// emit queues e. Timeouts and recoveries that were not fetched in time are
// replaced by later ones, which bounds the queue.
func (s *Subflow) emit(e Event) {
	if e.Kind == EventTimeout || e.Kind == EventRecovered {
		kept := s.events[:0]
		for _, old := range s.events {
			if old.Kind != EventTimeout && old.Kind != EventRecovered {
				kept = append(kept, old)
			}
		}
		s.events = kept
	}
	s.events = append(s.events, e)
}

// PollEvent returns the next event.
func (s *Subflow) PollEvent() (Event, bool) {
	if len(s.events) == 0 {
		return Event{}, false
	}
	e := s.events[0]
	if s.events = s.events[1:]; len(s.events) == 0 {
		s.events = nil // they are rare
	}
	return e, true
}

// timeWait hands TIME-WAIT over to the host. The acknowledgment of the peer's
// FIN is still to be polled.
func (s *Subflow) timeWait(now mono.Time) {
	s.state = StateTimeWait
	s.timers.StopAll()
	s.alive.probe = false
	s.queue.clear()
	s.emit(Event{Kind: EventTimeWait, Close: reason.CloseDone, TimeWait: &TimeWait{
		SndNxt: s.snd.nxt.absolute(s.snd.iss), RcvNxt: s.rcv.nxt.absolute(s.rcv.irs),
		Window: s.rcv.window(), Timestamps: s.ts.on, TSRecent: s.ts.recent, TSOffset: s.tsOffset,
	}})
}
