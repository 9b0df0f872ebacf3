package cc

import "time"

// Vegas is TCP Vegas (Brakmo and Peterson, IEEE JSAC 1995): it keeps a few
// segments of its own queued at the bottleneck, measured by how much the RTT
// exceeds the least one seen. Losses are met as Reno does.
//
// It starves beside loss-based flows, and takes a longer route for a queue.
type Vegas struct {
	// Segments to be kept queued at least and at most, and in slow start; 0
	// means 2, 4 and 1.
	Alpha, Beta, Gamma float64
	// Drain empties the queue for a round trip whenever it holds Alpha segments
	// and its delay has doubled since it was last least, so that the least RTT
	// can be seen. It is wVegas's idea.
	// Deviation: wVegas does not ask for Alpha segments, and drains a queue that
	// is nearly empty by the noise of its delay.
	Drain bool
}

// Group is a Factory.
func (v Vegas) Group() Group {
	v = v.withDefaults()
	return uncoupled(func(p Params) Controller { return newVegas(p, v) })
}

func (v Vegas) withDefaults() Vegas {
	if v.Alpha <= 0 {
		v.Alpha = 2
	}
	if v.Beta <= 0 {
		v.Beta = max(4, v.Alpha)
	}
	if v.Gamma <= 0 {
		v.Gamma = 1
	}
	return v
}

const (
	// vegasSamples is how many RTTs a round trip must have given for the window
	// to be changed by their mean.
	vegasSamples = 3
	// vegasIdle is after how long without anything in flight the route may be
	// another one: the least RTT is learned anew.
	vegasIdle = 200 * time.Millisecond
)

// vegas is the controller of one subflow.
type vegas struct {
	reno
	Vegas
	// reweigh, if not nil, is asked for Alpha and Beta at the end of a round
	// trip that queued more than Alpha, with the window in segments and the RTT.
	reweigh func(w, rtt float64) float64

	base  time.Duration // least RTT; 0 = none yet
	least time.Duration // least queueing delay since the last drain; 0 = none yet

	round     uint64
	sum       time.Duration // of the RTTs of this round trip
	samples   int
	disturbed bool          // recovery or too little data makes them useless
	last      time.Duration // Sample.Now of the last ACK
	drained   bool          // it left nothing in flight
}

func newVegas(p Params, v Vegas) *vegas {
	return &vegas{reno: reno{win: newWindow(p)}, Vegas: v}
}

func (v *vegas) OnAck(s *Sample) {
	v.note(s)
	v.measure(s)
	if grows(s) && v.win.inSlowStart() {
		v.win.slowStart(s.Acked)
	}
	if s.Round == v.round {
		return
	}
	if v.samples >= vegasSamples && !v.disturbed {
		v.adjust(v.sum / time.Duration(v.samples))
	}
	v.round, v.sum, v.samples, v.disturbed = s.Round, 0, 0, false
}

// measure takes an RTT.
func (v *vegas) measure(s *Sample) {
	if v.drained && s.Now-v.last > vegasIdle {
		v.base, v.least = 0, 0
	}
	v.last, v.drained = s.Now, s.InFlight == 0
	v.disturbed = v.disturbed || s.InRecovery || !s.CwndLimited
	if s.RTT <= 0 {
		return
	}
	v.sum += s.RTT
	v.samples++
	if v.base == 0 || s.RTT < v.base {
		v.base = s.RTT
	}
}

// adjust changes the window by the mean RTT of a round trip.
func (v *vegas) adjust(mean time.Duration) {
	w, mss := &v.win, v.win.mss
	base, rtt := v.base.Seconds(), mean.Seconds()
	segs := w.cwnd / mss
	queued := segs * (rtt - base) / rtt
	if w.inSlowStart() {
		if queued > v.Gamma {
			w.cwnd = min(w.cwnd, (float64(int(segs*base/rtt))+1)*mss)
			v.leave()
		}
		return
	}
	if v.reweigh != nil && queued >= wvegasLeast {
		v.Alpha = v.reweigh(segs, rtt)
		v.Beta = v.Alpha
	}
	switch {
	case queued > v.Beta:
		w.cwnd -= mss
		v.leave()
	case queued < v.Alpha:
		w.cwnd += mss
	}
	if v.Drain {
		v.drain(mean, queued >= v.Alpha)
	}
	w.cwnd = max(w.cwnd, 2*mss)
}

// leave makes sure that slow start is over.
func (v *vegas) leave() {
	v.win.cwnd = max(v.win.cwnd, 2*v.win.mss)
	v.win.ssthresh = max(min(v.win.ssthresh, v.win.cwnd-v.win.mss), 2*v.win.mss)
}

// drain halves what would just fill the path once the queue has doubled.
func (v *vegas) drain(mean time.Duration, holds bool) {
	q := mean - v.base
	if v.least == 0 || q < v.least {
		v.least = q
	}
	if holds && v.least > 0 && q >= 2*v.least {
		v.win.cwnd *= v.base.Seconds() / (2 * mean.Seconds())
		v.least = 0
	}
}

func (v *vegas) OnLoss(l Loss, s *Sample) {
	v.reno.OnLoss(l, s)
	v.disturbed = true
}
