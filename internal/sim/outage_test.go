package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	for gone := range 2 {
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
