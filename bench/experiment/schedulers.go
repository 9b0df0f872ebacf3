package experiment

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/scheduler"
)

func init() {
	Register(Experiment{
		Name:    "schedulers",
		Summary: "aggregation benefit of every scheduler in random environments of two and three paths",
		Source:  "Paasch et al., CSWS 2014, for the measure; that the default is never worse than the best path is this module's own claim",
		Seeds:   10,
		Plan:    planSchedulers,
		Reduce:  reduceSchedulers,
	})
}

// schedulerPolicies are those compared; the default comes first.
func schedulerPolicies(o Options) []string {
	if o.Quick {
		return []string{scheduler.Default, "minrtt", "ecf", "blest"}
	}
	all := slices.DeleteFunc(scheduler.Names(), func(n string) bool { return n == scheduler.Default })
	return append([]string{scheduler.Default}, all...)
}

func schedulerControls(o Options) []string {
	return Pick(o, []string{"cubic"}, []string{"cubic", "default"})
}

func schedulerCase(congestion string, i int) string { return fmt.Sprintf("%s %03d", congestion, i) }

func planSchedulers(o Options) Plan {
	envs := environments(Pick(o, 12, 240))
	p := Plan{Params: map[string]any{
		"environments": len(envs), "paths": "2 or 3", "rates Mb/s": []float64{0.3, 100}, "round trips ms": []int{10, 400},
		"queues bandwidth-delay products": []float64{0.2, 4}, "loss": []float64{0, 0.02}, "files bytes": []int{256_000, 2_000_000, 20_000_000},
		"receive buffers bytes": "tuned or 262144", "congestion control": schedulerControls(o), "first path": "that with the least round trip",
		"single path": "MPTCP with one subflow", "overhead bytes": sim.OverheadEthernet,
	}}
	for _, congestion := range schedulerControls(o) {
		for i := range envs {
			e := &envs[i]
			p.Cases = append(p.Cases, Case{schedulerCase(congestion, i), func(u *Unit) error {
				best, sum, err := e.singles(u, congestion)
				if err != nil {
					return err
				}
				u.Set("best Mb/s", best/1e6)
				u.Set("sum Mb/s", sum/1e6)
				for _, policy := range schedulerPolicies(u.Options) {
					g, err := e.send(u, u.Conn(policy, congestion, ""), -1)
					if err != nil {
						return fmt.Errorf("%s: %w", policy, err)
					}
					u.Set(policy+" Mb/s", g/1e6)
				}
				return nil
			}})
		}
	}
	return p
}

// benefits returns the benefit and the goodput over that of the best path, one
// an environment, of means over the seeds.
func benefits(r *Results, congestion, policy string, only func(*environment) bool) (ben, ratio []float64) {
	envs := environments(r.Plan.Params["environments"].(int))
	for i := range envs {
		if !only(&envs[i]) {
			continue
		}
		name := schedulerCase(congestion, i)
		g, best := Mean(r.Values(name, policy+" Mb/s")), Mean(r.Values(name, "best Mb/s"))
		ben = append(ben, benefit(g, best, Mean(r.Values(name, "sum Mb/s"))))
		ratio = append(ratio, g/best)
	}
	return ben, ratio
}

// below returns 1 for each value below 0, otherwise 0.
func below(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if v < 0 {
			out[i] = 1
		}
	}
	return out
}

func reduceSchedulers(r *Results, rep *Report) {
	any := func(*environment) bool { return true }
	for _, congestion := range schedulerControls(r.Options) {
		note := fmt.Sprintf("%d environments of 2 or 3 paths, %s; means over %d seeds; 38 bytes a packet of framing", r.Plan.Params["environments"], congestion, len(r.Seeds))
		xy := figure.XY{
			Title: "Aggregation benefit, " + congestion, Note: note,
			X: figure.Axis{Label: "0 = the best path alone, 1 = all paths add up"}, Y: figure.Axis{Label: "share of environments"}, Height: 420,
		}
		rival := math.Inf(-1)
		for _, policy := range schedulerPolicies(r.Options) {
			ben, _ := benefits(r, congestion, policy, any)
			rep.Metric(fmt.Sprintf("benefit %s, %s", policy, congestion), "", ben)
			rep.Metric(fmt.Sprintf("below 0 %s, %s", policy, congestion), "", below(ben))
			if policy != scheduler.Default {
				rival = max(rival, Mean(ben))
			}
			xy.Lines = append(xy.Lines, figure.Distribution(policy, Quantiles(ben, 100)))
		}
		ben, _ := benefits(r, congestion, scheduler.Default, any)
		lead := rep.Metric("lead of default, "+congestion, "", []float64{Mean(ben) - rival})
		large, ratio := benefits(r, congestion, scheduler.Default, func(e *environment) bool { return e.file >= 20_000_000 })
		under := rep.Metric("below 0 default 20 MB, "+congestion, "", below(large))
		worst := rep.Metric("least of best path default 20 MB, "+congestion, "", []float64{slices.Min(ratio)})
		if congestion == "cubic" {
			lead.AtLeast(0)
			under.AtMost(0.03)
			worst.AtLeast(0.9)
		}
		rep.Figure(&xy)
	}
}
