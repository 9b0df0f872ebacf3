package experiment

import (
	"maps"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
)

func init() {
	Register(Experiment{
		Name:    "slides-iperf3x10",
		Summary: "iperf over three links of 10 Mb/s: 27.85 Mb/s, and 9.415 over one by TCP",
		Source:  "slides on multipath TCP: iperf of 1000 s, 3.32 and 1.12 MB/s, which are MiB: 27.85 and 9.395 Mb/s",
		Seeds:   3,
		Plan:    planIperf,
		Reduce:  reduceIperf,
	})
}

func planIperf(o Options) Plan {
	warm, measure := 5*time.Second, Pick(o, 20*time.Second, 100*time.Second)
	p := Plan{Params: map[string]any{"warm-up s": warm.Seconds(), "measured s": measure.Seconds()}}
	maps.Copy(p.Params, threeLinks{}.params())
	p.Cases = []Case{
		{"mptcp", func(u *Unit) error { return runIperf(u, u.Conn("", "", ""), warm, measure) }},
		{"tcp", func(u *Unit) error { return runIperf(u, u.Plain(""), warm, measure) }},
	}
	return p
}

func runIperf(u *Unit, conn host.ConnConfig, warm, measure time.Duration) error {
	net := newThreeLinks(u.Seed, host.Config{}, host.Config{})
	srv, err := workload.NewServer(net.Sim, net.A, netip.AddrPortFrom(net.addrA(0), 5001), conn)
	if err != nil {
		return err
	}
	session, err := srv.Open(net.B, netip.AddrPortFrom(net.addrB(0), 0), conn)
	if err != nil {
		return err
	}
	up := workload.Upload(session)
	var seconds, rates []float64
	up.Report(time.Second, func(i workload.Interval) {
		seconds, rates = append(seconds, i.End.Seconds()), append(rates, i.Rate(time.Second)/1e6)
	})
	u.Set("goodput Mb/s", Goodput(net.Sim, up.Received, warm, measure))
	u.AddSeries("rate Mb/s", seconds, rates)
	return u.Check(net.Sim)
}

func reduceIperf(r *Results, rep *Report) {
	const key = "goodput Mb/s"
	mptcp, tcp := 30*mptcpShare, 10*tcpShare
	rep.Metric("goodput mptcp", "Mb/s", r.Values("mptcp", key)).Paper(27.85).Between(0.99*mptcp, 1.01*mptcp)
	rep.Metric("goodput tcp", "Mb/s", r.Values("tcp", key)).Paper(9.395).Between(0.99*tcp, 1.01*tcp)
	rep.Metric("gain", "", Ratios(r.Values("mptcp", key), r.Values("tcp", key))).Paper(27.85 / 9.395)
	rep.Figure(&figure.Bars{
		Title: "Goodput of iperf", Note: "Three links of 10 Mb/s, 38 bytes a packet of framing. The slides say 26.6 Mb/s: 3.32 MiB/s taken for MB/s.",
		Y: figure.Axis{Label: "Mb/s"}, Groups: []string{"goodput"},
		Series: []figure.Bar{BarOf("mptcp", r.Values("mptcp", key)), BarOf("tcp", r.Values("tcp", key))},
		Refs:   []figure.Ref{{Y: mptcp, Label: "framing ceiling"}},
	})
	xy := figure.XY{Title: "Rate in each second", Note: "As iperf -i 1 shows it, 38 bytes a packet of framing, seed 1", X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Mb/s"}}
	for _, name := range []string{"mptcp", "tcp"} {
		s := r.Series(name, "rate Mb/s")[0]
		xy.Lines = append(xy.Lines, figure.Line{Name: name, X: s.X, Y: s.Y})
	}
	rep.Figure(&xy)
}
