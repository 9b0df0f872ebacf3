package subflow

import (
	"math"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// pacer spreads what is sent over time: in bursts of about a millisecond, each
// as long before the next as its bytes take at the pacing rate.
type pacer struct {
	next mono.Time // when the next burst may begin; 0 = at any time
	at   mono.Time // when the present burst began
	left int       // bytes that it may still have
}

const (
	paceBurst = time.Millisecond
	// Of the window a round trip, while nothing else names a rate: in slow
	// start the window doubles within it, and otherwise a little more than it
	// keeps the window in full use. Linux uses the same ratios.
	paceSlowStart = 2
	paceAvoidance = 1.2
	// longestGap bounds the wait between bursts, whatever the rate.
	longestGap = time.Second
)

// pacingRate returns the rate in force in bytes a second; 0 = not paced.
func (s *Subflow) pacingRate() float64 {
	st := s.ctl.State()
	switch {
	case st.PacingRate > 0:
		return st.PacingRate
	case !s.cfg.Pacing || s.rtt.srtt == 0:
		return 0
	case st.Cwnd < st.Ssthresh:
		return paceSlowStart * st.Cwnd / s.rtt.srtt.Seconds()
	}
	return paceAvoidance * st.Cwnd / s.rtt.srtt.Seconds()
}

// burst returns how many bytes go out at once at a rate.
func (s *Subflow) burst(rate float64) int {
	return max(int(min(rate*paceBurst.Seconds(), 1<<30)), 2*s.snd.mss)
}

// paced returns how many bytes pacing lets out at now: 0, or at least a
// segment.
func (s *Subflow) paced(now mono.Time) int {
	rate := s.pacingRate()
	switch {
	case s.pace.next <= now && rate == 0:
		return math.MaxInt
	case s.pace.begins(now):
		return s.burst(rate)
	case s.pace.left > 0:
		return s.pace.left
	}
	return 0
}

// begins reports whether what is sent at now begins a burst.
func (p *pacer) begins(now mono.Time) bool {
	return p.next <= now && (p.left <= 0 || p.at != now)
}

// pacedOut notes that n bytes were sent.
func (s *Subflow) pacedOut(now mono.Time, n int) {
	rate := s.pacingRate()
	if rate == 0 || n == 0 {
		return
	}
	p := &s.pace
	if p.begins(now) {
		p.at, p.left = now, s.burst(rate)
		// A timer that comes a little late costs nothing of the rate.
		if now.Sub(p.next) > s.gap(p.left, rate) {
			p.next = now
		}
	}
	p.next = p.next.Add(s.gap(n, rate))
	// Who was told that there is no room for a segment is not asked again before
	// something happens.
	if p.left -= n; p.left < s.snd.mss {
		p.left = 0
		s.timers.Set(timerPacing, max(p.next, now+1))
	}
}

// gap returns how long n bytes take at a rate.
func (s *Subflow) gap(n int, rate float64) time.Duration {
	return time.Duration(min(float64(n)/rate, longestGap.Seconds()) * float64(time.Second))
}

// hold sends nothing before at.
func (s *Subflow) hold(at mono.Time) {
	s.pace = pacer{next: at}
	s.timers.Set(timerPacing, at)
}
