package scheduler_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/scheduler"
)

// Windows of 10 and 5, RTTs of 20 and 50 ms, 37 segments: in proportion (31,6),
// which takes 100 ms; full rounds (30,5) and both that are left on the first
// path take 80, which is the optimum.
func TestSCTCPlan(t *testing.T) {
	paths := []scheduler.SCTCPath{{Window: 10, RTT: 20 * ms}, {Window: 5, RTT: 50 * ms}}
	shares, at := scheduler.SCTCPlan(scheduler.SCTCLiteral, 37, paths)
	require.Equal(t, []int{31, 6}, shares)
	require.Equal(t, 100*ms, at)
	for _, mode := range []scheduler.SCTCMode{scheduler.SCTCPlanned, scheduler.SCTCOptimal} {
		shares, at = scheduler.SCTCPlan(mode, 37, paths)
		require.Equal(t, []int{32, 5}, shares)
		require.Equal(t, 80*ms, at)
	}
	_, at = scheduler.SCTCPlan(scheduler.SCTCPlanned, 0, paths)
	require.Zero(t, at)
	shares, at = scheduler.SCTCPlan(scheduler.SCTCOptimal, 5, nil)
	require.Empty(t, shares)
	require.Zero(t, at)
}

// instance draws a problem of at most 4 paths.
func instance(r *rand.Rand, paths, most int) (int, []scheduler.SCTCPath) {
	all := make([]scheduler.SCTCPath, 1+r.IntN(paths))
	for i := range all {
		all[i] = scheduler.SCTCPath{Window: 1 + r.IntN(20), RTT: time.Duration(5+r.IntN(196)) * ms}
	}
	return r.IntN(most + 1), all
}

// least returns min{T in {k*rtt_i} : sum of window_i*floor(T/rtt_i) >= n}.
func least(n int, paths []scheduler.SCTCPath) time.Duration {
	best := time.Duration(math.MaxInt64)
	if n == 0 {
		return 0
	}
	for _, p := range paths {
		for k := 1; ; k++ {
			t, fits := time.Duration(k)*p.RTT, 0
			for _, q := range paths {
				fits += q.Window * int(t/q.RTT)
			}
			if fits >= n {
				best = min(best, t)
				break
			}
		}
	}
	return best
}

// On 10,000 random instances: T* <= T' <= T, the greedy rule on all segments
// attains T*, and where proportion leaves nothing over T' = T.
func TestSCTCPlanProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 1))
	optimal := 0
	for range 10_000 {
		n, paths := instance(r, 4, 120)
		sum := func(shares []int) (s int) {
			for i := range shares {
				require.GreaterOrEqual(t, shares[i], 0)
				s += shares[i]
			}
			return s
		}
		module1, t1 := scheduler.SCTCPlan(scheduler.SCTCLiteral, n, paths)
		planned, t2 := scheduler.SCTCPlan(scheduler.SCTCPlanned, n, paths)
		greedy, t3 := scheduler.SCTCPlan(scheduler.SCTCOptimal, n, paths)
		require.Equal(t, n, sum(module1))
		require.Equal(t, n, sum(planned))
		require.Equal(t, n, sum(greedy))
		require.Equal(t, least(n, paths), t3, "%d %v", n, paths)
		require.LessOrEqual(t, t3, t2, "%d %v", n, paths)
		require.LessOrEqual(t, t2, t1, "%d %v", n, paths)
		left := n
		for i, p := range paths {
			left -= module1[i] / p.Window * p.Window
		}
		if left == 0 {
			require.Equal(t, t1, t2)
		}
		most := 0 // equation (6)
		for _, p := range paths {
			most += p.Window - 1
		}
		require.LessOrEqual(t, left, most)
		if t2 == t3 {
			optimal++
		}
	}
	require.Greater(t, optimal, 9_500, "nearly always optimal")
}

// Brute force over all shares agrees for small instances.
func TestSCTCPlanBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 2))
	for range 300 {
		n, paths := instance(r, 3, 40)
		best := time.Duration(math.MaxInt64)
		var try func(i, left int, at time.Duration)
		try = func(i, left int, at time.Duration) {
			p := paths[i]
			if i == len(paths)-1 {
				best = min(best, max(at, p.RTT*time.Duration((left+p.Window-1)/p.Window)))
				return
			}
			for s := range left + 1 {
				try(i+1, left-s, max(at, p.RTT*time.Duration((s+p.Window-1)/p.Window)))
			}
		}
		try(0, n, 0)
		_, at := scheduler.SCTCPlan(scheduler.SCTCOptimal, n, paths)
		require.Equal(t, best, at, "%d %v", n, paths)
	}
}

// While more waits than fits, the greatest rate comes first; the tail goes by
// RTT in the literal mode and may wait for a full subflow in the others.
func TestSCTC(t *testing.T) {
	slow, fast := pipe(0, 20, 10, 0, mss), pipe(1, 50, 50, 0, mss) // 500 and 1000 KB/s
	backlog := view(slow, fast)
	tail := view(slow, fast)
	tail.Unsent = 5 * mss
	for _, name := range []string{"sctc-literal", "sctc-planned"} {
		require.Equal(t, uint64(0b10), newScheduler(t, name).Pick(backlog).Send, name)
		require.Equal(t, uint64(0b01), newScheduler(t, name).Pick(tail).Send, name)
	}

	// Equal numbers count as tail: 60 segments fit 60 places.
	tail.Unsent = 60 * mss
	require.Equal(t, uint64(0b01), newScheduler(t, "sctc-literal").Pick(tail).Send)
	tail.Unsent++
	require.Equal(t, uint64(0b10), newScheduler(t, "sctc-literal").Pick(tail).Send)

	// The first subflow is full; its next ACK is due in 5 ms, and it delivers in
	// 25 what the other would in 50.
	full := view(pipe(0, 20, 10, 10, mss), fast)
	full.Subflows[0].OldestSend = full.Now - 15*ms
	full.Unsent = 10 * mss
	require.Equal(t, uint64(0b10), newScheduler(t, "sctc-literal").Pick(full).Send)
	for _, name := range []string{"sctc-planned", "sctc-optimal"} {
		require.True(t, newScheduler(t, name).Pick(full).Wait, name)
		full.Unsent = 21 * mss // 20 by 45 ms, the last at 50 instead of 65
		d := newScheduler(t, name).Pick(full)
		require.Equal(t, uint64(0b10), d.Send, name)
		require.Equal(t, mss, d.Bytes, name)
		full.Unsent = 10 * mss
	}

	// The tail of the planned mode is what fits the windows of both, full or
	// not: 12 segments are more than the 5 that fit now, and all are
	// acknowledged by the first subflow after 45 ms, by the other after 50.
	part := view(full.Subflows[0], pipe(1, 50, 50, 45, mss))
	part.Unsent = 12 * mss
	require.Equal(t, uint64(0b10), newScheduler(t, "sctc-literal").Pick(part).Send)
	for _, name := range []string{"sctc-planned", "sctc-optimal"} {
		require.True(t, newScheduler(t, name).Pick(part).Wait, name)
	}

	free := scheduler.SCTC(scheduler.SCTCConfig{FreeWindow: true})()
	backlog.Subflows[1].Room = 20 * mss // 400 KB/s of free window
	require.Equal(t, uint64(0b01), free.Pick(backlog).Send)
	require.Equal(t, uint64(0b10), newScheduler(t, "sctc-literal").Pick(backlog).Send)
}
