package scheduler

import (
	"math"
	"math/bits"
	"time"
)

// Reasons of sctc.
const (
	ReasonRate   Reason = "greatest rate"
	ReasonSooner Reason = "ends soonest"
)

// SCTCMode says how SCTC is read.
type SCTCMode uint8

const (
	// SCTCLiteral is the pseudocode: of the subflows with room, the one with
	// the greatest rate while more segments wait than fit; after that the one
	// that ends soonest, which is the one with the least RTT.
	SCTCLiteral SCTCMode = iota
	// SCTCPlanned has rule (7) look at full subflows, too: what waits is given
	// out to all in order of the time at which they end, and what falls to a
	// full one waits for it. The tail is then what fits the whole windows of
	// all, as equation (6) bounds it. Reconstruction: this is what the
	// equations compute, and the pseudocode does not.
	SCTCPlanned
	// SCTCOptimal gives out everything by rule (7), not only the tail. That is
	// the optimum of problem (2). Reconstruction, ours.
	SCTCOptimal
)

// SCTCConfig says how SCTC is read.
type SCTCConfig struct {
	Mode SCTCMode
	// FreeWindow has a subflow's rate be its free window over its RTT, as the
	// paper's text says. By default it is the whole window, since the free one
	// shrinks while it is filled, which makes the ranking oscillate.
	FreeWindow bool
}

// sctc is SCTC, synchronous completion transmission scheduling (Feng and Chen):
// as long as the subflows can't take all that waits, rate decides; the tail
// goes where it ends soonest, so that all end at about the same time.
type sctc struct {
	cfg    SCTCConfig
	rounds [MaxSubflows]round // of each subflow, for the decision being made
}

// SCTC makes schedulers that read SCTC as the configuration says. The names
// "sctc-literal", "sctc-planned" and "sctc-optimal" are its modes with whole
// windows.
func SCTC(cfg SCTCConfig) Factory { return func() Scheduler { return &sctc{cfg: cfg} } }

func (t *sctc) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	free := v.Free(set)
	waiting, fits := int64(0), int64(0) // R1 and R2
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		s := &v.Subflows[i]
		room := s.Room
		if t.cfg.Mode != SCTCLiteral {
			room = max(room, s.Cwnd)
		} else if free>>i&1 == 0 {
			continue
		}
		waiting = max(waiting, s.segments(v.Unsent))
		fits += s.segments(int64(room))
	}
	tail := waiting <= fits
	switch {
	case tail && t.cfg.Mode == SCTCLiteral:
		return v.leastRTT(set, ReasonSooner)
	case tail || t.cfg.Mode == SCTCOptimal:
		return t.synchronous(v, set, free, waiting)
	}
	best, _ := v.least(free, func(i int) float64 { return -t.rate(&v.Subflows[i]) })
	return Decision{Send: 1 << best, Bytes: v.Subflows[best].Room, Reason: ReasonRate}
}

func (t *sctc) rate(s *Subflow) float64 {
	if t.cfg.FreeWindow && s.SRTT > 0 {
		return float64(s.Room) / s.SRTT.Seconds()
	}
	return s.Rate()
}

// synchronous gives out the waiting segments by rule (7) and sends on the
// fastest of the subflows with room to which any fell.
func (t *sctc) synchronous(v *View, set, free uint64, waiting int64) Decision {
	rounds := &t.rounds
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		s := &v.Subflows[i]
		r := &rounds[i]
		*r = round{window: int64(max(s.Cwnd/s.segment(), 1)), rtt: float64(s.rtt()) / float64(time.Second)}
		if r.first = s.segments(int64(s.Room)); r.first == 0 {
			r.first, r.start = r.window, v.untilRoom(i).Seconds()
		}
	}
	giveOut(rounds, set, waiting)
	given := uint64(0)
	for rest := free; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros64(rest); rounds[i].given > 0 {
			given |= 1 << i
		}
	}
	best := v.Fastest(given)
	if best < 0 {
		return wait(ReasonFastSooner)
	}
	s := &v.Subflows[best]
	n := min(rounds[best].given, s.segments(int64(s.Room))) * int64(s.segment())
	return Decision{Send: 1 << best, Bytes: int(min(n, int64(s.Room))), Reason: ReasonSooner}
}

// round is what a subflow can take: first segments in a window that ends an
// rtt after start, and a whole window more in each rtt after that. Times are in
// seconds.
type round struct {
	start, rtt    float64
	first, window int64
	given         int64 // segments
	rounds        int64 // windows begun
}

// ends returns when the last segment would be acknowledged if one more were
// given: rule (7), t_i + rtt_i.
func (r *round) ends() float64 {
	n := r.rounds
	if r.given < r.takes(n) {
		n--
	}
	return r.start + float64(n+1)*r.rtt
}

// takes returns how many segments n windows hold.
func (r *round) takes(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return r.first + (n-1)*r.window
}

// giveOut gives n segments to the subflows of set, each to the one that ends
// soonest with it; equal ones in their order. It goes by windows, not by
// segments, and begins with those that end before the time in which a fluid
// would have drained, which hold n segments at most.
func giveOut(rounds *[MaxSubflows]round, set uint64, n int64) {
	if n <= 0 {
		return
	}
	drained := drainTime(rounds, set, n)
	for rest := set; rest != 0; rest &= rest - 1 {
		r := &rounds[bits.TrailingZeros64(rest)]
		whole := int64((drained - r.start) / r.rtt * (1 - 1e-9))
		if whole <= r.rounds {
			continue
		}
		r.rounds = whole
		more := min(r.takes(whole)-r.given, n)
		r.given += more
		n -= more
	}
	for n > 0 {
		best, soonest := -1, math.Inf(1)
		for rest := set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			if e := rounds[i].ends(); e < soonest {
				best, soonest = i, e
			}
		}
		r := &rounds[best]
		if r.given == r.takes(r.rounds) {
			r.rounds++
		}
		more := min(r.takes(r.rounds)-r.given, n)
		r.given += more
		n -= more
	}
}

// drainTime returns when n segments would be sent if windows were a fluid.
func drainTime(rounds *[MaxSubflows]round, set uint64, n int64) float64 {
	for {
		rate, late := 0.0, float64(n)
		for rest := set; rest != 0; rest &= rest - 1 {
			r := &rounds[bits.TrailingZeros64(rest)]
			rate += float64(r.window) / r.rtt
			late += r.start/r.rtt*float64(r.window) + float64(r.window-r.first+r.given)
		}
		at, kept := late/rate, set
		for rest := set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			r := &rounds[i]
			if (at-r.start)/r.rtt*float64(r.window) <= float64(r.window-r.first+r.given) {
				kept &^= 1 << i // it has nothing to do by then
			}
		}
		if kept == set || kept == 0 {
			return at
		}
		set = kept
	}
}
