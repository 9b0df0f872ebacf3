package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func Example() {
	s := sim.New(1)
	client, server := s.NewNode("client", host.Config{}), s.NewNode("server", host.Config{})
	r := s.NewRouter("r")
	slow := link.Config{Rate: 20e6, Delay: 15 * time.Millisecond, QueueBytes: 75_000, Overhead: sim.OverheadEthernet}
	fast := link.Config{Rate: 1e9, Delay: time.Millisecond, Overhead: sim.OverheadEthernet}
	for _, end := range []struct {
		node *sim.Node
		addr string
		link sim.Shape
	}{
		{client, "10.0.0.1", sim.Symmetric("wifi", slow)},
		{client, "10.0.1.1", sim.Symmetric("lte", slow)},
		{server, "10.0.2.1", sim.Symmetric("server", fast)},
	} {
		s.Connect("", sim.IfaceConfig{Node: end.node, Addrs: []netip.Addr{netip.MustParseAddr(end.addr)}}, sim.IfaceConfig{Router: r}, end.link)
	}
	s.ComputeRoutes()
	t := s.StartTransfer(client, server, sim.TransferConfig{
		AB: 16 << 20, To: netip.MustParseAddrPort("10.0.2.1:80"), ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(),
	})
	fmt.Println(s.RunUntil(time.Minute, t.Delivered), s.Violations())
	for _, l := range s.Links()[:2] {
		fmt.Println(l.Name, l.AB.Stats().ArrivedBytes > 6<<20)
	}
	// Output:
	// true []
	// wifi true
	// lte true
}

