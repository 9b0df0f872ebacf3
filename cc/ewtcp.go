package cc

// newEWTCPGroup is Equally-Weighted TCP of Honda et al., "Multipath congestion
// control for shared bottleneck" (PFLDNeT 2009): each of n subflows is a TCP
// of weight 1/n, whatever the paths are like. It moves no traffic.
//
// Deviation: the increase is 1/n^2 of Reno's, by which a window is 1/n of
// Reno's at the same loss rate. It is often quoted with 1/sqrt(n), which under
// Reno's halving does not give that.
func newEWTCPGroup() Group { return &linkedGroup{rule: ewtcp{}, base: renoBase} }

type ewtcp struct{ cutAlone }

func (ewtcp) gain(v *shared, m *member) float64 {
	n := float64(v.active())
	return m.mss / m.window / (n * n)
}
