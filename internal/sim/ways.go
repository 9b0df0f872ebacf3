package sim

import (
	"math/rand/v2"
	"net/netip"
)

// ways gives each subflow in a fat tree its way: drawn at random from those
// that no other subflow of the two hosts has, as long as there are some. The
// answers take the same way back. Subflows that have ended keep theirs.
type ways struct {
	rng  *rand.Rand
	half int // next routers at each of two stages
	of   map[ends]int
	left map[[2]netip.Addr][]int // in the order in which they will be given out
}

// ends name one direction of a subflow.
type ends struct{ src, dst netip.AddrPort }

func newWays(rng *rand.Rand, k int) *ways {
	return &ways{rng: rng, half: k / 2, of: make(map[ends]int), left: make(map[[2]netip.Addr][]int)}
}

// way returns the way of a packet: the quotient by half says which aggregation
// router, the rest which core router beyond it.
func (w *ways) way(p *packet) int {
	e := ends{p.src, p.dst}
	n, ok := w.of[e]
	if !ok {
		n = w.draw(p.src.Addr(), p.dst.Addr())
		w.of[e], w.of[ends{p.dst, p.src}] = n, n
	}
	return n
}

func (w *ways) draw(a, b netip.Addr) int {
	if b.Less(a) {
		a, b = b, a
	}
	pair := [2]netip.Addr{a, b}
	left := w.left[pair]
	if len(left) == 0 {
		left = w.rng.Perm(w.half * w.half)
		if a.As4()[1] == b.As4()[1] { // in one pod there is no core router to choose
			left = w.rng.Perm(w.half)
			for i := range left {
				left[i] *= w.half
			}
		}
	}
	w.left[pair] = left[1:]
	return left[0]
}

// toAggregation and toCore choose among the next routers at the two stages.
func (w *ways) toAggregation(p *packet) int { return w.way(p) / w.half }
func (w *ways) toCore(p *packet) int        { return w.way(p) % w.half }
