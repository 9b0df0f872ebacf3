package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// wholeTime sends bytes over paths by default settings and returns the time from
// the dial to the last byte.
func wholeTime(t *testing.T, paths []sim.Shape, bytes int64) time.Duration {
	t.Helper()
	p := sim.TwoHosts(sim.PairConfig{Seed: 71, Paths: paths})
	tr := p.Start(sim.TransferConfig{AB: bytes, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, 5*time.Minute)
	return tr.ProgramB.LastByte.Sub(mono.Time(time.Second))
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
// least, once it is under way. That a slow path takes away from a fast one is
// what users of other implementations complain of most. A whole transfer that
// begins on the better path may take no longer either. One that begins on the
// worse takes longer by the round trips there that come before a join: that of
// the handshake and, since joins have to wait for a DSS (RFC 8684, Section 3.1),
// that of the first data. It is allowed one more.
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
			alone := wholeTime(t, tt.paths[:1], bytes)
			whole := wholeTime(t, tt.paths[:], bytes)
			late := wholeTime(t, []sim.Shape{tt.paths[1], tt.paths[0]}, bytes)
			t.Logf("whole transfer: %.2f of the best path, begun on the worse %.2f", alone.Seconds()/whole.Seconds(), alone.Seconds()/late.Seconds())
			if !tt.tail {
				require.LessOrEqual(t, 0.95*whole.Seconds(), alone.Seconds())
			}
			require.LessOrEqual(t, late, whole+3*2*tt.paths[1].AB.Delay)
		})
	}
}
