package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/scheduler"
)

// TestEveryPolicyDelivers sends both ways under every scheduler over two to
// four paths that lose and reorder, die and come back, alone and all at once:
// every byte arrives once and in order, no policy waits for ever, and the same
// seed makes the same run.
func TestEveryPolicyDelivers(t *testing.T) {
	for _, policy := range scheduler.Names() {
		for seed := uint64(1); seed <= uint64(few(6)); seed++ {
			t.Run(fmt.Sprintf("%s/%d", policy, seed), func(t *testing.T) {
				var hashes [2]uint64
				for i := range hashes[:2-seed%2] {
					p, tr := policyRun(policy, seed)
					finish(t, p, tr, 20*time.Minute)
					require.NotZero(t, tr.ConnA.Info().Opened-1, "further subflows")
					hashes[i] = p.TraceHash()
				}
				if seed%2 == 0 {
					require.Equal(t, hashes[0], hashes[1])
				}
			})
		}
	}
}

// policyRun makes a network and a transfer from a seed, which does not depend
// on the policy.
func policyRun(policy string, seed uint64) (*sim.Pair, *sim.Transfer) {
	return pairRun(policy, "", seed)
}

// pairRun is policyRun with a path manager.
func pairRun(policy, manager string, seed uint64) (*sim.Pair, *sim.Transfer) {
	r := rand.New(rand.NewPCG(seed, 7<<32))
	cfg := sim.PairConfig{Seed: seed}
	for range 2 + r.IntN(3) {
		cfg.Paths = append(cfg.Paths, sim.Shape{AB: randomLink(r), BA: randomLink(r)})
	}
	p := sim.TwoHosts(cfg)
	conn := sim.ConnWith(policy, "", manager)
	conn.OrphanTimeout = time.Hour
	if seed%2 == 0 {
		conn.ReadBuffer, conn.WriteBuffer = 60_000, 100_000
	}
	conn.FlowSize = r.Int64N(2) * 400_000
	tr := p.Start(sim.TransferConfig{AB: 400_000, BA: r.Int64N(100_000), ConnA: conn, ConnB: conn})
	for _, l := range p.Links {
		at := 200 * time.Millisecond
		for range 1 + r.IntN(3) {
			at += time.Duration(r.IntN(2000)) * time.Millisecond
			p.After(at, func() { l.SetUp(false) })
			at += time.Duration(r.IntN(3000)) * time.Millisecond
			p.After(at, func() { l.SetUp(true) })
		}
	}
	if seed == 3 {
		for _, l := range p.Links {
			p.After(700*time.Millisecond, func() { l.SetUp(false) })
			p.After(10*time.Second, func() { l.SetUp(true) })
		}
	}
	return p, tr
}

// The same under every path manager: every byte arrives once and in order, and
// the connection ends.
func TestEveryPathManagerLosesNothing(t *testing.T) {
	for _, name := range pathmgr.Names() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				p, tr := pairRun("minrtt", name, seed)
				require.True(t, p.RunUntil(5*time.Minute, tr.Ended))
				require.True(t, tr.Delivered())
				require.Empty(t, p.Violations())
			})
		}
	}
}
