package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// silence is what a connection does while a subflow gets no answer to what it
// sends. The retransmission timer alone, which doubles each time, would notice
// the end of an outage only after as long again as the outage took. So the path
// is asked, by segments without payload, whether it is back.
type silence struct {
	since mono.Time // of the first timeout; 0 = the subflow makes progress
	due   mono.Time // of the next question
	asked int       // questions since anything was heard
}

// The end of an outage is noticed after an eighth of its length, or a second.
const (
	leastSilence = time.Second
	silenceShare = 8
)

// begin notes a retransmission timeout.
func (s *silence) begin(now mono.Time) {
	if !s.since.Set() {
		*s = silence{since: now, due: now.Add(leastSilence)}
	}
}

// askSilent asks the paths of subflows that are silent.
func (c *Conn) askSilent(now mono.Time) {
	for _, f := range c.flows {
		s := &f.silence
		switch {
		case !s.due.Reached(now):
		case f.phase != phaseUp || !f.tcp.Sending():
			*s = silence{}
		default:
			f.tcp.Probe()
			s.asked++
			s.due = now.Add(max(leastSilence, now.Sub(s.since)/silenceShare))
		}
	}
}

// answered sends again what the subflow waits for, when its path answers after
// a question of ours had stayed unanswered. A path that answers all questions
// but passes no payload is left to the timer.
func (s *silence) answered(now mono.Time, f *flow) {
	if s.asked > 1 {
		f.tcp.RetransmitNow(now)
	}
	if s.asked > 0 {
		s.asked = 0
	}
}
