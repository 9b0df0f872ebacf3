package cc

// newMPTCPDGroup is the controller of MPTCP-D (Zhao, Liu, Wang and Xu,
// "Multipath TCP for datacenters: from energy efficiency perspective", INFOCOM
// 2017).
//
// It is our own reconstruction: only the abstract of the paper is known to us,
// which says that the algorithm minimizes the flow completion time, and gives
// no equation. Here it is MDTCP whose growth leans towards the paths that are
// marked less, at a sum that stays the same; decrease is DCTCP's. On a path
// without ECN growth is LIA's and the share of lost bytes stands for that of
// marked ones.
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
	c := &mptcpdControl{linked: newLinked(mptcpdBase(p), mptcpd{}), group: g}
	c.view = &g.view
	c.watch = g.add(c)
	g.view.members = append(g.view.members, c.self)
	return c
}

func (g *mptcpdGroup) Remove(c Controller) {
	if m, ok := c.(*mptcpdControl); ok && m.group == g {
		g.remove(c)
		g.view.leave(m.self)
	}
}

// mptcpdControl is the controller of one subflow.
type mptcpdControl struct {
	*linked
	group *mptcpdGroup
	watch *watched
}

func (c *mptcpdControl) OnAck(s *Sample) {
	c.group.observe(c.watch, s)
	c.linked.OnAck(s)
}

// mptcpdSingle is DCTCP that knows a share of congestion on every path.
type mptcpdSingle struct {
	dctcp
	losses markShare
	ecn    bool
}

func mptcpdBase(p Params) single {
	c := &mptcpdSingle{dctcp: *newDCTCP(p, DCTCP{}), losses: newMarkShare(0)}
	c.losses.alpha = 0
	return c
}

func (c *mptcpdSingle) note(s *Sample) {
	c.dctcp.note(s)
	c.ecn = s.ECN
	seen := Sample{Round: s.Round, Acked: s.Acked}
	c.losses.marked += float64(s.Lost)
	c.losses.acked += float64(s.Lost)
	c.losses.observe(&seen)
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
	if !m.ecn {
		return lia{}.gain(v, m)
	}
	mean := v.sum(func(m *member) float64 { return m.window * m.share }) / v.total()
	lean := min(max(1+mean-m.share, 1-mptcpdLean), 1+mptcpdLean)
	return m.mss * min(lean/v.normal(), 1/m.window)
}