// What the hosts do must not depend on how packets are carried.
func TestFastSimulationDoesTheSame(t *testing.T) {
	type outcome struct {
		last   time.Duration
		paths  [4]sim.DirectionStats
		totals host.SubflowTotals
		events uint64
	}
	run := func(fast bool) (o outcome) {
		paths := fastAndSlow()
		paths[0].AB.Loss, paths[1].BA.Loss, paths[1].AB.Reorder = 0.005, 0.01, 0.01
		paths[1].SegmentMax = 16 << 10
		p := sim.TwoHosts(sim.PairConfig{Seed: 5, Fast: fast, Paths: paths})
		tr := p.Start(sim.TransferConfig{AB: 4 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		require.True(t, p.RunUntil(time.Minute, tr.Ended))
		require.Empty(t, p.Violations())
		for i, l := range p.Links {
			o.paths[2*i], o.paths[2*i+1] = l.AB.Stats(), l.BA.Stats()
		}
		o.last, o.totals, o.events = tr.ProgramB.LastByte.Duration(), tr.ConnA.SubflowTotals(), p.Events()
		return o
	}
	checked := run(false)
	require.NotZero(t, checked.totals.SegmentsRetransmitted)
	require.Equal(t, checked, run(true))
}

func TestFastSimulationForgetsConnections(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 6, Fast: true, Paths: fastAndSlow()})
	tr := p.Start(sim.TransferConfig{AB: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	require.True(t, p.RunUntil(time.Minute, tr.ProgramB.Delivered))
	require.Len(t, p.A.Conns(), 1)
	require.True(t, p.RunUntil(time.Minute, tr.Ended))
	require.Empty(t, p.A.Conns())
	require.Empty(t, p.B.Conns())
}

func fatTree(k int) *sim.FatTree {
	shape := sim.Symmetric("", link.Config{Rate: 100e6, Delay: 20 * time.Microsecond, QueueBytes: 150_000})
	return sim.NewFatTree(sim.FatTreeConfig{Seed: 7, K: k, Link: shape})
}

func TestFatTreeHasItsShape(t *testing.T) {
	for _, k := range []int{4, 8} {
		f := fatTree(k)
		require.Len(t, f.Hosts, k*k*k/4)
		require.Len(t, f.Core, k*k/4)
		require.Len(t, f.Aggregation, k*k/2)
		require.Len(t, f.Edge, k*k/2)
		require.Len(t, f.FabricLinks, k*k*k/2)
		to := f.Permutation()
		heard := make([]bool, len(to))
		for i, j := range to {
			require.NotEqual(t, i, j)
			require.False(t, heard[j])
			heard[j] = true
		}
	}
}

// A subflow keeps to one way; many subflows between two pods use them all.
func TestFatTreeSpreadsFlows(t *testing.T) {
	unraced(t)
	f := fatTree(4)
	conn := sim.ConnWith("", "", "")
	conn.PathManager = nil
	const flows = 40
	var all []*sim.Transfer
	for i := range flows {
		all = append(all, f.StartTransfer(f.Hosts[0], f.Hosts[15], sim.TransferConfig{
			AB: 50_000, To: netip.AddrPortFrom(f.Addr(15), uint16(1000+i)), ConnA: conn, ConnB: conn,
		}))
	}
	delivered := func() bool {
		for _, tr := range all {
			if !tr.Delivered() {
				return false
			}
		}
		return true
	}
	require.True(t, f.RunUntil(time.Minute, delivered))
	require.Empty(t, f.Violations())
	used, bytes := 0, uint64(0)
	for _, l := range f.FabricLinks {
		// Links into the core and out of it: end B is a core router.
		if n := l.AB.Stats().ArrivedBytes; len(l.Name) > 4 && l.Name[:4] == "aggr" && n > 0 {
			used++
			bytes += n
		}
	}
	require.Equal(t, 4, used, "all four cores")
	var sent uint64
	for _, tr := range all {
		sent += uint64(tr.ProgramB.Received) + tr.ConnA.SubflowTotals().BytesRetransmitted
	}
	require.LessOrEqual(t, bytes, sent, "no packet goes two ways")
	for _, r := range append(append(f.Core, f.Aggregation...), f.Edge...) {
		require.Zero(t, r.NoRoute())
	}
}

// Subflows that are kept apart use each way once before they use one twice, and
// hosts may have links of their own.
func TestFatTreeKeepsSubflowsApart(t *testing.T) {
	link100 := sim.Symmetric("", link.Config{Rate: 100e6, Delay: 20 * time.Microsecond, QueueBytes: 150_000})
	feeder := link100
	feeder.AB.QueueBytes = 1_500_000
	for _, tt := range []struct{ k, from, to, ways int }{
		{4, 0, 15, 4}, {8, 0, 127, 16}, // by way of the core: (k/2)^2
		{4, 0, 2, 2}, {8, 0, 4, 4}, // within a pod: k/2
	} {
		f := sim.NewFatTree(sim.FatTreeConfig{Seed: 7, K: tt.k, Link: link100, HostLink: &feeder, Apart: true})
		require.Equal(t, 1_500_000, f.HostLinks[0].AB.Config().QueueBytes)
		require.Equal(t, 150_000, f.HostLinks[0].BA.Config().QueueBytes)
		require.Equal(t, 150_000, f.FabricLinks[0].AB.Config().QueueBytes)
		half := tt.k / 2
		edge, back := f.Edge[tt.from/half], f.Edge[tt.to/half]
		counts := map[[2]int]int{}
		for i := range 2 * tt.ways {
			a, b := netip.AddrPortFrom(f.Addr(tt.from), uint16(1000+i)), netip.AddrPortFrom(f.Addr(tt.to), 80)
			up, core := edge.Choice(a, b), 0
			require.Equal(t, up, edge.Choice(a, b), "a subflow keeps its way")
			require.Equal(t, up, back.Choice(b, a), "and its answers take it, too")
			if tt.ways > half {
				core = f.Aggregation[tt.from/half/half*half+up].Choice(a, b)
			}
			counts[[2]int{up, core}]++
		}
		require.Len(t, counts, tt.ways)
		for _, n := range counts {
			require.Equal(t, 2, n)
		}
	}
}

// Two connections between different hosts share what is common to their paths.
func TestBottleneckIsShared(t *testing.T) {
	unraced(t)
	path := sim.Symmetric("shared", link.Config{Rate: 20e6, Delay: 10 * time.Millisecond, QueueBytes: 100_000})
	b := sim.NewBottlenecks(sim.BottlenecksConfig{Seed: 8, Paths: []sim.Shape{path}, Left: 2, Right: 2})
	require.Equal(t, "shared", b.Paths[0].Name)
	var rate [2]float64
	var all [2]*sim.Transfer
	for i := range all {
		all[i] = b.StartTransfer(b.Left[i], b.Right[i], sim.TransferConfig{
			AB: 64 * mib, To: netip.AddrPortFrom(b.Addr(sim.EndB, i, 0), 80), ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(),
		})
	}
	b.RunFor(10 * time.Second)
	var before [2]int64
	for i := range all {
		before[i] = all[i].ProgramB.Received
	}
	b.RunFor(30 * time.Second)
	for i := range all {
		rate[i] = float64(all[i].ProgramB.Received-before[i]) * 8 / 30
	}
	require.InDelta(t, 20e6, rate[0]+rate[1], 2e6)
	require.InDelta(t, 1, rate[0]/rate[1], 0.6)
	require.Empty(t, b.Violations())
}

func TestLongerPrefixGoesFirst(t *testing.T) {
	s := sim.New(9)
	r, far := s.NewRouter("r"), s.NewRouter("far")
	a, b := s.NewNode("a", host.Config{}), s.NewNode("b", host.Config{})
	toB := netip.MustParseAddrPort("10.9.1.1:80")
	s.Connect("a", sim.IfaceConfig{Node: a, Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}, sim.IfaceConfig{Router: r}, sim.Shape{})
	one := s.Connect("one", sim.IfaceConfig{Router: r}, sim.IfaceConfig{Router: far}, sim.Shape{})
	two := s.Connect("two", sim.IfaceConfig{Router: r}, sim.IfaceConfig{Router: far}, sim.Shape{})
	s.Connect("b", sim.IfaceConfig{Node: b, Addrs: []netip.Addr{toB.Addr()}}, sim.IfaceConfig{Router: far}, sim.Shape{})
	r.AddRoute(netip.MustParsePrefix("10.9.0.0/16"), one)
	r.AddRoute(netip.MustParsePrefix("10.9.1.0/24"), one)
	r.AddRoute(netip.MustParsePrefix("10.9.1.0/24"), two)
	far.AddRoute(netip.MustParsePrefix("10.0.0.0/16"), one)
	tr := s.StartTransfer(a, b, sim.TransferConfig{AB: 100_000, To: toB, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	require.True(t, s.RunUntil(time.Minute, tr.Delivered))
	require.Zero(t, one.AB.Stats().Packets)
	require.NotZero(t, two.AB.Stats().Packets)
	require.NotZero(t, one.BA.Stats().Packets)
	require.Zero(t, two.BA.Stats().Packets)
	_, err := a.Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.77.0.1:80"), sim.DefaultConn(), nil)
	require.NoError(t, err)
	s.RunFor(10 * time.Millisecond)
	require.EqualValues(t, 1, r.NoRoute())
}
