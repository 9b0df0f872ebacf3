package scheduler

import (
	"slices"
	"time"
)

// SCTCPath is a path of the problem that SCTC solves: a window in segments, at
// least one, which is sent once in a round trip.
type SCTCPath struct {
	Window int
	RTT    time.Duration // positive
}

// SCTCPlan gives n segments out to at most MaxSubflows paths all at once, as
// the equations of SCTC say, and returns the shares and when the last one is
// acknowledged, max t_i of equation (1):
//
//   - SCTCLiteral: in proportion to the rates (module 1);
//   - SCTCPlanned: the whole windows of that, then what is left of them, n' of
//     equation (5), by rule (7);
//   - SCTCOptimal: everything by rule (7), which is the least possible time.
func SCTCPlan(mode SCTCMode, n int, paths []SCTCPath) (shares []int, t time.Duration) {
	paths = paths[:min(len(paths), MaxSubflows)]
	shares = make([]int, len(paths))
	if len(paths) == 0 {
		return shares, 0
	}
	var rounds [MaxSubflows]round
	set := uint64(0)
	for i, p := range paths {
		w := int64(max(p.Window, 1))
		rounds[i] = round{rtt: max(p.RTT, 1).Seconds(), first: w, window: w}
		set |= 1 << i
	}
	left := int64(max(n, 0))
	if mode != SCTCOptimal {
		for i, s := range proportional(max(n, 0), paths) {
			shares[i] = s
			r := &rounds[i]
			r.rounds = int64(s) / r.window
			r.given = r.takes(r.rounds)
			left -= r.given
		}
	}
	if mode != SCTCLiteral {
		giveOut(&rounds, set, left)
		for i := range shares {
			shares[i] = int(rounds[i].given)
		}
	}
	for i, p := range paths {
		w := max(p.Window, 1)
		t = max(t, p.RTT*time.Duration((shares[i]+w-1)/w))
	}
	return shares, t
}

// proportional divides n in proportion to window over RTT; the greatest
// remainders are rounded up.
func proportional(n int, paths []SCTCPath) []int {
	total := 0.0
	for _, p := range paths {
		total += float64(p.Window) / p.RTT.Seconds()
	}
	shares, left := make([]int, len(paths)), n
	remainder := make([]float64, len(paths))
	order := make([]int, len(paths))
	for i, p := range paths {
		x := float64(n) * float64(p.Window) / p.RTT.Seconds() / total
		shares[i] = int(x)
		remainder[i], order[i] = x-float64(shares[i]), i
		left -= shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case remainder[a] > remainder[b]:
			return -1
		case remainder[a] < remainder[b]:
			return 1
		}
		return 0
	})
	for k := 0; left > 0; k, left = k+1, left-1 {
		shares[order[k%len(order)]]++
	}
	return shares
}
