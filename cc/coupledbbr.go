package cc

import "time"

// CoupledBBR lets the subflows of a connection that share a bottleneck have what
// one BBR would have there: each cruises at a gain of b_r = x_r*x_max/sum(x^2), with
// x the bandwidths, so that together they send at x_max. Equal paths get 1/n each.
// It acts while all subflows of a bottleneck are in ProbeBW. One that is alone at
// its bottleneck, as far as is known, is BBR: coupled, two links that are alike would
// be used by half each. What shares a bottleneck is found as by Detecting, for which
// it takes 21 s.
//
// They probe for bandwidth as one BBR would: one at a time, the one whose last probe
// is the longest ago first, and each probe restarts the clocks of all. Else Reno,
// which the time between probes is made for, would meet n times as many losses.
// While one probes the others cruise at what it leaves of x_max, so that it measures
// what one BBR would measure. And what a round trip with losses delivered is compared
// with what was to be sent in it, not with the whole bandwidth.
//
// After Han et al., "Coupled BBR" (IEEE/ACM ToN 2021), of which only the
// abstract and an implementation for version 1 are known to us; to version 3,
// whose cycle has no fixed number of phases, it is carried over by ourselves, and
// the turns are our own.
type CoupledBBR struct {
	// Phases is L, at least 3, of a cycle in which all but the two phases that probe
	// are cruised: the gain is then (L*b_r-2)/(L-2), by which the mean over the
	// cycle is b_r. 0 means that it is b_r: what a subflow sends beyond that in its
	// own probes it leaves to the others in theirs.
	Phases int
}

// Group is a Factory.
func (c CoupledBBR) Group() Group {
	if c.Phases < 3 {
		c.Phases = 0
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

	heard  time.Duration // Sample.Now of the last ACK
	srtt   time.Duration // at the last ACK
	idle   bool          // the last ACK was of data that was all there was to send
	probed time.Duration // when the last probe ended; 0 = there was none
}

func (c *coupledBBR) OnAck(s *Sample) {
	c.group.observe(&c.watch, s)
	c.heard, c.srtt, c.idle = s.Now, s.SRTT, s.AppLimited
	c.cruise = c.group.cruise(c)
	c.turn = c.group.turn(c)
	up := c.state == bbrUp
	c.bbr.OnAck(s)
	if up && c.state == bbrDown {
		c.probed = s.Now
		c.group.restart(c)
	}
}

// probes reports whether it probes for bandwidth. One of which nothing is heard,
// or that has too little to send, takes no bandwidth from others.
func (c *coupledBBR) probes(now time.Duration) bool {
	return (c.state == bbrRefill || c.state == bbrUp) && !c.idle && now-c.heard <= 2*c.srtt
}

// others calls f with those that share a bottleneck with c.
func (g *bbrGroup) others(c *coupledBBR, f func(*coupledBBR)) {
	for _, w := range g.flows {
		if m := w.c.(*coupledBBR); m != c && w.set == c.watch.set {
			f(m)
		}
	}
}

// turn returns what the others' turns mean to c.
func (g *bbrGroup) turn(c *coupledBBR) (t bbrTurn) {
	g.others(c, func(m *coupledBBR) {
		t.taken = t.taken || m.probes(c.heard)
		if m.probed < c.probed {
			t.late += 2 // enough to see it begin
		}
	})
	return t
}

// restart sets the clocks of the others to the end of the probe of c.
func (g *bbrGroup) restart(c *coupledBBR) {
	g.others(c, func(m *coupledBBR) {
		m.cycle.at, m.cycle.wait, m.cycle.rounds = c.cycle.at, c.cycle.wait, c.cycle.rounds
	})
}

// cruise returns the gain of a subflow. One of 0 means as little as
// keeps the path probed, which the pacing rate's floor gives.
func (g *bbrGroup) cruise(c *coupledBBR) float64 {
	x := c.maxBW()
	most, squares, probe, others, all := x, x*x, 0.0, false, c.coupled()
	g.others(c, func(m *coupledBBR) {
		x := m.maxBW()
		most = max(most, x)
		squares += x * x
		others, all = true, all && m.coupled()
		if m.probes(c.heard) {
			probe = max(probe, x)
		}
	})
	if !others || !all || squares == 0 {
		return 1
	}
	share := x * most / squares
	if probe > 0 && probe*probe < squares {
		// What the probe leaves of most, in proportion to what each has else.
		share *= (1 - probe/most) / (1 - probe*probe/squares)
	}
	if g.phases == 0 {
		return share
	}
	return max((g.phases*share-2)/(g.phases-2), 0)
}

// coupled reports whether the state is one in which subflows are coupled.
func (c *coupledBBR) coupled() bool { return c.state.probesBW() || c.state == bbrInProbeRTT }
