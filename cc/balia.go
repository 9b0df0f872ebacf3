package cc

// newBALIAGroup is the Balanced Linked Adaptation algorithm of Peng, Walid,
// Hwang and Low, "Multipath TCP: analysis, design, and implementation"
// (IEEE/ACM ToN 2016), also draft-walid-mptcp-congestion-control. Slow start is
// Reno's.
func newBALIAGroup() Group { return &linkedGroup{rule: balia{}, base: renoBase} }

type balia struct{}

// behind returns how many times the rate of the fastest path is that of m.
func (balia) behind(v *shared, m *member) float64 { return v.most((*member).rate) / m.rate() }

// gain is, with x the rates and a = max x / x_r,
//
//	x_r/T_r / (sum x)^2 * (1+a)/2 * (4+a)/5
func (b balia) gain(v *shared, m *member) float64 {
	a, rate := b.behind(v, m), v.rate()
	return m.mss * m.rate() / m.rtt / (rate * rate) * (1 + a) / 2 * (4 + a) / 5
}

// keep is 1 - min(a, 1.5)/2.
func (b balia) keep(v *shared, m *member, l Loss, alone float64) float64 {
	return 1 - (1-alone)*min(b.behind(v, m), 1.5)
}
