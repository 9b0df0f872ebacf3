package cc

import "slices"

// newMPTCPDGroup is the controller of MPTCP-D (Zhao, Liu, Wang and Xu,
// "Multipath TCP for datacenters: from energy efficiency perspective", INFOCOM
// 2017).
//
// It is our own reconstruction: only the abstract of the paper is known to us,
// which says that the algorithm minimizes the flow completion time, and gives
// no equation. Here it is MDTCP whose growth leans towards the paths that are
// marked less, at a sum that stays the same; decrease is DCTCP's. On a path
// without ECN growth is LIA's and the share of lost bytes stands for that of
// marked ones. Growth is LIA's, too, from a loss to the next mark: the queue drops
// what it should mark, and MDTCP's growth is too much for losses.
//
// The group also finds out which subflows share a bottleneck, for the path
// manager of the same name, which closes all but one of them.
func newMPTCPDGroup() Group { return &mptcpdGroup{} }

type mptcpdGroup struct {
	detector
	view shared
}

func (g *mptcpdGroup) ECN() ECN { return ECNExact }

func (g *mptcpdGroup) Add(p Params) Controller {
	base := newMPTCPDSingle(p)
	c := &mptcpdControl{linked: newLinked(base, mptcpd{}), group: g, places: &base.places}
	c.view = &g.view
	g.add(c, &c.watch)
	g.view.members = append(g.view.members, c.self)
	return c
}

func (g *mptcpdGroup) Remove(c Controller) {
	if m, ok := c.(*mptcpdControl); ok && m.group == g {
		if m.debt != nil {
			m.debt.flight = 0 // the heir need not wait for it
		}
		g.remove(c)
		g.view.leave(m.self)
	}
}

// mptcpdControl is the controller of one subflow.
type mptcpdControl struct {
	*linked
	group   *mptcpdGroup
	watch   watched
	places  *places
	debt    *debt   // nil = nothing is left to an heir
	debtors []*debt // whose heir this is
}

// debt is what a subflow leaves to its heir as its data in flight is
// acknowledged.
type debt struct {
	flight float64 // bytes that are not acknowledged yet
	paid   float64 // bytes of window for the heir to take
}

// Bequeath implements Heir. What the data in flight needs follows with its ACKs,
// by which the window shrinks and grows as before. The heir gets the last segment,
// too; that it is kept as well is for a backup, which sends nothing meanwhile.
func (c *mptcpdControl) Bequeath(inFlight int) Estate {
	w := c.base.core()
	e := Estate{Places: c.places.n, Slow: c.places.slow, debtors: c.debtors}
	e.Window = w.beyond(inFlight)
	c.places.n, c.debtors = 1, nil
	c.places.slow = min(c.places.slow, 1)
	c.self.window = min(c.self.window, w.cwnd)
	if inFlight > 0 {
		c.debt = &debt{flight: float64(inFlight)}
		e.debtors = append(e.debtors, c.debt)
	} else {
		e.Window += w.mss
	}
	return e
}

// beyond takes from the window what is beyond a segment and the bytes in flight.
func (w *window) beyond(inFlight int) float64 {
	rest := max(w.cwnd-max(float64(inFlight), w.mss), 0)
	w.cwnd -= rest
	return rest
}

// Inherit implements Heir.
func (c *mptcpdControl) Inherit(e Estate) {
	c.base.core().cwnd += e.Window
	c.places.n += e.Places
	c.places.slow += e.Slow
	c.debtors = append(c.debtors, e.debtors...)
}

func (c *mptcpdControl) OnAck(s *Sample) {
	c.group.observe(&c.watch, s)
	c.collect()
	c.linked.OnAck(s)
	c.pay(s)
}

// collect takes what debtors have paid.
func (c *mptcpdControl) collect() {
	for _, d := range c.debtors {
		c.base.core().cwnd += d.paid
		d.paid = 0
	}
	c.debtors = slices.DeleteFunc(c.debtors, func(d *debt) bool { return d.flight <= 0 })
}

