package experiment

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "redundant-latency",
		Summary: "latency of 1 KB requests and responses over two paths that lose 2 %",
		Source:  "ReMP (Frommgen et al., INFOCOM 2016) for the idea; the bound is this module's own claim",
		Plan:    planRedundantLatency,
		Reduce:  reduceRedundantLatency,
	})
}

var redundantSchemes = []string{"tcp", "minrtt", "default", "redundant-idle", "opportunistic-redundant", "redundant"}

func planRedundantLatency(o Options) Plan {
	length := Pick(o, 100*time.Second, 20*time.Minute)
	p := Plan{Params: map[string]any{
		"rates Mb/s": []int{20, 20}, "round trips ms": []int{20, 30}, "loss each way": 0.02, "request and response bytes": 1000,
		"think time ms": 50, "length s": length.Seconds(), "overhead bytes": sim.OverheadEthernet,
	}}
	for _, scheme := range redundantSchemes {
		p.Cases = append(p.Cases, Case{scheme, func(u *Unit) error { return runRedundantLatency(u, scheme, length) }})
	}
	return p
}

func runRedundantLatency(u *Unit, scheme string, length time.Duration) error {
	var paths []sim.Shape
	for _, delay := range []time.Duration{10 * time.Millisecond, 15 * time.Millisecond} {
		s := sim.Symmetric("", link.Config{Rate: 20e6, Delay: delay, Loss: 0.02, Overhead: sim.OverheadEthernet})
		s.MTU = u.Profile.MTU()
		paths = append(paths, s)
	}
	conn := u.Plain("cubic")
	if scheme != "tcp" {
		conn = u.Conn(scheme, "cubic", "")
	}
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths})
	srv, err := workload.NewServer(net.Sim, net.B, netip.AddrPortFrom(net.AddrB(0), 80), conn)
	if err != nil {
		return err
	}
	session, err := srv.Open(net.A, netip.AddrPort{}, conn)
	if err != nil {
		return err
	}
	a := workload.Asking{Request: 1000, Response: 1000, Think: 50 * time.Millisecond}
	a.Start(net.Sim, session)
	net.RunFor(length)
	const warm = 20 // until all subflows are there
	if len(a.Latencies) < 10*warm {
		return errors.New("too few responses")
	}
	var ms []float64
	for _, l := range a.Latencies[warm:] {
		ms = append(ms, l.Seconds()*1e3)
	}
	slices.Sort(ms)
	u.Set("median ms", Quantile(ms, 0.5))
	u.Set("p99 ms", Quantile(ms, 0.99))
	u.AddSeries("latency ms", nil, Quantiles(ms, 500))
	return u.Check(net.Sim)
}

func reduceRedundantLatency(r *Results, rep *Report) {
	xy := figure.XY{
		Title: "Latency of a request of 1 KB", Note: "Two paths of 20 Mb/s, round trips of 20 and 30 ms, loss of 2 % each way; 38 bytes a packet of framing",
		X: figure.Axis{Label: "ms", Log: true}, Y: figure.Axis{Label: "share of requests"},
	}
	for _, scheme := range redundantSchemes {
		rep.Metric("median "+scheme, "ms", r.Values(scheme, "median ms"))
		rep.Metric("p99 "+scheme, "ms", r.Values(scheme, "p99 ms"))
		m := rep.Metric("p99 over minrtt, "+scheme, "", Ratios(r.Values(scheme, "p99 ms"), r.Values("minrtt", "p99 ms")))
		if scheme == "redundant" {
			m.AtMost(0.5)
		}
		xy.Lines = append(xy.Lines, figure.Distribution(scheme, Quantiles(r.Samples(scheme, "latency ms"), 200)))
	}
	rep.Figure(&xy)
}
