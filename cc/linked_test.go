package cc_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// path is one subflow of a coupled group: window in segments, RTT in seconds.
type path struct{ w, rtt float64 }

// sample is an ACK on the path that acknowledges so many bytes.
func (p path) sample(bytes int) *cc.Sample {
	s := ack(bytes)
	s.SRTT = time.Duration(p.rtt * float64(time.Second))
	s.RTT, s.ECN = s.SRTT, true
	s.InFlight = int(p.w * mss)
	return s
}

// coupled makes a group with a subflow in congestion avoidance for each path,
// all of whose RTTs are known.
func coupled(t testing.TB, name string, paths []path) []cc.Controller {
	t.Helper()
	g := group(t, name)
	cs := make([]cc.Controller, len(paths))
	for i, p := range paths {
		cs[i] = g.Add(avoiding(p.w))
		cs[i].OnAck(p.sample(0))
	}
	return cs
}

// grown returns by how many segments each window grows upon an ACK of one.
func grown(t testing.TB, name string, paths []path, prepare func([]cc.Controller)) []float64 {
	t.Helper()
	out := make([]float64, len(paths))
	for i := range paths {
		cs := coupled(t, name, paths)
		if prepare != nil {
			prepare(cs)
		}
		before := segments(cs[i])
		cs[i].OnAck(paths[i].sample(mss))
		out[i] = segments(cs[i]) - before
	}
	return out
}

// The increases that the papers' formulas give by hand, for an ACK of one
// segment on each path in turn.
func TestCoupledIncrease(t *testing.T) {
	two := []path{{10, .1}, {20, .1}}
	tests := []struct {
		name  string
		paths []path
		want  []float64
	}{
		{"lia-exact", []path{{4, .05}, {16, .1}, {9, .03}}, []float64{1. / 36, 1. / 36, 1e4 / 540 / 540}},
		{"lia-exact", two, []float64{20. / 900, 20. / 900}},
		{"ewtcp", []path{{10, .1}, {10, .1}}, []float64{.025, .025}},
		{"coupled", []path{{4, .1}, {16, .02}}, []float64{.05, .05}},
		{"semicoupled", []path{{4, .1}, {16, .02}}, []float64{.025, .025}}, // 1/n of 1/w_total
		{"balia", two, []float64{.02, 20. / 900}},
		{"mdtcp", []path{{10, .0002}, {30, .0002}}, []float64{.025, .025}},
		// sum w*Tmin/T = 10 + 30/2; the second is capped by its own window.
		{"mdtcp", []path{{10, .1}, {30, .2}}, []float64{.04, 1. / 30}},
		{"lia-dctcp", []path{{10, .1}, {20, .2}}, []float64{.025, .025}},
		{"mptcpd", []path{{10, .0002}, {30, .0002}}, []float64{.025, .025}}, // equal shares: MDTCP
	}
	for _, tt := range tests {
		for i, got := range grown(t, tt.name, tt.paths, nil) {
			near(t, tt.want[i], got, tt.name)
		}
	}
	for i, got := range grown(t, "olia", two, func(cs []cc.Controller) {
		// The first path is the best: it alone has bytes between losses.
		s := two[0].sample(mss)
		s.CwndLimited = false
		s.InFlight = 10 * mss
		cs[0].OnAck(s)
	}) {
		if i == 0 {
			near(t, 10./900+.05, got, "olia, best path")
		} else {
			near(t, 20./900-.025, got, "olia, largest window")
		}
	}
}

// The equations of XMP: after a round trip without a mark, by 10/40 and 30/40
// of a segment.
func TestXMP(t *testing.T) {
	paths := []path{{10, .0002}, {30, .0002}}
	for i, want := range []float64{.25, .75} {
		cs := coupled(t, "xmp", paths)
		cs[i].OnAck(paths[i].sample(mss))
		require.Equal(t, paths[i].w, segments(cs[i]), "within the round trip")
		s := paths[i].sample(mss)
		s.Round = 1
		cs[i].OnAck(s)
		near(t, want, segments(cs[i])-paths[i].w, "at its end")

		s.Round, s.Marked = 2, mss
		cs[i].OnAck(s)
		before := segments(cs[i])
		s.Round, s.Marked = 3, 0
		cs[i].OnAck(s)
		require.Equal(t, before, segments(cs[i]), "not after a round trip with a mark")
	}

	c := group(t, "xmp").Add(avoiding(20))
	c.OnLoss(cc.LossECN, flight(20))
	require.Equal(t, 15.0, segments(c))
	for range 20 {
		c.OnLoss(cc.LossECN, flight(20))
	}
	require.Equal(t, 2.0, segments(c), "two segments at least")
	c = group(t, "xmp").Add(cc.Params{MSS: mss, InitialWindow: 10 * mss})
	c.OnAck(ack(mss))
	require.Equal(t, 11.0, segments(c), "slow start")
	c.OnLoss(cc.LossECN, flight(11))
	require.Equal(t, threshold(c), segments(c), "the first mark ends it")
}