// pay leaves to the heir what an ACK freed.
func (c *mptcpdControl) pay(s *Sample) {
	if c.debt == nil {
		return
	}
	c.debt.paid += c.base.core().beyond(s.InFlight)
	c.debt.flight -= float64(s.Delivered)
	if c.debt.flight <= 0 || s.InFlight == 0 {
		c.debt.paid += c.base.core().mss
		c.debt.flight = 0
		c.debt = nil
	}
}

// mptcpdSingle is DCTCP that knows a share of congestion on every path.
type mptcpdSingle struct {
	dctcp
	losses markShare
	ecn    bool
	places places
}

// places are the subflows in whose place one is used. A mark strikes one of
// them, and each but once in a round trip.
type places struct {
	n      int
	slow   int // of n, in slow start
	struck int
	round  uint64
}

func newMPTCPDSingle(p Params) *mptcpdSingle {
	c := &mptcpdSingle{dctcp: *newDCTCP(p, DCTCP{}), losses: newMarkShare(0), places: places{n: 1, slow: 1}}
	c.losses.alpha = 0
	return c
}

func (c *mptcpdSingle) note(s *Sample) {
	c.dctcp.note(s)
	c.ecn = s.ECN
	c.strike(s)
	seen := Sample{Round: s.Round, Acked: s.Acked}
	c.losses.marked += float64(s.Lost)
	c.losses.acked += float64(s.Lost)
	c.losses.observe(&seen)
}

// keep leaves the share of a window that a mark on one of the places leaves.
func (c *mptcpdSingle) keep(l Loss) float64 {
	all := c.dctcp.keep(l)
	if l != LossECN {
		return all
	}
	return 1 - (1-all)/float64(c.places.n)
}

func (c *mptcpdSingle) cut(l Loss, s *Sample, keep float64) {
	if l != LossECN {
		c.places.slow = 0 // or all of them, after a timeout
		c.dctcp.cut(l, s, keep)
		return
	}
	// The OnAck of the same ACK makes it one.
	c.places.struck, c.places.round = 0, s.Round
	c.win.floors.mark = float64(leastMarked * c.places.n)
	threshold := c.win.ssthresh
	c.dctcp.cut(l, s, keep)
	c.endSlowStart(threshold)
}

// strike counts the marks of a round trip, of which the first one was a signal.
func (c *mptcpdSingle) strike(s *Sample) {
	p := &c.places
	if s.Marked == 0 || p.n == 1 || s.Round != p.round {
		return
	}
	if p.struck++; p.struck > 1 && p.struck <= p.n {
		threshold := c.win.ssthresh
		c.win.reduce(LossECN, c.win.cwnd*c.keep(LossECN))
		c.endSlowStart(threshold)
	}
}

// endSlowStart ends it for one of the places; threshold is that of the others.
func (c *mptcpdSingle) endSlowStart(threshold float64) {
	if c.places.slow--; c.places.slow > 0 {
		c.win.ssthresh = threshold
	} else {
		c.places.slow = 0
	}
}

func (c *mptcpdSingle) grow(s *Sample) {
	if !c.win.inSlowStart() || c.places.slow == 0 || c.places.slow == c.places.n {
		c.dctcp.grow(s)
	} else if grows(s) {
		c.win.slowStart(s.Acked * c.places.slow / c.places.n)
	}
}

func (c *mptcpdSingle) share() float64 {
	if c.ecn {
		return c.marks.alpha
	}
	return c.losses.alpha
}

type mptcpd struct{ cutAlone }

// mptcpdLean bounds by how much a path's growth may differ from MDTCP's.
const mptcpdLean = 0.5

func (mptcpd) gain(v *shared, m *member) float64 {
	if !m.ecn || m.drops {
		return lia{}.gain(v, m)
	}
	mean := v.sum(func(m *member) float64 { return m.window * m.share }) / v.total()
	lean := min(max(1+mean-m.share, 1-mptcpdLean), 1+mptcpdLean)
	return m.mss * min(lean/v.normal(), 1/m.window)
}
