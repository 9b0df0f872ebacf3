package cc

// CoupledBBR lets the subflows of a connection that share a bottleneck have what
// one BBR would have there: of the cycle of L phases, all but two are cruised at a
// gain by which the mean over the cycle is b_r = x_r*x_max/sum(x^2), with x the
// bandwidths. Equal paths get 1/n each. It acts while all subflows of a bottleneck
// are in ProbeBW. One that is alone at its bottleneck, as far as is known, is BBR:
// coupled, two links that are alike would be used by half each. What shares a
// bottleneck is found as by Detecting, for which it takes 21 s.
//
// After Han et al., "Coupled BBR" (IEEE/ACM ToN 2021), of which only the
// abstract and an implementation for version 1 are known to us; to version 3,
// whose cycle has no fixed number of phases, it is carried over by ourselves. The
// two phases are those that probe. Version 3 leaves the one after them, ProbeBW_DOWN,
// when the queue has been drained, which takes many round trips beside other
// traffic: so it is one of those that are cruised, at 0.9 of the gain.
type CoupledBBR struct {
	// Phases is L, at least 3; 0 means 63, which is how many round trips a cycle
	// of version 3 has at most.
	Phases int
}

// Group is a Factory.
func (c CoupledBBR) Group() Group {
	if c.Phases < 3 {
		c.Phases = bbrRenoRounds
	}
	return &bbrGroup{phases: float64(c.Phases)}
}

type bbrGroup struct {
	detector
	phases float64
}

func (g *bbrGroup) Add(p Params) Controller {
	c := &coupledBBR{bbr: *newBBR(p), group: g}
	g.add(c, &c.watch)
	return c
}

func (g *bbrGroup) Remove(c Controller) { g.remove(c) }

// coupledBBR is the controller of one subflow.
type coupledBBR struct {
	bbr
	group *bbrGroup
	watch watched
}

func (c *coupledBBR) OnAck(s *Sample) {
	c.group.observe(&c.watch, s)
	c.cruise = c.group.cruise(c)
	c.bbr.OnAck(s)
}

// cruise returns the gain of a subflow. One of 0 or less means as little as
// keeps the path probed, which the pacing rate's floor gives.
func (g *bbrGroup) cruise(c *coupledBBR) float64 {
	most, squares, others := 0.0, 0.0, false
	for _, w := range g.flows {
		if w.set != c.watch.set {
			continue
		}
		m := w.c.(*coupledBBR)
		if !m.state.probesBW() && m.state != bbrInProbeRTT {
			return 1
		}
		others = others || m != c
		x := m.maxBW()
		most = max(most, x)
		squares += x * x
	}
	if !others || squares == 0 {
		return 1
	}
	share := c.maxBW() * most / squares
	return max((g.phases*share-2)/(g.phases-2), 0)
}