// What a loss leaves where that is coupled, too.
func TestCoupledDecrease(t *testing.T) {
	tests := []struct {
		name  string
		paths []path
		want  []float64
	}{
		{"coupled", []path{{4, .1}, {16, .1}}, []float64{1, 6}},
		{"balia", []path{{10, .1}, {20, .1}}, []float64{2.5, 10}},
		{"balia", []path{{10, .1}, {12, .1}}, []float64{4, 6}}, // a = 1.2
		{"olia", []path{{10, .1}, {20, .1}}, []float64{5, 10}},
		{"lia-exact", []path{{10, .1}, {20, .1}}, []float64{5, 10}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			cs := coupled(t, tt.name, tt.paths)
			cs[i].OnLoss(cc.LossFast, flight(tt.paths[i].w))
			near(t, want, segments(cs[i]), tt.name)
		}
	}
}

// A window of COUPLED that fell to one segment stays in congestion avoidance.
func TestCoupledStaysSmall(t *testing.T) {
	paths := []path{{4, .1}, {16, .1}}
	cs := coupled(t, "coupled", paths)
	cs[0].OnLoss(cc.LossFast, flight(4))
	cs[0].OnAck(path{1, .1}.sample(mss))
	near(t, 1+1./17, segments(cs[0]), "by 1/w_total")
}

// The aggressiveness of SEMICOUPLED is a parameter.
func TestSemiCoupledA(t *testing.T) {
	g := cc.SemiCoupled{A: 1}.Group()
	paths := []path{{4, .1}, {16, .1}}
	cs := []cc.Controller{g.Add(avoiding(4)), g.Add(avoiding(16))}
	for i, c := range cs {
		c.OnAck(paths[i].sample(0))
	}
	cs[0].OnAck(paths[0].sample(mss))
	near(t, 4.05, segments(cs[0]), "1/w_total")
}

// Section 2.3 of Wischik et al. (NSDI 2011) takes the least over all sets of
// subflows; searching prefixes of an order must find the same.
func TestLIAExactIsLeastOfAllSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		paths := make([]path, 2+rng.IntN(4))
		for i := range paths {
			paths[i] = path{1 + 100*rng.Float64(), .001 * float64(1+rng.IntN(300))}
		}
		got := grown(t, "lia-exact", paths, nil)
		for r := range paths {
			least := 1 / paths[r].w
			for set := range 1 << len(paths) {
				if set>>r&1 == 0 {
					continue
				}
				best, rate := 0.0, 0.0
				for i, p := range paths {
					if set>>i&1 == 1 {
						best = max(best, p.w/p.rtt/p.rtt)
						rate += p.w / p.rtt
					}
				}
				least = min(least, best/rate/rate)
			}
			near(t, least, got[r], "brute force")
		}
	}
}

// linked are the coupled algorithms with the base that each is when alone.
var linked = map[string]cc.Factory{
	"lia": named("reno"), "lia-exact": named("reno"), "olia": named("reno"), "balia": named("reno"),
	"ewtcp": named("reno"), "coupled": named("reno"), "semicoupled": named("reno"),
	"mdtcp": named("dctcp"), "lia-dctcp": named("dctcp"), "mptcpd": named("dctcp"),
	"wvegas":      cc.Vegas{Alpha: 10, Beta: 10, Drain: true}.Group,
	"coupled-bbr": named("bbr"), "default": named("cubic"),
}

func named(name string) cc.Factory {
	f, err := cc.ByName(name)
	if err != nil {
		panic(err)
	}
	return f
}

