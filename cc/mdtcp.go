package cc

// newMDTCPGroup is MDTCP of Oljira et al., "MDTCP: towards a practical
// multipath transport protocol for telco cloud datacenters" (NoF 2018): DCTCP
// whose increase is coupled by the windows as they would be at the least RTT.
func newMDTCPGroup() Group { return exact{&linkedGroup{rule: mdtcp{}, base: dctcpBase}} }

type mdtcp struct{ cutAlone }

func (mdtcp) gain(v *shared, m *member) float64 { return m.mss / max(v.normal(), m.window) }
