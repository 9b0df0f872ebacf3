package cc

// liaGroup is the Linked Increases algorithm of RFC 6356, which is also the
// "RTT compensator" of Wischik et al. (NSDI 2011) as simulators have it: the
// increase in congestion avoidance is coupled, all else is Reno.
type liaGroup struct {
	view  shared
	alpha float64 // aggressiveness of the connection, equation (2)
}

// lia is the controller of one subflow of a liaGroup.
type lia struct {
	base  *reno
	group *liaGroup
	self  *member
}

func newLIAGroup() Group { return &liaGroup{} }

func (g *liaGroup) Add(p Params) Controller {
	c := &lia{base: newReno(p), group: g}
	c.self = g.view.join(c.base.win.cwnd)
	return c
}

func (g *liaGroup) Remove(c Controller) {
	if l, ok := c.(*lia); ok && l.group == g {
		g.view.leave(l.self)
	}
}

// refresh computes alpha anew if anything it depends on has changed.
//
// RFC 6356, equation (2):
//
//	alpha = cwnd_total * MAX(cwnd_i/rtt_i^2) / (SUM(cwnd_i/rtt_i))^2
//
// Windows in use stand for cwnd_i throughout, since equation (1) divides by
// cwnd_total again and an application-limited subflow would otherwise count
// by a window that it does not use.
func (g *liaGroup) refresh() {
	if !g.view.stale {
		return
	}
	g.view.stale = false
	best, rate := 0.0, 0.0
	for _, m := range g.view.members {
		if m.counts() {
			best = max(best, m.window/(m.rtt*m.rtt))
			rate += m.window / m.rtt
		}
	}
	if rate > 0 {
		g.alpha = g.view.total() * best / (rate * rate)
	}
}

func (c *lia) State() State { return c.base.State() }

// OnAck leaves to Reno what is not coupled: slow start, and a connection with
// one subflow, which thereby is Reno to the last bit.
func (c *lia) OnAck(s *Sample) {
	v, w := &c.group.view, &c.base.win
	w.observe(s)
	v.acked(c.self, s, w.cwnd, w.mss)
	if !grows(s) || w.inSlowStart() || !c.self.counts() || v.active() < 2 {
		c.base.OnAck(s)
	} else {
		c.group.refresh()
		c.avoidLinked(s.Acked)
	}
	v.resize(c.self, s, w.cwnd, w.mss)
}

// avoidLinked is the coupled increase. RFC 6356, equation (1):
//
//	min(alpha * bytes_acked * MSS_i / cwnd_total, bytes_acked * MSS_i / cwnd_i)
//
// The increase "MUST be set to 1" where integers would make it 0; in floating
// point it is never 0.
func (c *lia) avoidLinked(acked int) {
	w := &c.base.win
	grant := min(float64(acked), w.cwnd) * w.mss
	w.cwnd += min(c.group.alpha*grant/c.group.view.total(), grant/w.cwnd)
}

func (c *lia) OnLoss(l Loss, s *Sample) {
	c.base.OnLoss(l, s)
	c.group.view.lost(c.self, c.base.win.cwnd, l == LossTimeout)
}

func (c *lia) Undo() {
	c.base.Undo()
	c.group.view.lost(c.self, c.base.win.cwnd, c.base.win.timedOut)
}
