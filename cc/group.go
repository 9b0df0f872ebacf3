package cc

import (
	"math"
	"slices"
)

// uncoupled is the group of controllers that do not know of each other.
type uncoupled func(p Params) Controller

func (u uncoupled) Add(p Params) Controller { return u(p) }
func (u uncoupled) Remove(Controller)       {}

// shared is what the controllers of a coupled group see of each other.
type shared struct {
	members []*member
	stale   bool // something changed that derived values depend on
}

// member is one subflow in a shared view.
type member struct {
	window float64 // bytes in use, see update
	rtt    float64 // smoothed, seconds; 0 before the first sample
	failed bool    // a retransmission timeout is unanswered
	round  uint64  // Sample.Round when seen last
	known  float64 // window when the others were last told of a change, bytes
}

func (v *shared) join(cwnd float64) *member {
	m := &member{window: cwnd, known: cwnd}
	v.members = append(v.members, m)
	v.stale = true
	return m
}

func (v *shared) leave(m *member) {
	v.members = slices.DeleteFunc(v.members, func(o *member) bool { return o == m })
	v.stale = true
}

// counts reports whether the member takes part in sums: a subflow without an
// RTT sample has no rate, and one that failed carries nothing.
func (m *member) counts() bool { return m.rtt > 0 && !m.failed }

// active returns how many members take part.
func (v *shared) active() int {
	n := 0
	for _, m := range v.members {
		if m.counts() {
			n++
		}
	}
	return n
}

// total returns the sum of the windows, in bytes.
func (v *shared) total() float64 {
	sum := 0.0
	for _, m := range v.members {
		if m.counts() {
			sum += m.window
		}
	}
	return sum
}

// acked notes an ACK on a member whose congestion window is cwnd.
//
// RFC 6356, Section 3: "To cater to connections that are app limited, the
// computation should consider the minimum between flight_size_i and cwnd_i".
// FlightSize is that before the ACK; a window in full use stands for itself.
// The ssthresh that a subflow in fast retransmit should contribute is what
// our controllers have as cwnd then.
func (v *shared) acked(m *member, s *Sample, cwnd, mss float64) {
	was := m.counts()
	m.failed = false
	m.rtt = s.SRTT.Seconds()
	v.resize(m, s, cwnd, mss)
	if m.counts() != was || s.Round != m.round {
		v.stale = true
	}
	m.round = s.Round
}

// resize notes the window of a member after an ACK. The derived values are
// stale once it has changed by a segment (RFC 6356, Section 4.1: "Update
// alpha only if the quotient of cwnd_i/MSS_i differs").
func (v *shared) resize(m *member, s *Sample, cwnd, mss float64) {
	m.window = cwnd
	if !s.CwndLimited && !s.InRecovery {
		m.window = min(cwnd, max(float64(s.InFlight+s.Delivered), mss))
	}
	if math.Abs(m.window-m.known) >= mss {
		m.known = m.window
		v.stale = true
	}
}

// lost notes a congestion signal, or the undoing of one.
func (v *shared) lost(m *member, cwnd float64, failed bool) {
	m.window, m.known, m.failed = cwnd, cwnd, failed
	v.stale = true
}
