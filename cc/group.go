package cc

import "slices"

// uncoupled is the group of controllers that do not know of each other.
type uncoupled func(p Params) Controller

func (u uncoupled) Add(p Params) Controller { return u(p) }
func (u uncoupled) Remove(Controller)       {}

// shared is what the controllers of a coupled group see of each other. What
// is derived from it is computed for each ACK anew: it is a few operations a
// subflow, and never out of date.
type shared struct {
	members []*member
}

// member is one subflow in a shared view.
type member struct {
	window float64 // bytes in use, see resize
	mss    float64 // bytes
	rtt    float64 // smoothed, seconds; 0 before the first sample
	failed bool    // a retransmission timeout is unanswered

	share float64 // of the bytes that met congestion, 0 to 1
	ecn   bool    // share is that of marks

	drops    bool // the last signal was a loss: the queue drops what it does not mark
	dropping bool // what drops was before it

	since, between float64 // bytes acknowledged since the last loss, and between it and the one before
}

func newMember(w *window) *member {
	m := makeMember(w)
	return &m
}

func makeMember(w *window) member { return member{window: w.cwnd, mss: w.mss} }

func (v *shared) leave(m *member) {
	v.members = slices.DeleteFunc(v.members, func(o *member) bool { return o == m })
}

// counts reports whether the member takes part in sums: a subflow without an
// RTT sample has no rate, and one that failed carries nothing.
func (m *member) counts() bool { return m.rtt > 0 && !m.failed }

// rate is what the window is worth, in bytes/s.
func (m *member) rate() float64 { return m.window / m.rtt }

// coupled reports whether m takes part, and others beside it.
func (v *shared) coupled(m *member) bool { return m.counts() && v.active() > 1 }

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

// sum adds f of all members that take part.
func (v *shared) sum(f func(*member) float64) float64 {
	sum := 0.0
	for _, m := range v.members {
		if m.counts() {
			sum += f(m)
		}
	}
	return sum
}

// most returns the greatest f of all members that take part.
func (v *shared) most(f func(*member) float64) float64 {
	most := 0.0
	for _, m := range v.members {
		if m.counts() {
			most = max(most, f(m))
		}
	}
	return most
}

// total returns the sum of the windows, in bytes.
func (v *shared) total() float64 { return v.sum(func(m *member) float64 { return m.window }) }

// rate returns the sum of the rates, in bytes/s.
func (v *shared) rate() float64 { return v.sum((*member).rate) }

// minRTT returns the least RTT, in seconds.
func (v *shared) minRTT() float64 {
	return 1 / v.most(func(m *member) float64 { return 1 / m.rtt })
}

// normal returns the sum of what the windows would be at the least RTT of
// all for the same rates, in bytes.
func (v *shared) normal() float64 { return v.minRTT() * v.rate() }

// acked notes an ACK on a member.
func (m *member) acked(s *Sample, w *window) {
	m.failed = false
	m.rtt = s.SRTT.Seconds()
	m.since += float64(s.Acked)
	m.ecn = s.ECN
	m.resize(s, w)
}

// resize notes the window of a member after an ACK.
//
// RFC 6356, Section 3: "To cater to connections that are app limited, the
// computation should consider the minimum between flight_size_i and cwnd_i".
// FlightSize is that before the ACK; a window in full use stands for itself,
// unless nothing follows: the subflow may have become a backup.
// The ssthresh that a subflow in fast retransmit should contribute is what
// our controllers have as cwnd then.
func (m *member) resize(s *Sample, w *window) {
	m.window, m.mss = w.cwnd, w.mss
	if s.InFlight == 0 || !s.CwndLimited && !s.InRecovery {
		m.window = min(w.cwnd, max(float64(s.InFlight+s.Delivered), w.mss))
	}
}

// lost notes a congestion signal.
func (m *member) lost(l Loss, w *window) {
	m.window, m.failed = w.cwnd, l == LossTimeout
	m.dropping, m.drops = m.drops, l != LossECN
	m.between, m.since = m.since, 0
}

// restored notes that a signal was undone.
func (m *member) restored(w *window) {
	m.window, m.failed = w.cwnd, w.timedOut
	m.drops = m.dropping
}
