package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "slides-sixlinks",
		Summary: "one connection over six links of 10 Gb/s with packets of 9000 bytes",
		Source:  "slides on multipath TCP: 51.8 Gb/s of 60, limited by processors, which a simulation does not know",
		Seeds:   3,
		Plan:    planSixLinks,
		Reduce:  reduceSixLinks,
	})
}

// sixLinksCeiling is the payload rate in Gb/s: 8928 of 9038 bytes.
const sixLinksCeiling = 60.0 * (9000 - 20 - 20 - 12 - 20) / (9000 + sim.OverheadEthernet)

func planSixLinks(o Options) Plan {
	warm, measure := 200*time.Millisecond, Pick(o, 50*time.Millisecond, 200*time.Millisecond)
	p := Plan{Params: map[string]any{
		"links Gb/s": []int{10, 10, 10, 10, 10, 10}, "MTU": 9000, "round trip ms": 0.2, "queue bytes": 1 << 20,
		"overhead bytes": sim.OverheadEthernet, "warm-up s": warm.Seconds(), "measured s": measure.Seconds(),
	}}
	p.Cases = []Case{{"six", func(u *Unit) error { return runSixLinks(u, 6, warm, measure) }}}
	if !o.Quick {
		p.Cases = append(p.Cases, Case{"one", func(u *Unit) error { return runSixLinks(u, 1, warm, measure) }})
	}
	return p
}

func runSixLinks(u *Unit, n int, warm, measure time.Duration) error {
	l := link.Config{Rate: 10e9, Delay: 100 * time.Microsecond, QueueBytes: 1 << 20, Overhead: sim.OverheadEthernet}
	paths := make([]sim.Shape, n)
	for i := range paths {
		paths[i] = sim.Shape{AB: l, BA: l, MTU: 9000}
	}
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths})
	conn := u.Conn("", "", "fullmesh")
	t := net.Start(sim.TransferConfig{AB: unbounded, ConnA: conn, ConnB: conn})
	const period = 10 * time.Millisecond
	rates := ProbeRates(net.Sim, period, func() uint64 { return uint64(t.ProgramB.Received) })
	u.Set("goodput Gb/s", Goodput(net.Sim, func() int64 { return t.ProgramB.Received }, warm, measure)/1e3)
	y := make([]float64, len(rates.Seconds))
	for i := range y {
		y[i] = rates.Rates[0][i] / 1e3
	}
	u.AddSeries("rate Gb/s", rates.Seconds, y)
	return u.Check(net.Sim)
}

func reduceSixLinks(r *Results, rep *Report) {
	v := r.Values("six", "goodput Gb/s")
	share := make([]float64, len(v))
	for i := range v {
		share[i] = v[i] / sixLinksCeiling
	}
	rep.Metric("goodput", "Gb/s", v).Paper(51.8)
	rep.Metric("share of the framing ceiling", "", share).AtLeast(0.95)
	if !r.Quick {
		rep.Metric("gain over one link", "", Ratios(v, r.Values("one", "goodput Gb/s"))).AtLeast(0.95 * 6)
	}
	xy := figure.XY{
		Title: "Goodput over six links", Note: "Six links of 10 Gb/s, round trip 0.2 ms, packets of 9000 bytes, 38 bytes a packet of framing, seed 1",
		X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Gb/s"},
	}
	s := r.Series("six", "rate Gb/s")[0]
	xy.Lines = []figure.Line{
		{Name: "six links", X: s.X, Y: s.Y},
		{Name: "framing ceiling", Ref: true, X: []float64{0, s.X[len(s.X)-1]}, Y: []float64{sixLinksCeiling, sixLinksCeiling}},
		{Name: "slides", Ref: true, X: []float64{0, s.X[len(s.X)-1]}, Y: []float64{51.8, 51.8}},
	}
	rep.Figure(&xy)
}
