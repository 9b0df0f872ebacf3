package cc

// newOLIAGroup is the Opportunistic Linked Increases algorithm of Khalili et
// al., "MPTCP is not Pareto-optimal: performance issues and a possible
// solution" (CoNEXT 2012), also draft-khalili-mptcp-congestion-control. Decrease
// and slow start are Reno's.
//
// Deviation: the draft ranks paths by l^2/RTT; this one, as Linux does and as
// the theory asks, by l/RTT^2, which goes with the square of the rate.
func newOLIAGroup() Group { return &linkedGroup{rule: olia{}, base: renoBase} }

type olia struct{ cutAlone }

// tie is the relative difference below which two subflows count as equal.
const tie = 1e-9

// gain is (w/T^2)/(sum w/T)^2 + a/w, where a moves windows from the largest to
// those of the best paths that have none as large. It may be negative.
func (r olia) gain(v *shared, m *member) float64 {
	rate := v.rate()
	return m.mss * (m.rate()/m.rtt/(rate*rate) + r.shift(v, m)/m.window)
}

// quality is what paths are ranked by: the bytes between losses, of the last
// two intervals the longer one, over RTT^2.
func quality(m *member) float64 { return max(m.since, m.between) / (m.rtt * m.rtt) }

// shift returns a of a member; over all members the sum is 0.
func (olia) shift(v *shared, m *member) float64 {
	largest := v.most(func(o *member) float64 { return o.window }) * (1 - tie)
	best := v.most(quality) * (1 - tie)
	large := func(o *member) bool { return o.window >= largest }
	collected := func(o *member) bool { return quality(o) >= best && !large(o) }
	count := func(in func(*member) bool) float64 {
		return v.sum(func(o *member) float64 {
			if in(o) {
				return 1
			}
			return 0
		})
	}
	n, c := float64(v.active()), count(collected)
	switch {
	case c == 0:
		return 0
	case collected(m):
		return 1 / (n * c)
	case large(m):
		return -1 / (n * count(large))
	}
	return 0
}
