package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// SetUserTimeout changes Knobs.UserTimeout; 0 = none.
func (s *Subflow) SetUserTimeout(now mono.Time, d time.Duration) {
	s.stir()
	s.turn(func(k *Knobs) { k.UserTimeout = max(d, 0) })
	s.timers.Stop(timerUser)
	if s.snd.nxt > s.snd.una && !s.state.over() {
		s.startUserTimeout(now)
	}
}

// startUserTimeout counts from the first transmission of what is not
// acknowledged, unless it counts already.
//
// RFC 9293, Section 3.10.8: "For any state if the user timeout expires, flush
// all queues, signal the user 'error: connection aborted due to user timeout'
// in general and for any outstanding calls, delete the TCB, enter the CLOSED
// state, and return."
func (s *Subflow) startUserTimeout(now mono.Time) {
	if s.cfg.UserTimeout > 0 && !s.timers.At(timerUser).Set() {
		s.timers.Set(timerUser, now.Add(s.cfg.UserTimeout))
	}
}

// retimeUserTimeout counts anew when an ACK has moved SND.UNA.
func (s *Subflow) retimeUserTimeout(a *ack) {
	if !a.advanced {
		return
	}
	s.timers.Stop(timerUser)
	if s.queue.total > 0 {
		s.startUserTimeout(a.now)
	}
}

// onUserTimeout gives up, unless the peer is there and has closed its window
// on what was sent.
func (s *Subflow) onUserTimeout(now mono.Time) {
	if s.snd.syn == synAcked && s.snd.wnd == 0 && now.Sub(s.alive.lastHeard) < s.cfg.UserTimeout {
		s.startUserTimeout(now)
		return
	}
	s.giveUp()
}
