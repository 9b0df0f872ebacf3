package experiment

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "datacenter",
		Summary: "a fat tree in which every host sends to one other, by 1 to 8 subflows",
		Source:  "Raiciu et al., SIGCOMM 2011, Section 4: random permutation in a fat tree, throughput by number of subflows; what the paper leaves open as in htsim, its authors' simulator",
		Seeds:   3,
		Plan:    planDatacenter,
		Reduce:  reduceDatacenter,
	})
}

// Links of the fat tree: of 100 Mb/s with queues of 100 packets, as in the
// paper's packet simulations. Of their simulator, htsim in the form that was
// published later (main_tcp_permutation), are that a host queues up to 1000
// packets of its own, that the subflows of a connection take different ways, and
// that slow start ends at 15 packets.
var fatLink = link.Config{Rate: 100e6, Delay: 20 * time.Microsecond, QueueBytes: 100 * fatPacket, Overhead: sim.OverheadEthernet}

const (
	fatPacket   = 1500 + sim.OverheadEthernet // bytes
	fatFeeder   = 1000                        // packets
	fatSsthresh = 15                          // packets
)

func subflowCounts(o Options) []int { return Pick(o, []int{1, 8}, []int{1, 2, 4, 8}) }

func planDatacenter(o Options) Plan {
	k := Pick(o, 4, 8)
	warm := Pick(o, 500*time.Millisecond, time.Second)
	measure := Pick(o, time.Second, 2*time.Second)
	p := Plan{Params: map[string]any{
		"k": k, "hosts": k * k * k / 4, "links Mb/s": 100, "queue packets": 100, "hosts' queue packets": fatFeeder,
		"ssthresh packets": fatSsthresh, "ways": "different", "congestion control": "lia",
		"overhead bytes": sim.OverheadEthernet, "warm-up s": warm.Seconds(), "measured s": measure.Seconds(),
	}}
	for _, n := range subflowCounts(o) {
		p.Cases = append(p.Cases, Case{fmt.Sprint(n), func(u *Unit) error { return runDatacenter(u, k, n, warm, measure) }})
	}
	return p
}

func runDatacenter(u *Unit, k, subflows int, warm, measure time.Duration) error {
	hostLink := sim.Symmetric("", fatLink)
	hostLink.AB.QueueBytes = fatFeeder * fatPacket
	net := sim.NewFatTree(sim.FatTreeConfig{
		Seed: u.Seed, Fast: true, K: k, Link: sim.Symmetric("", fatLink), HostLink: &hostLink, Apart: true,
	})
	conn := u.Conn("", "lia", "")
	conn.PathManager = pathmgr.NDiffPorts(subflows)
	if subflows == 1 {
		conn = u.Plain("reno")
	}
	conn.Subflow.InitialSsthresh = fatSsthresh * 1428
	starts := u.Rand("starts")
	flows := make([]*workload.Bulk, len(net.Hosts))
	var failed error
	for from, to := range net.Permutation() {
		srv, err := workload.NewServer(net.Sim, net.Hosts[to], netip.AddrPortFrom(net.Addr(to), 80), conn)
		if err != nil {
			return err
		}
		net.After(time.Duration(starts.Int64N(int64(100*time.Millisecond))), func() {
			session, err := srv.Open(net.Hosts[from], netip.AddrPort{}, conn)
			if err != nil {
				failed = err
				return
			}
			flows[from] = workload.Upload(session)
		})
	}
	net.RunFor(warm)
	if failed != nil {
		return failed
	}
	before := make([]int64, len(flows))
	for i, f := range flows {
		before[i] = f.Received()
	}
	net.RunFor(measure)
	// The optimum: every host sends at the rate of its link.
	share, optimum := mptcpShare, fatLink.Rate
	if subflows == 1 {
		share = tcpShare
	}
	rates := make([]float64, len(flows))
	for i, f := range flows {
		rates[i] = float64(f.Received()-before[i]) * 8 / measure.Seconds() / (share * optimum)
	}
	u.Set("share of optimum", Mean(rates))
	slices.Sort(rates)
	u.AddSeries("flows", nil, rates)
	return u.Check(net.Sim)
}

func reduceDatacenter(r *Results, rep *Report) {
	const key = "share of optimum"
	var x []float64
	var values [][]float64
	for _, n := range subflowCounts(r.Options) {
		v := r.Values(fmt.Sprint(n), key)
		m := rep.Metric(fmt.Sprintf("throughput with %d", n), "of optimum", v)
		switch n {
		case 1:
			m.Paper(0.5).Between(0.35, 0.65)
		case 8:
			m.Paper(0.9).AtLeast(0.85)
		}
		x, values = append(x, float64(n)), append(values, v)
	}
	rep.Metric("gain of 8 subflows", "", Ratios(values[len(values)-1], values[0]))
	note := "Random permutation, links of 100 Mb/s, queues of 100 packets, LIA (one subflow: Reno), different ways for the subflows, 38 bytes a packet of framing"
	rep.Figure(&figure.XY{
		Title: "Throughput by number of subflows", Note: note,
		X: figure.Axis{Label: "subflows"}, Y: figure.Axis{Label: "share of the optimum"}, Lines: []figure.Line{LineOf("mptcp", x, values)},
		Points: []figure.Points{PaperMarks("mptcp", []float64{1, 8}, []float64{0.5, 0.9})},
	})
	ranks := figure.XY{Title: "Throughput of each connection", Note: note, X: figure.Axis{Label: "share of the optimum"}, Y: figure.Axis{Label: "share of connections"}}
	for _, n := range subflowCounts(r.Options) {
		ranks.Lines = append(ranks.Lines, figure.Distribution(fmt.Sprint(n), Quantiles(r.Samples(fmt.Sprint(n), "flows"), 100)))
	}
	rep.Figure(&ranks)
}
