package cc

import "slices"

// CruiseGains returns the gains by which CoupledBBR cruises at bandwidths.
func CruiseGains(phases int, bandwidths ...float64) []float64 {
	g := CoupledBBR{Phases: phases}.Group().(*bbrGroup)
	for _, bw := range bandwidths {
		c := g.Add(Params{MSS: 1000}).(*coupledBBR)
		c.state, c.model.max[0] = bbrCruise, bw
		c.watch.set = 0 // as if they were found to share a bottleneck
	}
	gains := make([]float64, len(bandwidths))
	for i, w := range g.flows {
		gains[i] = g.cruise(w.c.(*coupledBBR))
	}
	return gains
}

// SBD is the statistics of one flow's delays.
type SBD struct{ flow sbdFlow }

// Interval adds an interval of one-way delays in seconds.
func (s *SBD) Interval(lost, sent int, delays ...float64) {
	for _, d := range delays {
		s.flow.delay(d)
	}
	s.flow.now.lost, s.flow.now.sent = float64(lost), float64(sent)
	s.flow.end()
}

// Stats returns the summary statistics.
func (s *SBD) Stats() (mean, skew, deviation, freq, loss float64) {
	t := &s.flow.stat
	return s.flow.mean, t.skew, t.deviation, t.freq, t.loss
}

// SBDGroups returns the groups, by indices, of those that traverse a
// bottleneck.
func SBDGroups(flows ...*SBD) [][]int {
	index := map[*sbdFlow]int{}
	var in []*sbdFlow
	for i, f := range flows {
		index[&f.flow] = i
		in = append(in, &f.flow)
	}
	sbdGroups(in)
	out := make([][]int, len(flows))
	for _, f := range in {
		if f.group >= 0 {
			out[f.group] = append(out[f.group], index[f])
		}
	}
	out = slices.DeleteFunc(out, func(set []int) bool { return len(set) == 0 })
	for _, set := range out {
		slices.Sort(set)
	}
	return out
}
