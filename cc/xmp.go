package cc

// XMP is the explicit multipath control of Cao et al., "Explicit multipath
// congestion control for data center networks" (CoNEXT 2013): of BOS, which
// keeps a queue that marks at a low threshold short, and TraSh, which couples
// the growth of BOS's windows.
//
// Deviation: the paper packs the number of marks into two bits of the header;
// a round trip with a mark and one without is all that BOS needs to tell apart,
// which the echo of RFC 8257 does.
//
// Deviation: from a loss to the next mark growth is LIA's, as TraSh's is too much
// where subflows that share a queue are not struck together: see newMDTCPGroup.
type XMP struct {
	// Beta is the reciprocal of the share of the window that a mark takes;
	// 0 means 4. The queue should mark from a BDP/(Beta-1) on.
	Beta float64
}

// Group is a Factory.
func (x XMP) Group() Group {
	if x.Beta <= 1 {
		x.Beta = 4
	}
	return &xmpGroup{beta: x.Beta}
}

type xmpGroup struct {
	view shared
	beta float64
}

func (g *xmpGroup) ECN() ECN { return ECNExact }

func (g *xmpGroup) Add(p Params) Controller {
	c := &xmp{bos: newBOS(p, g.beta), group: g}
	c.self = newMember(&c.win)
	g.view.members = append(g.view.members, c.self)
	return c
}

func (g *xmpGroup) Remove(c Controller) {
	if x, ok := c.(*xmp); ok && x.group == g {
		g.view.leave(x.self)
	}
}

// xmp is the controller of one subflow.
type xmp struct {
	bos
	group *xmpGroup
	self  *member
}

func (c *xmp) OnAck(s *Sample) {
	c.win.observe(s)
	c.self.acked(s, &c.win)
	c.delta = 1
	switch v := &c.group.view; {
	case !v.coupled(c.self):
	case c.self.drops:
		c.delta = c.self.window / c.self.mss * lia{}.gain(v, c.self)
	default:
		// TraSh: T_r*x_r / (T_min * sum of x).
		c.delta = c.self.window / v.normal()
	}
	c.bos.OnAck(s)
	c.self.resize(s, &c.win)
}

func (c *xmp) OnLoss(l Loss, s *Sample) {
	c.bos.OnLoss(l, s)
	c.self.lost(l, &c.win)
}

func (c *xmp) Undo() {
	c.bos.Undo()
	c.self.restored(&c.win)
}

// bos is buffer occupancy suppression: a round trip with a mark takes 1/beta
// of the window, one without adds delta segments.
type bos struct {
	reno
	beta   float64
	delta  float64 // segments; 1 for a subflow alone
	round  uint64
	marked bool // in this round trip
	full   bool // the window was in full use in it
}

func newBOS(p Params, beta float64) bos {
	b := bos{reno: reno{win: newWindow(p)}, beta: beta, delta: 1}
	b.win.floors.mark = 2
	return b
}

func (b *bos) OnAck(s *Sample) {
	b.note(s)
	if grows(s) && b.win.inSlowStart() {
		b.win.slowStart(s.Acked)
	}
	if s.Round != b.round {
		if b.full && !b.marked && !b.win.inSlowStart() {
			b.win.cwnd += b.delta * b.win.mss
		}
		b.round, b.marked, b.full = s.Round, false, false
	}
	b.marked = b.marked || s.Marked > 0 || s.InRecovery
	b.full = b.full || grows(s)
}

// OnLoss cuts by the first mark of a window; for losses it is Reno.
func (b *bos) OnLoss(l Loss, s *Sample) {
	switch {
	case l != LossECN:
		b.reno.OnLoss(l, s)
	case b.begins(l, s):
		b.win.reduce(l, b.win.cwnd-max(b.win.cwnd/b.beta, b.win.mss))
	}
}
