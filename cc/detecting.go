package cc

// Detecting is the control called "default". A subflow that is alone at its
// bottleneck is CUBIC. Subflows that were found to share one grow together by
// LIA and halve as Reno does, so that they take no more than one TCP would
// there. What shares a bottleneck is found by RFC 8382, which takes 21 s until
// its first verdict, and by the marks of a queue that has some within 32 round
// trips.
//
// Until the first verdict subflows are treated as alone. Measured over 5 seeds
// (experiment "cc"): in one queue with a TCP, two subflows that are alone take 2.8
// (2.6 to 3.1) times its rate and coupled ones 1.0 (0.9 to 1.1); on two links of
// their own with 0.1 % loss they reach 0.23 (0.21 to 0.25) of the sum, and coupled
// ones 0.12 (0.11 to 0.14). Half the rate on separate links, which are why there
// are several subflows, weighs more than 21 s of a larger share.
//
// The idea of coupling only what shares a bottleneck is that of MPTCP-SBD
// (Ferlin et al., IFIP Networking 2016).
type Detecting struct {
	// TogetherAtFirst couples all subflows until there is a verdict on them;
	// otherwise they begin as alone.
	TogetherAtFirst bool
}

// Group is a Factory.
func (d Detecting) Group() Group { return &detectingGroup{together: d.TogetherAtFirst} }

type detectingGroup struct {
	detector
	together bool
}

// detecting is the controller of one subflow, in one piece of memory.
type detecting struct {
	linked
	group *detectingGroup
	set   int32 // the label by which it was placed; -1 = it was not

	signals int32 // that loss gave
	deep    int32 // how many of them, after the first, are to leave half the window

	watch  watched
	cubic  cubic
	member member
}

func (g *detectingGroup) Add(p Params) Controller {
	c := &detecting{group: g, set: -1, deep: int32(len(g.flows)), cubic: makeCubic(p)}
	c.member = makeMember(&c.cubic.win)
	c.linked = linked{base: &c.cubic, rule: halving{}, self: &c.member}
	g.add(c, &c.watch)
	g.place()
	return c
}

func (g *detectingGroup) Remove(c Controller) {
	g.remove(c)
	for _, w := range g.flows {
		w.c.(*detecting).set = -1
	}
	g.place()
}

func (c *detecting) OnAck(s *Sample) {
	if c.group.observe(&c.watch, s) {
		c.group.place()
	}
	c.linked.OnAck(s)
}

// OnLoss keeps subflows out of step. On links that are alike those that are alone
// there would fill their queues at the same times, which makes two links look like
// one, and lose together. So the second one halves its window once where CUBIC
// leaves 0.7, the third one twice, and so on: it takes a fifth of CUBIC's period
// longer to come back, cbrt(0.5/0.3) - 1, and is that much behind from then on.
func (c *detecting) OnLoss(l Loss, s *Sample) {
	if l == LossFast {
		c.signals++
	}
	if l != LossFast || c.signals == 1 || c.signals > 1+c.deep || c.view.coupled(c.self) {
		c.linked.OnLoss(l, s)
		return
	}
	c.base.cut(l, s, 0.5)
	c.self.lost(l, c.base.core())
}

// place shows each controller those that it is to be coupled with, if those
// are others than before.
func (g *detectingGroup) place() {
	labels := g.label(func(p *pairing) bool { return p.shared() || g.together && !p.judged() })
	same := true
	for i, w := range g.flows {
		same = same && int(w.c.(*detecting).set) == labels[i]
	}
	if same {
		return
	}
	views := make([]shared, len(g.flows))
	for i, w := range g.flows {
		c, v := w.c.(*detecting), &views[labels[i]]
		v.members = append(v.members, c.self)
		c.view, c.set = v, int32(labels[i])
	}
}

// halving is LIA for bases that do not halve on their own.
type halving struct{ lia }

func (halving) keep(*shared, *member, Loss, float64) float64 { return 0.5 }
