package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// arrived returns the payload bytes that arrived on each link from A to B.
func arrived(p *sim.Pair) []uint64 {
	var n []uint64
	for _, l := range p.Links {
		n = append(n, l.AB.Stats().ArrivedBytes)
	}
	return n
}

func TestPathDiesForTwoSeconds(t *testing.T) {
	for dead := range 2 {
		p := sim.TwoHosts(sim.PairConfig{Seed: 11, Paths: fastAndSlow()})
		tr := p.Start(sim.TransferConfig{AB: 32 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		p.RunFor(2 * time.Second)
		before := arrived(p)
		require.Greater(t, before[0], uint64(mib))
		require.Greater(t, before[1], uint64(mib/2))

		p.Links[dead].SetUp(false)
		p.RunFor(2 * time.Second)
		during := arrived(p)
		require.Equal(t, before[dead], during[dead])
		// The other path goes on alone, at most of its rate.
		other := 1 - dead
		rate := []float64{30e6, 10e6}[other]
		require.Greater(t, float64(during[other]-before[other])*8/2, 0.5*rate, "path %d", other)

		p.Links[dead].SetUp(true)
		p.RunFor(3 * time.Second)
		after := arrived(p)
		require.Greater(t, after[dead], during[dead]+mib/2, "path %d is used again", dead)
		finish(t, p, tr, time.Minute)
	}
}

func TestPathDiesForGood(t *testing.T) {
	for dead := range 2 {
		p := sim.TwoHosts(sim.PairConfig{Seed: 12, Paths: fastAndSlow()})
		tr := p.Start(sim.TransferConfig{AB: 8 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		p.RunFor(time.Second)
		p.Links[dead].SetUp(false)
		finish(t, p, tr, 2*time.Minute)
	}
}

func TestAddressGoesAndComesBack(t *testing.T) {
	for gone := range few(2) {
		p := sim.TwoHosts(sim.PairConfig{Seed: 13, Paths: fastAndSlow()})
		tr := p.Start(sim.TransferConfig{AB: 32 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		p.RunFor(2 * time.Second)
		p.A.SetAddrs(p.Links[gone], false)
		require.Equal(t, 1, tr.ConnA.Info().Subflows)
		p.RunFor(time.Second)
		during := arrived(p)
		p.A.SetAddrs(p.Links[gone], true)
		p.RunFor(3 * time.Second)
		require.Greater(t, arrived(p)[gone], during[gone]+mib/4, "link %d is used again", gone)
		finish(t, p, tr, time.Minute)
	}
}

// With every path dead the connection waits and goes on when one is back.
func TestAllPathsDie(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 14, Paths: fastAndSlow()})
	tr := p.Start(sim.TransferConfig{AB: 8 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	p.RunFor(time.Second)
	for _, l := range p.Links {
		l.SetUp(false)
	}
	p.RunFor(10 * time.Second)
	for _, l := range p.Links {
		l.SetUp(true)
	}
	finish(t, p, tr, 2*time.Minute)
}

// An outage of any length ends, for the connection, soon after it ends for the
// path: the retransmission timer alone could take as long again.
func TestEndOfAnOutageIsNoticed(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, seconds := range []int{2, 3, 7, 10, 13, 20, 27, 50}[:few(8)] {
			p := sim.TwoHosts(sim.PairConfig{Seed: 16, Fast: true, Paths: fastAndSlow()})
			p.Start(sim.TransferConfig{AB: 1 << 40, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
			p.RunFor(3*time.Second + time.Duration(seconds)*1234*time.Microsecond)
			cut := p.Links[:1]
			if all {
				cut = p.Links
			}
			for _, l := range cut {
				l.SetUp(false)
			}
			outage := time.Duration(seconds) * time.Second
			p.RunFor(outage)
			for _, l := range cut {
				l.SetUp(true)
			}
			before := arrived(p)[0]
			// A question each eighth, the answer, and what it sets going.
			limit := max(time.Second, outage/8) + 200*time.Millisecond
			require.True(t, p.RunUntil(limit, func() bool { return arrived(p)[0] > before+100_000 }), "%v, all: %v", outage, all)
			require.Empty(t, p.Violations())
		}
	}
}

// The same, whatever was under way when the outage began.
func TestEndOfAnOutageIsNoticedAtAnyMoment(t *testing.T) {
	short := symmetric(link.Config{Rate: 10e6, Delay: time.Millisecond, QueueBytes: 64 << 10, Overhead: sim.OverheadEthernet})
	for i := range few(16) {
		p := sim.TwoHosts(sim.PairConfig{Seed: 17, Fast: true, Paths: []sim.Shape{short, short}})
		p.Start(sim.TransferConfig{AB: 1 << 40, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		p.RunFor(3*time.Second + time.Duration(i)*170*time.Microsecond)
		p.Links[0].SetUp(false)
		p.RunFor(10 * time.Second)
		p.Links[0].SetUp(true)
		before := arrived(p)[0]
		require.True(t, p.RunUntil(10*time.Second/8+200*time.Millisecond, func() bool { return arrived(p)[0] > before+20_000 }), "moment %d", i)
		require.Empty(t, p.Violations())
	}
}

// break-before-make: the only address goes, another comes.
func TestBreakBeforeMake(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 15, Paths: fastAndSlow(), Mesh: true})
	p.A.SetAddrs(p.Links[1], false)
	tr := p.Start(sim.TransferConfig{AB: 8 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	p.RunFor(time.Second)
	p.A.SetAddrs(p.Links[0], false)
	require.Zero(t, tr.ConnA.Info().Subflows)
	p.RunFor(5 * time.Second)
	require.False(t, tr.ConnA.Closed(), "without a subflow the connection lives for a while")
	p.A.SetAddrs(p.Links[1], true)
	finish(t, p, tr, time.Minute)
}
