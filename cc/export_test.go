package cc

// CruiseGains returns the gains by which CoupledBBR cruises at bandwidths.
func CruiseGains(phases int, bandwidths ...float64) []float64 {
	g := CoupledBBR{Phases: phases}.Group().(*bbrGroup)
	for _, bw := range bandwidths {
		c := g.Add(Params{MSS: 1000}).(*coupledBBR)
		c.state, c.model.max[0] = bbrCruise, bw
	}
	gains := make([]float64, len(bandwidths))
	for i, c := range g.members {
		gains[i] = g.cruise(c)
	}
	return gains
}
