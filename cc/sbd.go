package cc

import (
	"cmp"
	"slices"
	"time"
)

// Constants of RFC 8382, Section 2.2 and Section 3.
const (
	sbdInterval = 350 * time.Millisecond // T
	sbdN        = 50                     // intervals for oscillation and loss
	sbdM        = 30                     // intervals for the other statistics
	sbdCS       = 0.1                    // c_s, sensitivity
	sbdCH       = 0.3                    // c_h, hysteresis
	sbdPF       = 0.1                    // p_f
	sbdPV       = 0.7                    // p_v
	sbdPMAD     = 0.1                    // p_mad
	sbdPS       = 0.15                   // p_s
	sbdPD       = 0.1                    // p_d
	// p_l has no value in the RFC.
	sbdPL = 0.1
	// sbdFirst is how many intervals pass before the first verdict. Section
	// 3.3.2: "We recommend that grouping decisions not be made until 2*M T
	// intervals."
	sbdFirst = 2 * sbdM
)

// sbdBase is what one interval of a flow leaves.
type sbdBase struct {
	samples    int
	mean       float64 // of the one-way delays, seconds
	skew       float64 // samples below the mean less those above
	deviation  float64 // sum of distances from the mean of the interval before
	lost, sent float64 // bytes
	crossed    bool    // the mean crossed the long-term one significantly
}

// sbdFlow keeps the statistics of one flow's one-way delay (RFC 8382, Section
// 3.2).
type sbdFlow struct {
	past  []sbdBase // ring of sbdN, grown as intervals end
	count int       // intervals ended
	now   sbdBase
	sum   float64 // of the delays of this interval
	side  int     // of the last significant crossing: 1 above, -1 below
	pb    bool    // it was found to traverse a bottleneck the last time
	group int     // see sbdGroups

	mean float64 // mean_delay, without the present interval
	stat sbdStat
}

// sbdStat are the summary statistics of a flow.
type sbdStat struct {
	skew, deviation, freq, loss float64
}

// observe takes an ACK.
func (f *sbdFlow) observe(s *Sample) {
	f.now.lost += float64(s.Lost)
	f.now.sent += float64(s.Delivered + s.Lost)
	if s.OneWayDelay <= 0 {
		return
	}
	f.delay(s.OneWayDelay.Seconds())
}

// delay takes a one-way delay in seconds.
func (f *sbdFlow) delay(d float64) {
	f.now.samples++
	f.sum += d
	if f.count == 0 {
		return
	}
	// Section 3.2.2: "if (OWD < mean_delay) skew_base_T++" and the other way
	// round.
	f.now.skew += float64(cmp.Compare(f.mean, d))
	f.now.deviation += abs(d - f.last().mean)
}

func abs(x float64) float64 { return max(x, -x) }

// last returns the interval that ended last.
func (f *sbdFlow) last() *sbdBase { return f.ago(0) }

// ago returns the interval that ended so many before the last.
func (f *sbdFlow) ago(n int) *sbdBase { return &f.past[(f.count-1-n)%sbdN] }

// end ends an interval and computes the statistics anew.
func (f *sbdFlow) end() {
	b := &f.now
	switch {
	case b.samples > 0:
		b.mean = f.sum / float64(b.samples)
	case f.count > 0:
		b.mean = f.last().mean
	}
	b.crossed = f.crosses(b.mean)
	if f.count < sbdN {
		f.past = append(f.past, *b)
	} else {
		f.past[f.count%sbdN] = *b
	}
	f.count++
	f.now, f.sum = sbdBase{}, 0

	mean, skew, deviation, samples := 0.0, 0.0, 0.0, 0.0
	m := min(sbdM, f.count)
	for i := range m {
		p := f.ago(i)
		mean += p.mean / float64(m)
		skew += p.skew
		deviation += p.deviation
		samples += float64(p.samples)
	}
	f.mean = mean
	f.stat = sbdStat{}
	if samples > 0 {
		f.stat.skew, f.stat.deviation = skew/samples, deviation/samples
	}
	crossings, lost, sent := 0.0, 0.0, 0.0
	for i := range min(sbdN, f.count) {
		p := f.ago(i)
		if p.crossed {
			crossings++
		}
		lost += p.lost
		sent += p.sent
	}
	f.stat.freq = crossings / sbdN
	if sent > 0 {
		f.stat.loss = lost / sent
	}
}

// crosses reports whether a new mean lies significantly on the other side of
// the long-term one (Section 3.2.4).
func (f *sbdFlow) crosses(mean float64) bool {
	if f.count == 0 {
		return false
	}
	side := 0
	switch d := mean - f.mean; {
	case d > sbdPV*f.stat.deviation:
		side = 1
	case d < -sbdPV*f.stat.deviation:
		side = -1
	}
	if side == 0 || side == f.side {
		return false
	}
	first := f.side == 0
	f.side = side
	return !first
}

// congested is step 1 of the grouping (Section 3.3.1).
func (f *sbdFlow) congested() bool {
	f.pb = f.stat.skew < sbdCS || f.stat.skew < sbdCH && f.pb || f.stat.loss > sbdPL
	return f.pb
}

// sbdGroups is the grouping of Section 3.3.1: it divides flows into those that
// share a bottleneck, which have the same number as group from then on. Flows
// that traverse none have -1. The order of flows is changed.
func sbdGroups(flows []*sbdFlow) {
	through := flows[:0]
	for i, f := range flows {
		f.group = -1
		if f.congested() {
			f.group = 0
			n := len(through)
			flows[i], flows[n] = flows[n], flows[i]
			through = flows[:n+1]
		}
	}
	divide(through, func(f *sbdFlow) float64 { return f.stat.freq }, func(float64) float64 { return sbdPF })
	divide(through, func(f *sbdFlow) float64 { return f.stat.deviation }, func(most float64) float64 { return sbdPMAD * most })
	divide(through, func(f *sbdFlow) float64 { return f.stat.skew }, func(float64) float64 { return sbdPS })
	// Section 3.3.1, step 5, is for those that lose enough.
	divide(through, func(f *sbdFlow) float64 {
		if f.stat.loss > sbdPL {
			return f.stat.loss
		}
		return 0
	}, func(most float64) float64 { return sbdPD * most })
}

// divide cuts each group, sorted from the highest value to the lowest, where
// neighbours differ by what gap of the higher one returns, or more.
func divide(flows []*sbdFlow, value func(*sbdFlow) float64, gap func(float64) float64) {
	slices.SortStableFunc(flows, func(a, b *sbdFlow) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(value(b), value(a)))
	})
	group, before := 0, 0
	for i, f := range flows {
		if i > 0 {
			last := value(flows[i-1])
			if f.group != before || last != value(f) && last-value(f) >= gap(last) {
				group++
			}
		}
		before, f.group = f.group, group
	}
}
