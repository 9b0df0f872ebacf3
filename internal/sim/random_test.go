package sim_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/scheduler"
)

var (
	oneSeed = flag.Uint64("sim.seed", 0, "run the random simulation of this seed only")
	seeds   = flag.Uint64("sim.seeds", 50, "how many random simulations to run")
)

// TestRandomNetworks sends over links that lose, reorder, duplicate, corrupt
// and die, whatever the seed says, and expects every byte to arrive and every
// connection to end.
func TestRandomNetworks(t *testing.T) {
	first, last := uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p, tr := randomRun(seed)
			finish(t, p, tr, 20*time.Minute)
		})
	}
}

// randomRun makes a network and a transfer from a seed.
func randomRun(seed uint64) (*sim.Pair, *sim.Transfer) {
	r := rand.New(rand.NewPCG(seed, 1<<32))
	cfg := sim.PairConfig{Seed: seed, IPv6: r.IntN(4) == 0, Mesh: r.IntN(3) == 0}
	for range 1 + r.IntN(3) {
		cfg.Paths = append(cfg.Paths, sim.Shape{
			AB: randomLink(r), BA: randomLink(r),
			MTU:        []int{1500, 1280, 1400, 9000}[r.IntN(4)],
			SegmentMax: []int{0, 20000, 60000}[r.IntN(3)],
		})
	}
	p := sim.TwoHosts(cfg)
	a, b := randomConn(r), randomConn(r)
	tr := p.Start(sim.TransferConfig{
		AB: randomSize(r), BA: randomSize(r), ReadA: randomRate(r), ReadB: randomRate(r),
		ConnA: a, ConnB: b,
	})
	for _, l := range p.Links {
		at := time.Duration(0)
		for range r.IntN(4) {
			at += time.Duration(r.IntN(5000)) * time.Millisecond
			p.After(at, func() { l.SetUp(false) })
			at += time.Duration(r.IntN(4000)) * time.Millisecond
			p.After(at, func() { l.SetUp(true) })
		}
	}
	return p, tr
}

// randomLink has a rate from 0.5 to 60 Mb/s and any fault in half the cases.
func randomLink(r *rand.Rand) link.Config {
	cfg := link.Config{
		Rate:  0.5e6 + r.Float64()*r.Float64()*60e6,
		Delay: time.Duration(r.IntN(100)) * time.Millisecond,
	}
	sometimes := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return r.Float64() * most
	}
	cfg.Loss = sometimes(0.05)
	cfg.Reorder = sometimes(0.1)
	cfg.Duplicate = sometimes(0.05)
	cfg.Corrupt = sometimes(0.01)
	cfg.Jitter = time.Duration(sometimes(20) * float64(time.Millisecond))
	cfg.QueueBytes = 10_000 + r.IntN(200_000)
	return cfg
}

func randomSize(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return 0
	case 1:
		return r.Int64N(20_000)
	}
	return r.Int64N(2 * mib)
}

func randomRate(r *rand.Rand) float64 {
	if r.IntN(3) > 0 {
		return 0
	}
	return 50_000 + r.Float64()*1e6
}

func randomConn(r *rand.Rand) host.ConnConfig {
	cfg := sim.ConnWith(
		scheduler.Names()[r.IntN(len(scheduler.Names()))],
		cc.Names()[r.IntN(len(cc.Names()))], "")
	cfg.Plain = r.IntN(8) == 0
	cfg.Checksum = r.IntN(3) == 0
	if r.IntN(2) == 0 {
		cfg.ReadBuffer = 20_000 + r.IntN(500_000)
		cfg.WriteBuffer = 20_000 + r.IntN(500_000)
	}
	cfg.Subflow.Nagle = r.IntN(4) == 0
	cfg.Subflow.NoSACK = r.IntN(5) == 0
	cfg.Subflow.NoTimestamps = r.IntN(5) == 0
	return cfg
}

func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		var hashes [2]uint64
		for i := range hashes {
			p, tr := randomRun(seed)
			finish(t, p, tr, 20*time.Minute)
			hashes[i] = p.TraceHash()
		}
		require.Equal(t, hashes[0], hashes[1], "seed %d", seed)
		p, tr := randomRun(seed + 100)
		finish(t, p, tr, 20*time.Minute)
		require.NotEqual(t, hashes[0], p.TraceHash())
	}
}

// TestRandomEnds ends transfers early, in every way there is: however it
// happens, both sides get to know, and nothing of them stays in the tables.
func TestRandomEnds(t *testing.T) {
	first, last := uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p, tr := randomRun(seed)
			r := rand.New(rand.NewPCG(seed, 2<<32))
			for range 1 + r.IntN(2) {
				how := r.IntN(6)
				p.After(time.Duration(r.ExpFloat64()*float64(time.Second)), func() { end(p, tr, how) })
			}
			p.RunFor(4 * time.Hour)
			require.Empty(t, p.Violations())
			for _, n := range []*sim.Node{p.A, p.B} {
				for _, c := range n.Conns() {
					require.True(t, c.Closed(), "%s: %+v", n.Name, c.Info())
				}
				require.Zero(t, n.Host.Counters().Conns, n.Name)
				require.Zero(t, n.Host.Counters().TimeWait, n.Name)
			}
			p.Run()
		})
	}
}

// end does something that ends a transfer, or half of it.
func end(p *sim.Pair, tr *sim.Transfer, how int) {
	a, b := tr.ConnA, tr.ConnB
	switch {
	case how == 0:
		a.Abort(p.Now())
	case how == 1:
		tr.ProgramB.Receive = tr.ProgramA.Sent
		tr.ProgramA.Stop()
		a.Close(p.Now())
	case how == 2:
		for _, l := range p.Links {
			l.SetUp(false)
		}
	case how == 3:
		for _, l := range p.Links {
			p.A.SetAddrs(l, false)
		}
	case b == nil:
		p.B.Close(tr.Listener)
	case how == 4:
		b.Abort(p.Now())
	case how == 5:
		tr.ProgramA.Receive = tr.ProgramB.Sent
		tr.ProgramB.Stop()
		b.Close(p.Now())
	}
	a.Wake()
	if b != nil {
		b.Wake()
	}
}