// A group in which one subflow counts is its single-path base bit for bit:
// alone, beside a subflow that never gave an RTT, and after the other was
// removed.
func TestGroupOfOneIsItsBase(t *testing.T) {
	setups := map[string]func(g cc.Group) cc.Controller{
		"alone": func(g cc.Group) cc.Controller { return g.Add(cc.Params{MSS: mss}) },
		"beside one without rtt": func(g cc.Group) cc.Controller {
			c := g.Add(cc.Params{MSS: mss})
			g.Add(avoiding(50))
			return c
		},
		"after removal": func(g cc.Group) cc.Controller {
			c, other := g.Add(cc.Params{MSS: mss}), g.Add(avoiding(50))
			other.OnAck(path{50, .1}.sample(0))
			g.Remove(other)
			return c
		},
	}
	for name, base := range linked {
		for why, setup := range setups {
			for seed := range uint64(10) {
				c, alone := setup(group(t, name)), base().Add(cc.Params{MSS: mss})
				left, right := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 2))
				now := time.Second
				for range 1000 {
					now += 7 * time.Millisecond
					random(left, now, c)
					random(right, now, alone)
					if alone.State() != c.State() {
						require.Equal(t, alone.State(), c.State(), "%s %s, seed %d", name, why, seed)
					}
				}
			}
		}
	}
}

// XMP alone is BOS: one segment a round trip without marks.
func TestXMPAloneIsBOS(t *testing.T) {
	for _, other := range []bool{false, true} {
		g := group(t, "xmp")
		c := g.Add(avoiding(10))
		if other {
			o := g.Add(avoiding(50))
			o.OnAck(path{50, .1}.sample(0))
			g.Remove(o)
		}
		for round := range uint64(5) {
			s := path{10, .1}.sample(mss)
			s.Round = round
			c.OnAck(s)
			require.Equal(t, 10+float64(round), segments(c))
		}
	}
}

// Together the subflows of one queue are no more aggressive than one TCP: at
// equal RTTs the windows grow by one segment a round trip at most. BALIA is
// known to exceed that by a tenth of a segment for each further subflow.
func TestCoupledGrowsNoMoreThanReno(t *testing.T) {
	for _, name := range []string{
		"lia", "lia-exact", "olia", "balia", "ewtcp", "coupled", "semicoupled", "mdtcp", "lia-dctcp", "mptcpd", "xmp",
	} {
		rng := rand.New(rand.NewPCG(1, 3))
		for range 500 {
			paths := make([]path, 1+rng.IntN(6))
			for i := range paths {
				paths[i] = path{float64(1 + rng.IntN(100)), .05}
			}
			acked := rng.Perm(len(paths)) // some history, for OLIA
			growth := 0.0
			for i, p := range paths {
				cs := coupled(t, name, paths)
				for j, c := range cs {
					s := paths[j].sample(0)
					s.Acked, s.CwndLimited = 1000*mss*acked[j], false
					s.InFlight = int(paths[j].w * mss)
					c.OnAck(s)
				}
				s := p.sample(int(p.w*mss) + 1)
				cs[i].OnAck(s)
				if name == "xmp" {
					s.Round = 1
					cs[i].OnAck(s)
				}
				growth += segments(cs[i]) - p.w
			}
			most := 1.0
			if name == "balia" {
				most += .1 * float64(len(paths)-1)
			}
			require.LessOrEqual(t, growth, most+1e-9, "%s %v", name, paths)
		}
	}
}

// BALIA's sums as computed by hand.
func TestBALIASums(t *testing.T) {
	for _, tt := range []struct {
		a, b, want float64
	}{{10, 20, .6444444444444}, {10, 10, .5}, {1, 100, 1.0832663464366}} {
		paths := []path{{tt.a, .1}, {tt.b, .1}}
		got := grown(t, "balia", paths, nil)
		near(t, tt.want, got[0]*tt.a+got[1]*tt.b, "a round trip")
	}
}

// Over all subflows OLIA moves windows only: the second terms cancel out.
func TestOLIAShiftsAddUpToNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 500 {
		paths := make([]path, 2+rng.IntN(5))
		acked := rng.Perm(len(paths))
		for i := range paths {
			paths[i] = path{float64(2 + rng.IntN(8)), .01 * float64(1+rng.IntN(4))}
		}
		rate := 0.0
		for _, p := range paths {
			rate += p.w / p.rtt
		}
		sum := 0.0
		for i, got := range grown(t, "olia", paths, func(cs []cc.Controller) {
			for j, c := range cs {
				s := paths[j].sample(1e7 + 3.7e6*acked[j])
				s.CwndLimited, s.InFlight = false, int(paths[j].w*mss)
				c.OnAck(s)
			}
		}) {
			p := paths[i]
			sum += (got - p.w/p.rtt/p.rtt/rate/rate) * p.w
		}
		require.InDelta(t, 0, sum, 1e-9, "%v %v", paths, acked)
	}
}

