package cc

// DCTCP is Data Center TCP (RFC 8257): Reno whose window shrinks in
// proportion to the share of bytes that were marked. Where nothing is marked,
// as on a path without ECN, it is Reno.
//
// It must not meet Reno or CUBIC in one queue that marks at a low threshold:
// they halve at each mark and starve.
type DCTCP struct {
	// G is the gain of the estimate, 0 to 1; 0 means 1/16 (RFC 8257,
	// Section 4.2).
	G float64
}

// Group is a Factory.
func (d DCTCP) Group() Group {
	return exact{uncoupled(func(p Params) Controller { return newDCTCP(p, d) })}
}

// exact is a group that wants exact ECN.
type exact struct{ Group }

func (exact) ECN() ECN { return ECNExact }

// dctcp is the controller of one subflow.
type dctcp struct {
	reno
	marks markShare
}

// leastMarked is how many segments marks leave: with one in flight their share
// is 0 or 1.
const leastMarked = 2

func newDCTCP(p Params, d DCTCP) *dctcp {
	c := &dctcp{reno: reno{win: newWindow(p)}, marks: newMarkShare(d.G)}
	c.win.floors.mark = leastMarked
	return c
}

func (c *dctcp) OnAck(s *Sample) {
	c.note(s)
	c.grow(s)
}

func (c *dctcp) note(s *Sample) {
	c.reno.note(s)
	c.marks.observe(s)
}

func (c *dctcp) OnLoss(l Loss, s *Sample) { c.cut(l, s, c.keep(l)) }

// keep is Reno's for losses. RFC 8257, Section 3.5: "A DCTCP sender MUST react
// to loss episodes in the same way as conventional TCP".
func (c *dctcp) keep(l Loss) float64 {
	if l == LossECN {
		return 1 - c.marks.alpha/2
	}
	return c.reno.keep(l)
}

// cut takes from the window, not from FlightSize, upon a mark. RFC 8257,
// Section 3.3: "cwnd = cwnd * (1 - DCTCP.Alpha / 2)".
func (c *dctcp) cut(l Loss, s *Sample, keep float64) {
	switch {
	case l != LossECN:
		c.reno.cut(l, s, keep)
	case c.begins(l, s):
		c.win.reduce(l, c.win.cwnd*keep)
	}
}

// share returns the estimate of the marked share.
func (c *dctcp) share() float64 { return c.marks.alpha }

// markShare estimates the share of bytes that met congestion, DCTCP.Alpha.
type markShare struct {
	g      float64
	alpha  float64 // 0 to 1
	acked  float64 // bytes of this round trip
	marked float64 // of acked
	round  uint64
}

// newMarkShare begins with an estimate of 1, as RFC 8257, Section 3.3, says, so
// that the first mark halves the window.
func newMarkShare(g float64) markShare {
	if g <= 0 || g > 1 {
		g = 1. / 16
	}
	return markShare{g: g, alpha: 1}
}

// observe counts an ACK. RFC 8257, Section 3.3: SACK is ignored, and the
// estimate is updated when the window that was in flight has been
// acknowledged: "DCTCP.Alpha = DCTCP.Alpha * (1 - g) + g * M".
func (m *markShare) observe(s *Sample) {
	m.acked += float64(s.Acked)
	if s.Marked > 0 {
		m.marked += float64(s.Acked)
	}
	if s.Round == m.round {
		return
	}
	m.round = s.Round
	if m.acked > 0 {
		m.alpha = m.alpha*(1-m.g) + m.g*m.marked/m.acked
		m.acked, m.marked = 0, 0
	}
}
