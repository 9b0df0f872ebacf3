package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// fillTime sends over paths without end and returns how long it took until the
// receiver read nine tenths of their rate for a second. It checks that memory
// stays within the ceiling of a connection.
func fillTime(tb testing.TB, paths []sim.Shape, limit time.Duration) time.Duration {
	tb.Helper()
	rate := 0.0
	for _, p := range paths {
		rate += p.AB.Rate
	}
	p := sim.TwoHosts(sim.PairConfig{Seed: 51, Paths: paths})
	tr := p.Start(sim.TransferConfig{AB: 1 << 40, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	const (
		step    = 250 * time.Millisecond
		ceiling = 128 << 20
		// What one subflow must be able to repeat stays, though another has
		// delivered it; blocks are freed as a whole.
		spare = ceiling
	)
	var read []int64
	for p.Elapsed() < limit {
		p.RunFor(step)
		read = append(read, tr.ProgramB.Received)
		require.Empty(tb, p.Violations())
		require.LessOrEqual(tb, tr.ConnA.Info().SendMemory, ceiling+spare)
		if tr.ConnB != nil {
			require.LessOrEqual(tb, tr.ConnB.Info().RecvMemory, ceiling)
		}
		if n := len(read); n > 4 && float64(read[n-1]-read[n-5])*8 >= 0.9*rate {
			return p.Elapsed()
		}
	}
	return limit
}

// fillLimit is within how long a path of 1 Gb/s over 300 ms is to be full.
const fillLimit = 15 * time.Second

// longFat is a link with super-segments, as hosts of its rate use them.
func longFat(rate float64, rtt time.Duration, mtu int) sim.Shape {
	s := symmetric(link.Config{Rate: rate, Delay: rtt / 2, QueueBytes: int(rate / 8 * rtt.Seconds() / 2)})
	s.MTU, s.SegmentMax = mtu, 60_000
	return s
}

// A path of 1 Gb/s over 300 ms is filled to 90 % by default settings, alone
// and beside another.
func TestLongFatPath(t *testing.T) {
	unraced(t)
	t.Parallel()
	long := longFat(1e9, 300*time.Millisecond, 1500)
	took := fillTime(t, []sim.Shape{long}, fillLimit)
	t.Logf("filled after %v", took)
	require.Less(t, took, fillLimit)
}

func TestLongFatPathBesideAnother(t *testing.T) {
	unraced(t)
	t.Parallel()
	long := longFat(1e9, 300*time.Millisecond, 1500)
	short := longFat(100e6, 20*time.Millisecond, 1500)
	took := fillTime(t, []sim.Shape{short, long}, fillLimit)
	t.Logf("filled after %v", took)
	require.Less(t, took, fillLimit)
}

// BenchmarkLongFatPath is the same with 10 Gb/s over 50 ms in large packets,
// which is to be full after 8 s. The time is of the simulated network.
func BenchmarkLongFatPath(b *testing.B) {
	const limit = 8 * time.Second
	for b.Loop() {
		took := fillTime(b, []sim.Shape{longFat(10e9, 50*time.Millisecond, 9000)}, limit)
		require.Less(b, took, limit)
		b.ReportMetric(took.Seconds(), "s/fill")
	}
}