// mptcpd leans towards the path that is marked less: with shares of
// .5 and .1 at windows of 10 and 30 the mean is .2, growth .175 and .825 of a
// segment a round trip.
func TestMPTCPDLeans(t *testing.T) {
	paths := []path{{10, .0002}, {30, .0002}}
	shares := []float64{.5, .1}
	cs := coupled(t, "mptcpd", paths)
	for i, c := range cs {
		settle(c, paths[i], shares[i])
	}
	sum := 0.0
	for i, want := range []float64{.175, .825} {
		before := segments(cs[i])
		s := paths[i].sample(mss)
		s.Round = 1 << 20
		s.Acked = int(paths[i].w * mss)
		cs[i].OnAck(s)
		got := segments(cs[i]) - before
		require.InDelta(t, want, got, .01)
		sum += got
	}
	require.InDelta(t, 1, sum, .01)
}

// settle gives a controller round trips of which a share was marked until its
// estimate has settled, without letting its window grow.
func settle(c cc.Controller, p path, share float64) {
	for round := range uint64(400) {
		for i := range 10 {
			s := p.sample(100)
			s.Round, s.CwndLimited = round+1, false
			if float64(i) < share*10 {
				s.Marked = 100
			}
			s.InFlight = int(p.w * mss)
			c.OnAck(s)
		}
	}
}

// What grows by one segment a round trip in all where queues mark grows by LIA
// from a loss to the next mark: at windows of 10 and 20 and RTTs of 0.1 and 0.2 s
// by 1/40 of a segment an ACK, or 1/4 a round trip, instead of 1/20 and 1/2. A
// spurious loss changes nothing.
func TestGrowthAfterLoss(t *testing.T) {
	for _, name := range []string{"mdtcp", "mptcpd", "xmp"} {
		paths, round := []path{{20, .1}, {20, .2}}, uint64(0)
		grow := func(c cc.Controller) float64 {
			before := segments(c)
			s := path{before, .1}.sample(mss)
			s.Round = round
			c.OnAck(s)
			if name == "xmp" { // at the end of a round trip
				round++
				s.Round = round
				c.OnAck(s)
			}
			return segments(c) - before
		}
		const acks = 10 // of a round trip
		times := 1.0
		if name == "xmp" {
			times = acks
		}
		cs := coupled(t, name, paths)
		cs[0].OnLoss(cc.LossFast, flight(20))
		near(t, times/40, grow(cs[0]), name+" after a loss")

		before := segments(cs[0])
		cs[0].OnLoss(cc.LossECN, flight(before))
		w := segments(cs[0])
		want := 1 / (w + 10)
		if name == "xmp" {
			want *= w
		}
		near(t, want, grow(cs[0]), name+" after a mark")

		cs = coupled(t, name, paths)
		cs[0].OnLoss(cc.LossFast, flight(20))
		cs[0].Undo()
		want = 1. / 30
		if name == "xmp" {
			want *= 20
		}
		near(t, want, grow(cs[0]), name+" after a spurious loss")
	}
}

// However many subflows there are, marks leave two segments: a single one would
// wait for the peer's delayed ACK.
func TestMPTCPDFloor(t *testing.T) {
	for _, n := range []int{2, 8} {
		paths := make([]path, n)
		for i := range paths {
			paths[i] = path{3, .0002}
		}
		cs := coupled(t, "mptcpd", paths)
		for range 3 {
			cs[0].OnLoss(cc.LossECN, flight(3))
		}
		require.Equal(t, 2., segments(cs[0]), "%d subflows", n)
	}
}

