package cc

// single is a single-path controller that a coupled group can build on: OnAck
// and OnLoss are made of parts, so that a group may replace one.
type single interface {
	Controller
	core() *window
	note(s *Sample)                      // the part of OnAck beside growth
	grow(s *Sample)                      // the other part: growth as if alone
	keep(l Loss) float64                 // the share of the window that a signal leaves if alone
	cut(l Loss, s *Sample, keep float64) // the part of OnLoss that follows
}

// rule is what one coupled algorithm differs from another by.
type rule interface {
	// gain returns by how many bytes a member's window grows for each byte
	// acknowledged on it. Reno's is MSS/cwnd.
	gain(v *shared, m *member) float64
	// keep returns the share of the window that a signal leaves, given what it
	// is for a subflow alone.
	keep(v *shared, m *member, l Loss, alone float64) float64
}

// cutAlone is the part of rules that couple the increase only.
type cutAlone struct{}

func (cutAlone) keep(_ *shared, _ *member, _ Loss, alone float64) float64 { return alone }

// floored is a rule with least windows of its own.
type floored interface {
	// floors returns the least that a mark and a loss leave.
	floors(v *shared) floors
}

// linkedGroup is the group of an algorithm that couples congestion avoidance
// by a rule. Slow start is never coupled.
type linkedGroup struct {
	view shared
	rule rule
	base func(p Params) single
}

// linked is the controller of one subflow of a linkedGroup.
type linked struct {
	base  single
	rule  rule
	group *linkedGroup // nil if it is of another kind
	view  *shared      // of those that it is coupled with
	self  *member
}

// renoBase makes the base of algorithms for paths without marks.
func renoBase(p Params) single { return newReno(p) }

// dctcpBase makes the base of algorithms for paths with them.
func dctcpBase(p Params) single { return newDCTCP(p, DCTCP{}) }

// Add implements Group.
func (g *linkedGroup) Add(p Params) Controller {
	c := newLinked(g.base(p), g.rule)
	c.group, c.view = g, &g.view
	g.view.members = append(g.view.members, c.self)
	return c
}

// Remove implements Group.
func (g *linkedGroup) Remove(c Controller) {
	if l, ok := c.(*linked); ok && l.group == g {
		g.view.leave(l.self)
	}
}

func newLinked(base single, r rule) *linked {
	return &linked{base: base, rule: r, self: newMember(base.core())}
}

func (c *linked) State() State { return c.base.State() }

// OnAck leaves to the base what is not coupled: slow start, and a connection
// with one subflow, which thereby is the base to the last bit.
func (c *linked) OnAck(s *Sample) {
	v, w := c.view, c.base.core()
	c.base.note(s)
	c.self.acked(s, w)
	if m, ok := c.base.(interface{ share() float64 }); ok {
		c.self.share = m.share()
	}
	if !grows(s) || w.inSlowStart() || !v.coupled(c.self) {
		c.base.grow(s)
	} else {
		w.cwnd += min(float64(s.Acked), w.cwnd) * c.rule.gain(v, c.self)
		w.cwnd = max(w.cwnd, w.mss)
		if d, ok := c.base.(interface{ grownByOthers() }); ok {
			d.grownByOthers()
		}
	}
	c.self.resize(s, w)
}

func (c *linked) OnLoss(l Loss, s *Sample) {
	w, keep := c.base.core(), c.base.keep(l)
	if c.view.coupled(c.self) {
		keep = c.rule.keep(c.view, c.self, l, keep)
		if f, ok := c.rule.(floored); ok {
			alone := w.floors
			w.floors = f.floors(c.view)
			defer func() { w.floors = alone }()
		}
	}
	c.base.cut(l, s, keep)
	c.self.lost(l, w)
}

func (c *linked) Undo() {
	c.base.Undo()
	c.self.restored(c.base.core())
}
