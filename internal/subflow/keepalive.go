package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// liveness is what is known of whether the peer is still there.
type liveness struct {
	lastHeard  mono.Time // of the last acceptable segment
	unanswered int32     // probes since then
	probe      bool      // a probe is to be sent
}

// heard notes an acceptable segment.
func (l *liveness) heard(now mono.Time) {
	l.lastHeard, l.unanswered = now, 0
}

// SetKeepAlive changes the keepalive.
func (s *Subflow) SetKeepAlive(now mono.Time, k KeepAlive) {
	s.stir()
	s.turn(func(all *Knobs) { all.KeepAlive = k.withDefaults() })
	if s.state.Synchronized() && !s.state.over() {
		s.setKeepAlive(now)
	}
}

// Probe asks the peer for an ACK, to find out whether the path works.
func (s *Subflow) Probe() {
	s.stir()
	if s.state.Synchronized() && !s.state.over() {
		s.alive.probe = true
	}
}

// setKeepAlive starts the wait for silence. What arrives later does not
// touch the timer: it looks at lastHeard when it expires.
func (s *Subflow) setKeepAlive(now mono.Time) {
	s.timers.Stop(timerKeepAlive)
	if s.cfg.KeepAlive.Idle > 0 {
		s.timers.Set(timerKeepAlive, max(s.alive.lastHeard.Add(s.cfg.KeepAlive.Idle), now+1))
	}
}

// onKeepAlive probes an idle peer, or gives it up.
//
// RFC 9293, Section 3.8.4: keepalives "MUST only be sent when no sent data is
// outstanding, and no data or acknowledgment packets have been received for
// the connection within an interval (MUST-26)."
func (s *Subflow) onKeepAlive(now mono.Time) {
	k := s.cfg.KeepAlive
	switch {
	case s.queue.total > 0 || s.timers.At(timerPersist).Set():
		s.timers.Set(timerKeepAlive, now.Add(k.Idle)) // the other timers find out
	case s.alive.lastHeard.Add(k.Idle) > now:
		s.timers.Set(timerKeepAlive, s.alive.lastHeard.Add(k.Idle))
	case int(s.alive.unanswered) >= k.Count:
		s.flush(reason.CloseKeepalive)
	default:
		s.alive.unanswered++
		s.alive.probe = true
		s.timers.Set(timerKeepAlive, now.Add(k.Interval))
	}
}
