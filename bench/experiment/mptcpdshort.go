package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "mptcpd-short",
		Summary: "short flows of eight subflows on four links, with and without those that share one",
		Source:  "Zhao et al., INFOCOM 2017, abstract: up to 46 % less power for short flows than with link-sharing subflows, completion times the same; the mechanism is our reconstruction",
		Plan:    planMPTCPDShort,
		Reduce:  reduceMPTCPDShort,
	})
}

var shortLoads = []float64{.3, .6}

func planMPTCPDShort(o Options) Plan {
	// A second has some thousand flows, of which a p99 is ten.
	arrivals := Pick[time.Duration](o, 100, 4000) * time.Millisecond
	p := Plan{Params: map[string]any{
		"arrivals s": arrivals.Seconds(),
		"links":      4, "link Mb/s": 1000, "flows KB": []int{10, 300}, "loads": shortLoads, "subflows": 8,
		"power proxy": "subflow-seconds: what the paper holds subflows to cost beyond the bytes; packets are listed beside it",
	}}
	for _, load := range shortLoads {
		for _, known := range []string{"", "path"} {
			p.Cases = append(p.Cases, Case{shortCase(load, known), func(u *Unit) error {
				return runShort(u, load, known, arrivals)
			}})
		}
	}
	return p
}

func shortCase(load float64, known string) string { return fmt.Sprintf("load %.1f %s", load, known) }

// runShort begins flows at random for a while and waits until all are done.
func runShort(u *Unit, load float64, known string, d time.Duration) error {
	const least, most = 10_000, 300_000
	h := newHashed(u, 4)
	rng := u.Rand("flows")
	conn := h.conn(u, known)
	every := (least + most) / 2 * 8 / (load * 4 * ccGoodput(1000) * 1e6) // seconds between flows
	var flows, live []*sim.Transfer
	for at, port := rng.ExpFloat64()*every, 10_000; at < d.Seconds(); at, port = at+rng.ExpFloat64()*every, port+1 {
		size := least + rng.Int64N(most-least)
		h.After(time.Duration(at*1e9), func() {
			t := h.start(conn, port, size, false)
			t.ConnA.SetFlowSize(size)
			flows, live = append(flows, t), append(live, t)
		})
	}
	used := 0.0
	const look = 100 * time.Microsecond
	for h.Elapsed() < d || len(live) > 0 && h.Elapsed() < d+time.Second {
		h.RunFor(look)
		live = slices.DeleteFunc(live, func(t *sim.Transfer) bool {
			if t.ProgramB.Delivered() {
				return true
			}
			n, _ := h.active(t)
			used += float64(n) * look.Seconds()
			return false
		})
	}
	if len(live) > 0 {
		return fmt.Errorf("%d flows were not done after %v", len(live), h.Elapsed())
	}
	var times []float64
	for _, t := range flows {
		times = append(times, t.ProgramB.LastByte.Sub(t.ProgramA.Begun).Seconds()*1e3)
	}
	packets := 0.0
	for _, l := range h.links {
		packets += float64(l.AB.Stats().Packets + l.BA.Stats().Packets)
	}
	slices.Sort(times)
	u.Set("mean ms", Mean(times))
	u.Set("p99 ms", Quantile(times, .99))
	u.Set("subflow seconds", used)
	u.Set("packets", packets)
	return u.Check(h.Sim)
}

func reduceMPTCPDShort(r *Results, rep *Report) {
	bars := figure.Bars{
		Title: "Short flows without link-sharing subflows", Note: "Relative to eight subflows on four links; mean and 95 % interval over the seeds",
		Y: figure.Axis{Label: "ratio"}, Groups: []string{"mean", "p99", "subflow-seconds", "packets"}, Refs: []figure.Ref{{Y: 1, Label: "eight subflows"}},
	}
	for _, load := range shortLoads {
		ratio := func(key string) []float64 {
			return Ratios(r.Values(shortCase(load, "path"), key), r.Values(shortCase(load, ""), key))
		}
		mean, p99, used, packets := ratio("mean ms"), ratio("p99 ms"), ratio("subflow seconds"), ratio("packets")
		saved := make([]float64, len(used))
		for i := range used {
			saved[i] = 1 - used[i]
		}
		name := fmt.Sprintf("load %.1f", load)
		rep.Metric("mean time, "+name, "of eight subflows'", mean).AtMost(1.05)
		rep.Metric("p99 time, "+name, "of eight subflows'", p99).AtMost(1.05)
		rep.Metric("packets, "+name, "of eight subflows'", packets)
		rep.Metric("power proxy saved, "+name, "", saved).Paper(.46).AtLeast(.3)
		bars.Series = append(bars.Series, BarsOf(name, [][]float64{mean, p99, used, packets}))
	}
	rep.Figure(&bars)
}
