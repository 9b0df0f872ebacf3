package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// The scenarios of this file are those of Linux's MPTCP self-tests, as far as
// they make sense between two of our hosts.

// netemQueue is what a netem queue holds by default: 1000 packets.
const netemQueue = 1000 * 1500

// Two paths at once carry a transfer of 16 MiB within the time that Linux
// allows itself (simult_flows.sh): size x 8 x 10 / (9 x sum of rates) + 450 ms,
// with 80 KiB in the other direction.
func TestSimultaneousFlows(t *testing.T) {
	t.Parallel()
	const large, small = 16 * mib, 80 << 10
	sets := []struct {
		rates  [2]float64 // Mb/s
		delays [2]time.Duration
	}{
		{[2]float64{10, 10}, [2]time.Duration{0, 0}},
		{[2]float64{10, 10}, [2]time.Duration{1, 25}},
		{[2]float64{15, 5}, [2]time.Duration{0, 0}},
		{[2]float64{15, 5}, [2]time.Duration{1, 25}},
		{[2]float64{15, 5}, [2]time.Duration{25, 1}},
		{[2]float64{30, 10}, [2]time.Duration{0, 0}},
		{[2]float64{10, 3}, [2]time.Duration{1, 25}},
	}
	for _, tt := range sets[:few(len(sets))] {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v Mb/s, %v ms, reverse %v", tt.rates, tt.delays, back), func(t *testing.T) {
				var paths []sim.Shape
				for i, r := range tt.rates {
					paths = append(paths, symmetric(link.Config{
						Rate: r * 1e6, Delay: tt.delays[i] * time.Millisecond, QueueBytes: netemQueue,
					}))
				}
				cfg := sim.TransferConfig{AB: large, BA: small, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()}
				if back {
					cfg.AB, cfg.BA = small, large
				}
				p := sim.TwoHosts(sim.PairConfig{Seed: 61, Paths: paths})
				tr := p.Start(cfg)
				finish(t, p, tr, time.Minute)
				last := max(tr.ProgramA.LastByte, tr.ProgramB.LastByte)
				limit := time.Duration(large*8*10/(9*(tt.rates[0]+tt.rates[1])*1e6)*float64(time.Second)) + 450*time.Millisecond
				require.LessOrEqual(t, last.Sub(mono.Time(time.Second)), limit)
			})
		}
	}
}

// Files pass both ways over a path with loss of 0.01 to 1 %, a delay of up to
// 49 ms and reordering, within the time that Linux allows (mptcp_connect.sh).
func TestConnectMatrix(t *testing.T) {
	for seed := uint64(1); seed <= uint64(few(12)); seed++ {
		for plain := range 3 {
			t.Run(fmt.Sprintf("seed %d, plain %d", seed, plain), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3<<32))
				delay := time.Duration(r.IntN(50)) * time.Millisecond
				shape := symmetric(link.Config{Rate: 1e9, Delay: delay / 2, QueueBytes: netemQueue})
				shape.AB.Loss = 0.0001 * float64(1+r.IntN(100))
				shape.BA.Reorder, shape.BA.ReorderBy = float64(r.IntN(11))/100, delay/4
				shape.SegmentMax = []int{0, 60_000}[r.IntN(2)]
				p := sim.TwoHosts(sim.PairConfig{Seed: seed, Paths: []sim.Shape{shape}, IPv6: r.IntN(2) == 0})
				size := func() int64 { return int64(256<<10) + r.Int64N(2*mib) }
				a, b := sim.DefaultConn(), sim.DefaultConn()
				a.Plain, b.Plain = plain == 1, plain == 2
				a.Checksum = seed%3 == 0
				tr := p.Start(sim.TransferConfig{AB: size(), BA: size(), ConnA: a, ConnB: b})
				finish(t, p, tr, time.Minute)
				require.Equal(t, plain == 0, tr.ConnA.IsMPTCP())
				require.Zero(t, tr.ConnA.Info().Stats.ChecksumErrors+tr.ConnB.Info().Stats.ChecksumErrors)
			})
		}
	}
}

// threePaths are alike.
func threePaths() []sim.Shape {
	s := symmetric(link.Config{Rate: 20e6, Delay: time.Millisecond, QueueBytes: 150_000})
	return []sim.Shape{s, s, s}
}

// Whatever link fails in the middle, even two of three, the rest carry on
// (mptcp_join.sh, link failure).
func TestLinkFailure(t *testing.T) {
	for _, dead := range [][]int{{0}, {1}, {2}, {0, 1}, {1, 2}} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			p := sim.TwoHosts(sim.PairConfig{Seed: 62, Paths: threePaths()})
			tr := p.Start(sim.TransferConfig{AB: 8 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
			p.RunFor(300 * time.Millisecond)
			require.Equal(t, 3, tr.ConnA.Info().Subflows)
			for _, i := range dead {
				p.Links[i].SetUp(false)
			}
			finish(t, p, tr, time.Minute)
			require.True(t, tr.ConnA.IsMPTCP())
		})
	}
}

// A backup link carries nothing while the other works, and everything once it
// does not (mptcp_join.sh, backup).
func TestBackup(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails %v", fails), func(t *testing.T) {
			p := sim.TwoHosts(sim.PairConfig{Seed: 63, Paths: threePaths()[:2], Backup: []int{1}})
			tr := p.Start(sim.TransferConfig{BA: 4 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
			if fails {
				require.True(t, p.RunUntil(time.Minute, func() bool { return tr.ProgramA.Received >= 2*mib }))
				p.Links[0].SetUp(false)
			}
			finish(t, p, tr, time.Minute)
			onBackup := p.Links[1].BA.Stats().ArrivedBytes
			if !fails {
				require.Zero(t, onBackup)
				return
			}
			// Half of it, with the tolerance of the self-test, and what was in
			// flight on the link that died.
			require.InDelta(t, 0.5, float64(onBackup)/(4*mib), 0.07)
		})
	}
}

// No more subflows are opened, nor addresses accepted, than the limits say.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		mesh   bool
		limits pathmgr.Limits
		want   int
	}{
		{limits: pathmgr.Limits{}, want: 3},
		{limits: pathmgr.Limits{Subflows: 2}, want: 2},
		{limits: pathmgr.Limits{Subflows: 1}, want: 1},
		{limits: pathmgr.Limits{Accepted: 1}, want: 2},
		{mesh: true, limits: pathmgr.Limits{Subflows: 9}, want: 9},
		{mesh: true, limits: pathmgr.Limits{Subflows: 4}, want: 4},
		{mesh: true, limits: pathmgr.Limits{Subflows: 9, Accepted: 1}, want: 6},
	} {
		t.Run(fmt.Sprintf("mesh %v, %+v", tt.mesh, tt.limits), func(t *testing.T) {
			p := sim.TwoHosts(sim.PairConfig{Seed: 64, Paths: threePaths(), Mesh: tt.mesh})
			cfg := sim.DefaultConn()
			cfg.Limits = tt.limits
			b := sim.DefaultConn()
			b.Limits = pathmgr.Limits{Subflows: 9}
			tr := p.Start(sim.TransferConfig{AB: 4 * mib, ConnA: cfg, ConnB: b})
			p.RunFor(500 * time.Millisecond)
			require.Equal(t, tt.want, tr.ConnA.Info().Subflows)
			finish(t, p, tr, time.Minute)
		})
	}
}
