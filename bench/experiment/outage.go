package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "outage",
		Summary: "the faster of two paths vanishes without notice and comes back",
		Source:  "seed slides, fail-over: traffic must resume",
		Plan:    planOutage,
		Reduce:  reduceOutage,
	})
}

// The outage, from the beginning of the connection, and the end of the run.
const (
	outageFrom = 8 * time.Second
	outageTo   = 13 * time.Second
	outageEnd  = 22 * time.Second
)

// Payload rates that framing allows, in Mb/s: of the path that stays, and of
// both.
const (
	outageStays = 10.0 * 1428 / (1500 + ethernet)
	outageBoth  = 40.0 * 1428 / (1500 + ethernet)
)

func planOutage(Options) Plan {
	p := Plan{Params: map[string]any{
		"rates Mb/s": []int{30, 10}, "round trips ms": []int{20, 60}, "overhead bytes": ethernet,
		"outage s": []float64{outageFrom.Seconds(), outageTo.Seconds()},
	}}
	for _, name := range []string{"mptcp", "tcp"} {
		p.Cases = append(p.Cases, Case{name, func(u *Unit) error {
			conn := u.Conn("", "", "")
			if name == "tcp" {
				conn = u.Plain("")
			}
			return runOutage(u, conn)
		}})
	}
	return p
}

func runOutage(u *Unit, conn host.ConnConfig) error {
	var paths []sim.Shape
	for _, l := range []link.Config{{Rate: 30e6, Delay: 10 * time.Millisecond}, {Rate: 10e6, Delay: 30 * time.Millisecond}} {
		l.Overhead, l.Loss = ethernet, 1e-5
		paths = append(paths, sim.Shape{AB: l, BA: l, MTU: u.Profile.MTU()})
	}
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Paths: paths})
	u.Trace(net.Sim)
	flows := WatchFlows(net.Sim, net.A, outageFrom-200*time.Millisecond, outageFrom+1300*time.Millisecond)
	rates := ProbeRates(net.Sim, 100*time.Millisecond, Payload(net.Links[0].AB), Payload(net.Links[1].AB))
	t := net.Start(sim.TransferConfig{AB: 1 << 40, ConnA: conn, ConnB: conn, StayOpen: true})
	// When it begins, against the packets' rhythm, is up to chance.
	shift := time.Duration(u.Rand("outage").Int64N(int64(100 * time.Millisecond)))
	net.After(outageFrom+shift, func() { net.Links[0].SetUp(false) })
	net.After(outageTo+shift, func() { net.Links[0].SetUp(true) })
	read := ProbeRates(net.Sim, 100*time.Millisecond, func() uint64 { return uint64(t.ProgramB.Received) })
	net.RunFor(outageEnd)
	got := read.Rates[0]
	u.Set("goodput during Mb/s", Mean(between(read.Seconds, got, outageFrom+time.Second, outageTo)))
	u.Set("longest silence s", silence(read.Seconds, got, outageFrom, outageEnd))
	u.Set("back s", back(read.Seconds, got, (outageTo+shift).Seconds(), 0.95*outageBoth))
	u.AddSeries("path0", rates.Seconds, rates.Rates[0])
	u.AddSeries("path1", rates.Seconds, rates.Rates[1])
	flows.Keep(u)
	return u.Check(net.Sim)
}

// between returns the rates of the periods that end within a time.
func between(x, y []float64, from, to time.Duration) (in []float64) {
	for i := range x {
		if x[i] > from.Seconds() && x[i] <= to.Seconds() {
			in = append(in, y[i])
		}
	}
	return in
}

// silence returns how long nothing was read at most.
func silence(x, y []float64, from, to time.Duration) (most float64) {
	run := 0.0
	for _, v := range between(x, y, from, to) {
		run += 0.1
		if v > 0 {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// back returns how long after a time the mean of a second first reached a
// rate; the rest of the run if it never did.
func back(x, y []float64, from, rate float64) float64 {
	for i := 9; i < len(x); i++ {
		if x[i-9] > from && Mean(y[i-9:i+1]) >= rate {
			return x[i-9] - from
		}
	}
	return x[len(x)-1] - from
}

func reduceOutage(r *Results, rep *Report) {
	rep.Metric("goodput during the outage", "Mb/s", r.Values("mptcp", "goodput during Mb/s")).Paper(outageStays).AtLeast(0.9 * outageStays)
	rep.Metric("longest silence", "s", r.Values("mptcp", "longest silence s")).AtMost(1)
	rep.Metric("back to 95 % after", "s", r.Values("mptcp", "back s")).AtMost(3)
	rep.Metric("longest silence of tcp", "s", r.Values("tcp", "longest silence s"))
	gone := figure.Shade{From: outageFrom.Seconds(), To: outageTo.Seconds(), Label: "path0 is down"}
	for _, name := range []string{"mptcp", "tcp"} {
		first := r.Outcomes(name)[0]
		line := func(path string) figure.Line {
			return figure.Line{Name: path, X: first.Series[path].X, Y: first.Series[path].Y, Step: true}
		}
		sum := &figure.XY{
			Title: "Rate per path through an outage: " + name, Note: "30 Mb/s with 20 ms and 10 Mb/s with 60 ms, 38 bytes a packet of framing; seed 1",
			X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Mb/s of payload", Max: 40},
			Stacks: []figure.Line{line("path0"), line("path1")}, Shades: []figure.Shade{gone},
			Lines: []figure.Line{{
				Name: "what the links allow", Ref: true, Step: true,
				X: []float64{0, outageFrom.Seconds(), outageTo.Seconds(), outageEnd.Seconds()},
				Y: []float64{outageBoth, outageStays, outageBoth, outageBoth},
			}},
		}
		rep.Figure(sum)
	}
	rep.Cover = 2
	for _, p := range FlowPanels(r, "mptcp", "mptcp, seed 1", gone) {
		rep.Figure(p)
	}
}