// A subflow that takes the place of another has both initial windows, of 10
// segments each. With an estimate of 1, as in the beginning, a mark takes half of
// half of that, and a second one in the same round trip the same; a third one can
// strike nobody. Only then slow start is over for both. Marks leave two segments
// each.
func TestMPTCPDHeir(t *testing.T) {
	g, p := group(t, "mptcpd"), path{10, .0002}
	var cs [2]cc.Controller
	for i := range cs {
		cs[i] = g.Add(cc.Params{MSS: mss, InitialWindow: 10 * mss})
		cs[i].OnAck(p.sample(0))
	}
	cs[0].(cc.Heir).Inherit(cs[1].(cc.Heir).Bequeath(0))
	near(t, 1, segments(cs[1]), "kept")
	near(t, 20, segments(cs[0]), "inherited")
	marked, signal := p.sample(mss), flight(20)
	marked.Marked, marked.CwndLimited, marked.Round = mss, false, 1
	signal.Round = 1
	cs[0].OnLoss(cc.LossECN, signal)
	for i, want := range []float64{15, 11.25, 11.25} {
		cs[0].OnAck(marked)
		near(t, want, segments(cs[0]), "marks")
		require.Equal(t, i == 0, math.IsInf(cs[0].State().Ssthresh, 1), "slow start after mark %d", i+1)
	}
	for range 20 {
		cs[0].OnLoss(cc.LossECN, flight(4))
	}
	near(t, 4, segments(cs[0]), "least")
}

// What a subflow has in flight passes to its heir as it is acknowledged, with the
// growth of slow start, and halved by a mark as ever; that of an heir passes to its
// own heir. A segment remains for a backup.
func TestMPTCPDHeirOfFlight(t *testing.T) {
	g, p := group(t, "mptcpd"), path{10, .0002}
	var cs [3]cc.Controller
	for i := range cs {
		cs[i] = g.Add(cc.Params{MSS: mss, InitialWindow: 10 * mss})
		cs[i].OnAck(p.sample(0))
	}
	bequeath := func(from, to cc.Controller, inFlight int) { to.(cc.Heir).Inherit(from.(cc.Heir).Bequeath(inFlight)) }
	acked := func(left int, full bool) {
		s := p.sample(mss)
		s.InFlight, s.CwndLimited = left*mss, full
		cs[0].OnAck(s)
		for _, c := range cs[1:] {
			c.OnAck(p.sample(0))
		}
	}
	bequeath(cs[0], cs[1], 10*mss)
	near(t, 10, segments(cs[1]), "nothing yet")
	acked(9, true)
	near(t, 9, segments(cs[0]), "what is in flight")
	near(t, 12, segments(cs[1]), "a segment that was acknowledged, and one of growth")
	bequeath(cs[1], cs[2], 0)
	near(t, 22, segments(cs[2]), "of both")
	cs[0].OnLoss(cc.LossECN, flight(9))
	acked(8, false)
	near(t, 4.5, segments(cs[0]), "less than in flight")
	near(t, 22, segments(cs[2]), "nothing to leave")
	for left := 7; left >= 0; left-- {
		acked(left, false)
	}
	near(t, 1, segments(cs[0]), "kept")
	near(t, 26.5, segments(cs[2]), "all of it")
	acked(0, true)
	require.Greater(t, segments(cs[0]), 1., "its own again")
}

// A subflow that is not used any more, as a backup is not, counts with what it
// had in flight at last: LIA's increase is 10/(10+2)^2 instead of 10/(10+10)^2.
func TestIdleSubflowDoesNotCount(t *testing.T) {
	paths := []path{{10, .1}, {10, .1}}
	cs := coupled(t, "lia", paths)
	last := paths[1].sample(0)
	last.Delivered, last.InFlight = 2*mss, 0
	cs[1].OnAck(last)
	cs[0].OnAck(paths[0].sample(mss))
	near(t, 10+10./144, segments(cs[0]), "increase")
}

// Where nothing can be marked mptcpd grows as LIA and halves as Reno.
func TestMPTCPDWithoutECN(t *testing.T) {
	paths := []path{{10, .1}, {20, .2}}
	cs := coupled(t, "mptcpd", paths)
	for i, p := range paths {
		s := p.sample(0)
		s.ECN = false
		cs[i].OnAck(s)
	}
	s := paths[0].sample(mss)
	s.ECN = false
	cs[0].OnAck(s)
	near(t, 10.025, segments(cs[0]), "as LIA")
	cs[0].OnLoss(cc.LossFast, flight(segments(cs[0])))
	near(t, 10.025/2, segments(cs[0]), "as Reno")
}
