package cc

// newMDTCPGroup is MDTCP of Oljira et al., "MDTCP: towards a practical
// multipath transport protocol for telco cloud datacenters" (NoF 2018): DCTCP
// whose increase is coupled by the windows as they would be at the least RTT.
//
// Deviation: where a queue drops instead of marking, a subflow grows by LIA. All
// subflows that share a queue are marked in the same round trip, so that growing
// by one segment together is no more than one DCTCP does. Losses strike one of
// them, and half of its window is an n-th of half of all windows: at the same
// loss rate the windows of n subflows would be sqrt(n) times that of one TCP.
func newMDTCPGroup() Group { return exact{&linkedGroup{rule: mdtcp{}, base: dctcpBase}} }

type mdtcp struct{ cutAlone }

func (mdtcp) gain(v *shared, m *member) float64 {
	if m.drops {
		return lia{}.gain(v, m)
	}
	return m.mss / max(v.normal(), m.window)
}
