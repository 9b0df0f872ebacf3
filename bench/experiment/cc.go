package experiment

import (
	"math"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/cc"
)

func init() {
	Register(Experiment{
		Name:    "cc",
		Summary: "every congestion control: fairness, pooling, loss, a path that slows down, queues that mark",
		Source:  "RFC 6356, Section 2 (goals); Khalili et al., CoNEXT 2012 (pooling); RFC 8257 (marking); RFC 8382 (shared bottlenecks); Mathis et al., CCR 1997 (Reno)",
		Plan:    planCC,
		Reduce:  reduceCC,
	})
}

// ccTrials are the networks that every congestion control is tried on.
var ccTrials = []struct {
	name string
	run  func(u *Unit, name string, warm, d time.Duration) error
	warm [2]int // seconds, of a quick and a full run
	long [2]int
}{
	{"fair", ccFair, [2]int{2, 20}, [2]int{6, 100}},
	{"pool", ccPool, [2]int{2, 20}, [2]int{4, 60}},
	{"half", ccHalf, [2]int{3, 10}, [2]int{3, 5}},
	{"lossy", ccLossy, [2]int{1, 3}, [2]int{1, 10}},
}

// ccAlone are the controls that are no Reno when alone, and what one TCP of the same
// kind is. Beside a Reno even that one has more than half of a queue, or less,
// so whether a connection takes what one TCP would is seen beside its own kind only.
// A wVegas with one subflow is Vegas with as many segments queued.
var ccAlone = map[string]string{
	"cubic": "cubic", "bbr": "bbr", "coupled-bbr": "bbr", "vegas": "vegas", "wvegas": "wvegas",
}

// ccUncoupled are the controls of which each subflow is a TCP of its own.
var ccUncoupled = []string{"reno", "dctcp", "cubic", "bbr", "vegas"}

// marking are the controls that live on marks.
var ccMarking = []string{"dctcp", "xmp", "mdtcp", "lia-dctcp", "mptcpd"}

func planCC(o Options) Plan {
	p := Plan{Params: map[string]any{
		"overhead bytes": ethernet, "controls": cc.Names(),
		"fairness": "judged beside one Reno; of what is no Reno when alone (CUBIC, BBR, Vegas and what is made of them) beside one TCP of its own kind",
	}}
	seconds := func(s [2]int) time.Duration { return time.Duration(Pick(o, s[0], s[1])) * time.Second }
	for _, name := range cc.Names() {
		for _, t := range ccTrials {
			if !ccPlanned(o.Quick, name) {
				continue
			}
			p.Cases = append(p.Cases, Case{t.name + " " + name, func(u *Unit) error {
				return t.run(u, name, seconds(t.warm), seconds(t.long))
			}})
		}
		if fair := ccTrials[0]; ccAlone[name] != "" && ccPlanned(o.Quick, name) {
			p.Cases = append(p.Cases, Case{"own " + name, func(u *Unit) error {
				return ccOwn(u, name, seconds(fair.warm), seconds(fair.long))
			}})
			if ccAlone[name] == name {
				p.Cases = append(p.Cases, Case{"single " + name, func(u *Unit) error {
					return ccSingle(u, name, seconds(fair.warm), seconds(fair.long))
				}})
			}
		}
	}
	for _, name := range ccMarking {
		p.Cases = append(p.Cases, Case{"marks " + name, func(u *Unit) error {
			return ccMarks(u, name, 50*time.Millisecond, Pick[time.Duration](o, 50, 500)*time.Millisecond)
		}})
	}
	add := func(name string, run func(u *Unit) error) { p.Cases = append(p.Cases, Case{name, run}) }
	long := Pick[time.Duration](o, 60, 1000) * time.Second
	add("reno every", func(u *Unit) error { return ccSaw(u, 0, 20*time.Second, long) })
	add("reno random", func(u *Unit) error { return ccSaw(u, 1e-3, 20*time.Second, long) })
	long = Pick[time.Duration](o, 10, 100) * time.Second
	for _, t := range ccSharedTrials {
		add("shared "+t.name, func(u *Unit) error { return ccShared(u, t.links, t.tcp, long) })
	}
	return p
}

// ccPlanned reports whether a control is tried.
func ccPlanned(quick bool, name string) bool {
	return !quick || slices.Contains([]string{"cubic", "olia", "bbr", "default"}, name)
}

// ccFairness judges how much of a queue two subflows take, and returns the values
// judged.
func ccFairness(metric func(trial, key, unit, name string) *Metric, name string) []float64 {
	fair := metric("fair", "fairness", "", name)
	if ccAlone[name] != "" {
		fair = metric("own", "fairness to its own", "", name)
	}
	if slices.Contains(ccUncoupled, name) {
		fair.Between(1.6, 2.4)
	} else {
		fair.Between(.8, 1.3)
	}
	if ccAlone[name] == name {
		metric("single", "one beside Reno", "", name)
	}
	return fair.Values
}

func reduceCC(r *Results, rep *Report) {
	has := func(name string) bool {
		return slices.ContainsFunc(r.Plan.Cases, func(c Case) bool { return c.Name == name })
	}
	metric := func(trial, key, unit, name string) *Metric {
		return rep.Metric(key+" "+name, unit, r.Values(trial+" "+name, key))
	}
	bars := figure.Bars{
		Title: "Congestion controls", Note: "Shares of what framing allows, but for fairness: goodput of two subflows over that of one TCP in the same queue, a Reno or of their own kind. Mean and 95 % interval over the seeds",
		Y: figure.Axis{Label: "ratio"}, Groups: []string{"fairness", "pooling", "after halving", "lossy links"}, Refs: []figure.Ref{{Y: 1, Label: "1"}},
	}
	for _, name := range cc.Names() {
		if !has("fair " + name) {
			continue
		}
		fair := ccFairness(metric, name)
		pool := metric("pool", "pooling", "", name)
		if name == "olia" || name == "balia" {
			pool.AtLeast(.85)
		}
		metric("pool", "pooling tcp", "", name)
		metric("half", "after halving", "", name)
		lossy := metric("lossy", "lossy", "", name)
		if name == "bbr" {
			lossy.AtLeast(.8)
		}
		bars.Series = append(bars.Series, BarsOf(name, [][]float64{
			fair, r.Values("pool "+name, "pooling"),
			r.Values("half "+name, "after halving"), r.Values("lossy "+name, "lossy"),
		}))
	}
	rep.Figure(&bars)
	for _, name := range ccMarking {
		use, queue := metric("marks", "utilisation", "", name), metric("marks", "queue", "packets", name)
		if name != "lia-dctcp" {
			use.AtLeast(.95)
			queue.AtMost(25)
		}
	}
	metric("reno", "window", "segments", "every").Paper(math.Sqrt(1.5 / 1e-3)).Within(.1)
	metric("reno", "window", "segments", "random").Paper(1.31 / math.Sqrt(1e-3)).Within(.1)
	for _, t := range ccSharedTrials {
		grouped := metric("shared", "grouped", "of verdicts", t.name)
		if len(t.links) == 1 {
			grouped.AtLeast(.9)
		} else {
			grouped.AtMost(.1)
		}
	}
}
