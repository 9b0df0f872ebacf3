package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Overhead that the framing of Ethernet costs a packet: preamble, header,
// checksum and gap.
const ethernet = 38

func init() {
	Register(Experiment{
		Name:    "two-paths",
		Summary: "goodput over 30 and 10 Mb/s together, against what framing allows",
		Source:  "RFC 6182, Section 2.1: at least as good as the best path; the sum when alone",
		Plan:    planTwoPaths,
		Reduce:  reduceTwoPaths,
	})
}

// twoPathsCeiling is the payload rate of both links full of packets of 1500
// bytes with timestamps and a DSS option, in Mb/s.
const twoPathsCeiling = 40.0 * 1428 / (1500 + ethernet)

func planTwoPaths(o Options) Plan {
	warm, measure := 5*time.Second, Pick(o, 5*time.Second, 30*time.Second)
	p := Plan{Params: map[string]any{
		"rates Mb/s": []int{30, 10}, "round trips ms": []int{20, 60}, "loss": 1e-4,
		"overhead bytes": ethernet, "warm-up s": warm.Seconds(), "measured s": measure.Seconds(),
	}}
	for _, congestion := range []string{"cubic", "lia"} {
		p.Cases = append(p.Cases, Case{congestion, func(u *Unit) error {
			return runTwoPaths(u, u.Conn("", congestion, ""), warm, measure)
		}})
	}
	p.Cases = append(p.Cases, Case{"tcp", func(u *Unit) error {
		return runTwoPaths(u, u.Plain("cubic"), warm, measure)
	}})
	return p
}

func runTwoPaths(u *Unit, conn host.ConnConfig, warm, measure time.Duration) error {
	var paths []sim.Shape
	for _, l := range []link.Config{{Rate: 30e6, Delay: 10 * time.Millisecond}, {Rate: 10e6, Delay: 30 * time.Millisecond}} {
		l.Overhead, l.Loss = ethernet, 1e-4
		paths = append(paths, sim.Shape{AB: l, BA: l, MTU: u.Profile.MTU()})
	}
	// The quick form, and that with traces, has the bytes of all packets.
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: !u.Quick && u.TraceDir == "", Paths: paths})
	u.Trace(net.Sim)
	rates := ProbeRates(net.Sim, 100*time.Millisecond, Payload(net.Links[0].AB), Payload(net.Links[1].AB))
	t := net.Start(sim.TransferConfig{AB: 1 << 40, ConnA: conn, ConnB: conn, StayOpen: true})
	net.RunFor(warm)
	before := t.ProgramB.Received
	net.RunFor(measure)
	u.Set("goodput Mb/s", float64(t.ProgramB.Received-before)*8/measure.Seconds()/1e6)
	for i, r := range rates.Rates {
		u.AddSeries([]string{"path0", "path1"}[i], rates.Seconds, r)
	}
	return u.Check(net.Sim)
}

func reduceTwoPaths(r *Results, rep *Report) {
	const key = "goodput Mb/s"
	tcp := r.Values("tcp", key)
	bars := figure.Bars{
		Title: "Goodput of one connection", Note: "Links of 30 and 10 Mb/s, round trips 20 and 60 ms, 38 bytes a packet of framing, loss 0.01 %; mean and 95 % interval over the seeds",
		Y: figure.Axis{Label: "Mb/s"}, Groups: []string{"goodput"},
		Refs: []figure.Ref{{Y: twoPathsCeiling, Label: "framing ceiling"}},
	}
	for _, c := range r.Plan.Cases {
		v := r.Values(c.Name, key)
		m := rep.Metric("goodput "+c.Name, "Mb/s", v)
		if c.Name == "cubic" {
			m.Paper(twoPathsCeiling).AtLeast(0.9 * twoPathsCeiling)
		}
		if c.Name != "tcp" {
			rep.Metric("gain "+c.Name, "", Ratios(v, tcp)).AtLeast(1)
		}
		bars.Series = append(bars.Series, BarOf(c.Name, v))
	}
	rep.Figure(&bars)
	first := func(name string) figure.Line {
		s := r.Series("cubic", name)[0]
		return figure.Line{Name: name, X: s.X, Y: s.Y, Step: true}
	}
	rep.Figure(&figure.XY{
		Title: "Rate per path, cubic", Note: "Payload arriving in each 100 ms, seed 1",
		X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Mb/s"},
		Stacks: []figure.Line{first("path0"), first("path1")},
		Lines:  []figure.Line{{Name: "framing ceiling", Ref: true, X: []float64{0, r.Plan.Params["measured s"].(float64) + 5}, Y: []float64{twoPathsCeiling, twoPathsCeiling}}},
	})
}
