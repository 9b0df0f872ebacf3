package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// wholeRate sends bytes over paths by default settings and returns bits a second
// from the dial to the last byte.
func wholeRate(t *testing.T, paths []sim.Shape, bytes int64) float64 {
	t.Helper()
	p := sim.TwoHosts(sim.PairConfig{Seed: 71, Paths: paths})
	tr := p.Start(sim.TransferConfig{AB: bytes, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, 5*time.Minute)
	return float64(bytes) * 8 / tr.ProgramB.LastByte.Sub(mono.Time(time.Second)).Seconds()
}

// steadyRate is the rate of a transfer without end from 4 s on, for a time.
func steadyRate(t *testing.T, paths []sim.Shape, observed time.Duration) float64 {
	t.Helper()
	const begun = 4 * time.Second
	p := sim.TwoHosts(sim.PairConfig{Seed: 72, Paths: paths})
	tr := p.Start(sim.TransferConfig{AB: 1 << 40, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	p.RunFor(begun)
	before := tr.ProgramB.Received
	p.RunFor(observed)
	require.Empty(t, p.Violations())
	return float64(tr.ProgramB.Received-before) * 8 / observed.Seconds()
}

// However different two paths are, a connection over both is never much slower
// than one over the better of them alone, whichever it begins on: 0.95 of it at
// least. That a slow path takes away from a fast one is what users of other
// implementations complain of most. A whole transfer that begins on the better
// path may take no longer either.
func TestNeverBelowTheBestPath(t *testing.T) {
	unraced(t)
	t.Parallel()
	path := func(mbit float64, rtt, queue time.Duration, loss float64) sim.Shape {
		return symmetric(link.Config{
			Rate: mbit * 1e6, Delay: rtt / 2, Loss: loss, QueueBytes: int(mbit * 1e6 / 8 * queue.Seconds()),
		})
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		paths [2]sim.Shape // the better one first
		tail  bool         // at the end the other's queue is emptied long after all the rest has arrived
		slow  bool         // the other takes seconds to find its rate
	}{
		{name: "wifi and 3g", paths: [2]sim.Shape{path(8, 20*ms, 80*ms, 0), path(2, 150*ms, 2*time.Second, 0)}},
		{name: "3:1", paths: [2]sim.Shape{path(30, 20*ms, 100*ms, 0), path(10, 60*ms, 100*ms, 0)}},
		{name: "short and long", paths: [2]sim.Shape{path(25, 20*ms, 100*ms, 0), path(25, 320*ms, 100*ms, 0)}},
		{name: "10:1", paths: [2]sim.Shape{path(50, 10*ms, 50*ms, 0), path(5, 100*ms, 200*ms, 0)}},
		{name: "thin and bloated", paths: [2]sim.Shape{path(20, 30*ms, 60*ms, 0), path(1, 300*ms, 2*time.Second, 0)}, tail: true, slow: true},
		{name: "clean and lossy", paths: [2]sim.Shape{path(20, 30*ms, 60*ms, 0), path(20, 60*ms, 60*ms, 0.01)}},
		{name: "mobile and satellite", paths: [2]sim.Shape{path(25, 40*ms, 100*ms, 0), path(10, 600*ms, 300*ms, 0)}, slow: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			observed := 6 * time.Second
			if tt.slow {
				observed = 20 * time.Second
			}
			best := steadyRate(t, tt.paths[:1], observed)
			for order, paths := range map[string][]sim.Shape{"better first": tt.paths[:], "worse first": {tt.paths[1], tt.paths[0]}} {
				both := steadyRate(t, paths, observed)
				t.Logf("%s: %.2f of the best path, which has %.1f Mb/s", order, both/best, best/1e6)
				require.GreaterOrEqual(t, both, 0.95*best, order)
			}
			const bytes = 8 * mib
			whole := wholeRate(t, tt.paths[:], bytes) / wholeRate(t, tt.paths[:1], bytes)
			t.Logf("whole transfer: %.2f", whole)
			if !tt.tail {
				require.GreaterOrEqual(t, whole, 0.95)
			}
		})
	}
}
