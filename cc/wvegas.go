package cc

import "slices"

// WVegas is weighted Vegas of Cao, Xu and Fu, "Delay-based congestion control
// for multipath TCP" (ICNP 2012), also draft-xu-mptcp-congestion-control: all
// subflows together keep a number of segments queued, each in proportion to
// its rate, so that traffic moves to the paths with the shorter queues. Alone,
// a subflow is Vegas with Drain and all of the segments.
type WVegas struct {
	// Total is how many segments all subflows keep queued; 0 means 10.
	Total float64
}

// wvegasLeast is how many segments a subflow may queue whatever its weight.
const wvegasLeast = 2

// Group is a Factory.
func (w WVegas) Group() Group {
	if w.Total <= 0 {
		w.Total = 10
	}
	return &wvegasGroup{total: w.Total}
}

type wvegasGroup struct {
	members []*wvegas
	total   float64
}

func (g *wvegasGroup) Add(p Params) Controller {
	c := &wvegas{group: g}
	c.vegas = *newVegas(p, Vegas{Alpha: g.total, Beta: g.total, Drain: true}.withDefaults())
	c.reweigh = c.weigh
	g.members = append(g.members, c)
	return c
}

func (g *wvegasGroup) Remove(c Controller) {
	g.members = slices.DeleteFunc(g.members, func(o *wvegas) bool { return o == c })
}

// wvegas is the controller of one subflow.
type wvegas struct {
	vegas
	group *wvegasGroup
	rate  float64 // segments/s at the end of the last full round trip; 0 = none
}

// weigh returns this subflow's part of what all may queue.
func (c *wvegas) weigh(w, rtt float64) float64 {
	c.rate = w / rtt
	all := 0.0
	for _, o := range c.group.members {
		if !o.win.timedOut {
			all += o.rate
		}
	}
	return max(c.rate/all*c.group.total, wvegasLeast)
}
