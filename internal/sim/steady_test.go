package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Three unequal links are filled, and after ten minutes still are: what others
// bond with reaches less than the sum, or does for a while only.
func TestTenMinutesOverThreeLinks(t *testing.T) {
	unraced(t)
	t.Parallel()
	path := func(mbit float64, rtt time.Duration) sim.Shape {
		return symmetric(link.Config{
			Rate: mbit * 1e6, Delay: rtt / 2, Jitter: rtt / 20, QueueBytes: int(mbit * 1e6 / 8 * 0.2), Overhead: sim.OverheadEthernet,
		})
	}
	paths := []sim.Shape{path(4, 30*time.Millisecond), path(2, 60*time.Millisecond), path(1, 120*time.Millisecond)}
	p := sim.TwoHosts(sim.PairConfig{Seed: 91, Fast: true, Paths: paths})
	tr := p.Start(sim.TransferConfig{AB: 1 << 40, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	// A packet of 1500 bytes carries 1420 and takes 1538 on an Ethernet.
	const most = 7e6 * 1420 / 1538
	for minute := range 10 {
		before := tr.ProgramB.Received
		p.RunFor(time.Minute)
		rate := float64(tr.ProgramB.Received-before) * 8 / 60
		t.Logf("minute %d: %.3f of what the links take", minute+1, rate/most)
		require.Greater(t, rate, 0.95*most, "minute %d", minute+1)
	}
	require.Empty(t, p.Violations())
}
