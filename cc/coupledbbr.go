package cc

import "slices"

// CoupledBBR lets the subflows of a connection share what one BBR would have:
// of the cycle of L phases, all but two are cruised at a gain by which the mean
// over the cycle is b_r = x_r*x_max/sum(x^2), with x the bandwidths. Equal
// paths get 1/n each. It acts while all subflows are in ProbeBW, and couples
// them whether they share a bottleneck or not.
//
// After Han et al., "Coupled BBR" (IEEE/ACM ToN 2021), of which only the
// abstract and an implementation for version 1 are known to us; to version 3,
// whose cycle has no fixed number of phases, it is carried over by ourselves.
type CoupledBBR struct {
	// Phases is L, at least 3; 0 means 8.
	Phases int
}

// Group is a Factory.
func (c CoupledBBR) Group() Group {
	if c.Phases < 3 {
		c.Phases = 8
	}
	return &bbrGroup{phases: float64(c.Phases)}
}

type bbrGroup struct {
	members []*coupledBBR
	phases  float64
}

func (g *bbrGroup) Add(p Params) Controller {
	c := &coupledBBR{bbr: *newBBR(p), group: g}
	g.members = append(g.members, c)
	return c
}

func (g *bbrGroup) Remove(c Controller) {
	g.members = slices.DeleteFunc(g.members, func(o *coupledBBR) bool { return o == c })
}

// coupledBBR is the controller of one subflow.
type coupledBBR struct {
	bbr
	group *bbrGroup
}

func (c *coupledBBR) OnAck(s *Sample) {
	c.cruise = c.group.cruise(c)
	c.bbr.OnAck(s)
}

// cruise returns the gain of a subflow. One of 0 or less means as little as
// keeps the path probed, which the pacing rate's floor gives.
func (g *bbrGroup) cruise(c *coupledBBR) float64 {
	if len(g.members) < 2 {
		return 1
	}
	most, squares := 0.0, 0.0
	for _, m := range g.members {
		if !m.state.probesBW() && m.state != bbrInProbeRTT {
			return 1
		}
		x := m.maxBW()
		most = max(most, x)
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	share := c.maxBW() * most / squares
	return max((g.phases*share-2)/(g.phases-2), 0)
}
