package workload_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/bench/workload"
)

// checkQuantiles draws a million sizes and compares the share of those up to
// given ones with what it should be, within three standard errors.
func checkQuantiles(t *testing.T, d workload.Sizes, want map[float64]float64) {
	t.Helper()
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	count := make(map[float64]int)
	for range n {
		x := float64(d.Draw(rng))
		require.GreaterOrEqual(t, x, 1.0)
		for at := range want {
			if x <= at {
				count[at]++
			}
		}
	}
	for at, p := range want {
		require.InDelta(t, p, float64(count[at])/n, 3*math.Sqrt(p*(1-p)/n)+5e-5, "P(size <= %g)", at)
		require.InDelta(t, p, d.CDF(at), 1e-3, "CDF(%g)", at)
	}
}

// The classes of S1: .901 up to 100 KB, .069 to 300 KB, .019 to 800 KB, .010
// above; its lower bound and mean are those of a calculation by hand.
func TestS1HasItsQuantiles(t *testing.T) {
	long, short := workload.S1(1e9), workload.S1(1e8)
	require.InDelta(t, 12_164, long.Low, 1)
	require.InDelta(t, 12_214, short.Low, 1)
	require.InDelta(t, 90.7e3, long.Mean(), 0.1e3)
	require.InDelta(t, 79.8e3, short.Mean(), 0.1e3)
	require.InDelta(t, 4.5e-5, 1-long.CDF(1e8), 0.1e-5)
	checkQuantiles(t, long, map[float64]float64{800e3: .99, 100e3: .9014, 300e3: .9706})
	checkQuantiles(t, short, map[float64]float64{800e3: .99, 1e8: 1, 12_214: 0})
}

// What the measurement says of flows, in bytes.
func TestS2HasItsQuantiles(t *testing.T) {
	d := workload.S2()
	require.InDelta(t, 112.5e3, d.Mean(), 0.5e3)
	checkQuantiles(t, d, map[float64]float64{100e3: .9723, 300e3: .9858, 800e3: .9922, 1e8: .9998})
}

// The mean of exp of a normal variable, and medians.
func TestLognormalHasItsMomentsAndBounds(t *testing.T) {
	d := workload.Lognormal{Median: 1000, Sigma: 1}
	require.InDelta(t, 1648.72, d.Mean(), 0.01)
	checkQuantiles(t, d, map[float64]float64{1000: .5, 1000 * math.E: .841345, 1000 * math.E * math.E: .97725})
	d.Low, d.High = 500, 2000
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		x := d.Draw(rng)
		require.GreaterOrEqual(t, x, int64(500))
		require.LessOrEqual(t, x, int64(2000))
	}
}

func TestSizesByName(t *testing.T) {
	for _, name := range []string{"s1", "s1-100mb", "s2"} {
		_, err := workload.SizesByName(name)
		require.NoError(t, err)
	}
	_, err := workload.SizesByName("s9")
	require.ErrorContains(t, err, "s1-100mb")
	require.EqualValues(t, 7, workload.Fixed(7).Draw(nil))
	require.Equal(t, 7.0, workload.Fixed(7).Mean())
	require.Zero(t, workload.Fixed(7).CDF(6))
	require.Equal(t, 1.0, workload.Fixed(7).CDF(7))
}
