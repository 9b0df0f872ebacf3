package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomptcp/gomptcp/bench/figure"
)

// Results are the outcomes of all units of a run.
type Results struct {
	Options
	Plan  Plan
	Seeds []uint64

	outcomes map[string][]Outcome // by case, in the order of the seeds
}

// NewResults puts outcomes in order. It returns an error that names a unit
// whose outcome is missing.
func NewResults(o Options, p Plan, seeds []uint64, outcomes []Outcome) (*Results, error) {
	type unit struct {
		name string
		seed uint64
	}
	have := make(map[unit]Outcome, len(outcomes))
	for _, out := range outcomes {
		have[unit{out.Case, out.Seed}] = out
	}
	r := &Results{Options: o, Plan: p, Seeds: seeds, outcomes: make(map[string][]Outcome)}
	for _, c := range p.Cases {
		for _, seed := range seeds {
			out, ok := have[unit{c.Name, seed}]
			if !ok {
				return nil, fmt.Errorf("case %s, seed %d is missing", c.Name, seed)
			}
			r.outcomes[c.Name] = append(r.outcomes[c.Name], out)
		}
	}
	return r, nil
}

// Outcomes returns the outcomes of a case, one a seed. It panics if there is
// no such case.
func (r *Results) Outcomes(name string) []Outcome {
	outs, ok := r.outcomes[name]
	if !ok {
		panic(fmt.Sprintf("the plan has no case %q", name))
	}
	return outs
}

// Values returns a value of a case, one a seed. It panics if a unit did not
// set it.
func (r *Results) Values(name, key string) []float64 {
	var all []float64
	for _, out := range r.Outcomes(name) {
		v, ok := out.Values[key]
		if !ok {
			panic(fmt.Sprintf("case %s, seed %d has no value %q", name, out.Seed, key))
		}
		all = append(all, v)
	}
	return all
}

// Series returns a series of a case, one a seed. It panics if a unit did not
// add it.
func (r *Results) Series(name, key string) []Series {
	var all []Series
	for _, out := range r.Outcomes(name) {
		s, ok := out.Series[key]
		if !ok {
			panic(fmt.Sprintf("case %s, seed %d has no series %q", name, out.Seed, key))
		}
		all = append(all, s)
	}
	return all
}

// Samples returns the Y of a series of a case, of all seeds together.
func (r *Results) Samples(name, key string) []float64 {
	var all []float64
	for _, s := range r.Series(name, key) {
		all = append(all, s.Y...)
	}
	return all
}

// Report is what an experiment says in the end.
type Report struct {
	Metrics []*Metric
	Figures []figure.Panel
	// Cover is how many panels, from the first on, are also written by
	// themselves, as NAME.cover.svg; 0 = none.
	Cover int

	clocked bool
}

// Metric is a measured quantity, with what others say it should be.
type Metric struct {
	Key    string
	Unit   string // "" for a pure number
	Values []float64

	paper   float64 // NaN = none
	lo, hi  float64 // band; infinite = open
	clocked bool    // judged by the median
}

// Metric adds a metric over values, which are usually one a seed.
func (r *Report) Metric(key, unit string, values []float64) *Metric {
	m := &Metric{
		Key: key, Unit: unit, Values: slices.Clone(values),
		paper: math.NaN(), lo: math.Inf(-1), hi: math.Inf(1), clocked: r.clocked,
	}
	r.Metrics = append(r.Metrics, m)
	return m
}

// Paper states the source's own value.
func (m *Metric) Paper(v float64) *Metric {
	m.paper = v
	return m
}

// Within demands a mean that differs from the paper's by no more than a
// fraction of it.
func (m *Metric) Within(fraction float64) *Metric {
	return m.Between(m.paper-math.Abs(m.paper)*fraction, m.paper+math.Abs(m.paper)*fraction)
}

// AtLeast demands a mean of lo or more.
func (m *Metric) AtLeast(lo float64) *Metric {
	m.lo = lo
	return m
}

// AtMost demands a mean of hi or less.
func (m *Metric) AtMost(hi float64) *Metric {
	m.hi = hi
	return m
}

// Between demands a mean from lo to hi.
func (m *Metric) Between(lo, hi float64) *Metric { return m.AtLeast(lo).AtMost(hi) }

// Judged reports whether the metric demands anything.
func (m *Metric) Judged() bool { return !math.IsInf(m.lo, -1) || !math.IsInf(m.hi, 1) }

// Holds reports whether the mean, or of a clocked experiment the median, is
// what is demanded.
func (m *Metric) Holds() bool {
	v := Mean(m.Values)
	if m.clocked {
		v, _, _ = m.middle()
	}
	return v >= m.lo && v <= m.hi
}

// middle returns the median, the least and the most of the values.
func (m *Metric) middle() (median, least, most float64) {
	if len(m.Values) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	sorted := slices.Sorted(slices.Values(m.Values))
	return Quantile(sorted, 0.5), sorted[0], sorted[len(sorted)-1]
}

// Figure adds a panel to the experiment's figure.
func (r *Report) Figure(p figure.Panel) { r.Figures = append(r.Figures, p) }

// Verdicts of a Result.
const (
	Reproduced    = "reproduced"
	NotReproduced = "not reproduced"
	Smoke         = "smoke" // a quick run: everything runs, nothing is judged
	Holding       = "holds" // of a clocked experiment: every metric is what it should be
	Short         = "short" // of a clocked experiment: some are not
)

// Result is what the result file of an experiment says.
type Result struct {
	Name    string                  `json:"name"`
	Params  map[string]any          `json:"params"`
	Seeds   []uint64                `json:"seeds"`
	Metrics map[string]MetricResult `json:"metrics"`
	Verdict string                  `json:"verdict"`
	Failed  []string                `json:"failed"`
}

// MetricResult is a metric in a Result; what is null is not known or not
// demanded.
type MetricResult struct {
	Unit  string      `json:"unit"`
	Mean  *float64    `json:"mean"`
	CI95  [2]*float64 `json:"ci95"`
	N     int         `json:"n"`
	Paper *float64    `json:"paper"`
	Band  [2]*float64 `json:"band"`

	// Of clocked experiments: the median over the rounds, and how far apart
	// the least and the most are.
	Median *float64 `json:"median,omitempty"`
	Spread *float64 `json:"spread,omitempty"`
}

// Conclude reduces results to a report and a result.
func (e *Experiment) Conclude(r *Results) (rep *Report, res *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: reducing: %v", e.Name, p)
		}
	}()
	rep = &Report{clocked: e.Clocked}
	e.Reduce(r, rep)
	res = &Result{
		Name: e.Name, Params: map[string]any{"profile": r.Profile.String(), "quick": r.Quick},
		Seeds: r.Seeds, Metrics: make(map[string]MetricResult), Failed: []string{},
	}
	for k, v := range r.Plan.Params {
		res.Params[k] = v
	}
	judged := false
	for _, m := range rep.Metrics {
		if _, twice := res.Metrics[m.Key]; twice {
			return nil, nil, fmt.Errorf("%s: metric %q is there twice", e.Name, m.Key)
		}
		res.Metrics[m.Key] = m.result()
		judged = judged || m.Judged()
		if m.Judged() && !m.Holds() {
			res.Failed = append(res.Failed, m.Key)
		}
	}
	switch {
	case !judged:
		return nil, nil, fmt.Errorf("%s: no metric is judged", e.Name)
	case r.Quick:
		res.Verdict, res.Failed = Smoke, []string{}
	case len(res.Failed) > 0 && e.Clocked:
		res.Verdict = Short
	case len(res.Failed) > 0:
		res.Verdict = NotReproduced
	case e.Clocked:
		res.Verdict = Holding
	default:
		res.Verdict = Reproduced
	}
	_, err = json.Marshal(res) // a parameter may be of no type that JSON has
	return rep, res, err
}

func (m *Metric) result() MetricResult {
	mean, lo, hi := Interval(m.Values)
	res := MetricResult{
		Unit: m.Unit, Mean: known(mean), CI95: [2]*float64{known(lo), known(hi)}, N: len(m.Values),
		Paper: known(m.paper), Band: [2]*float64{known(m.lo), known(m.hi)},
	}
	if m.clocked {
		median, least, most := m.middle()
		res.Median, res.Spread = known(median), known(most-least)
	}
	return res
}

// known returns nil for what is no finite number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Measured writes mean and interval, of a clocked experiment median, least and
// most, and the unit.
func (m *Metric) Measured() string {
	mean, lo, hi := Interval(m.Values)
	if m.clocked {
		mean, lo, hi = m.middle()
	}
	s := fmt.Sprintf("%.4g", mean)
	if !math.IsNaN(lo) && lo != hi {
		s += fmt.Sprintf(" (%.4g to %.4g)", lo, hi)
	}
	if m.Unit != "" {
		s += " " + m.Unit
	}
	return s
}

// Demand writes the paper's value and the band; "" if there is neither.
func (m *Metric) Demand() string {
	var s []string
	if !math.IsNaN(m.paper) {
		s = append(s, fmt.Sprintf("paper %.4g", m.paper))
	}
	switch {
	case math.IsInf(m.lo, -1) && math.IsInf(m.hi, 1):
	case math.IsInf(m.hi, 1):
		s = append(s, fmt.Sprintf("at least %.4g", m.lo))
	case math.IsInf(m.lo, -1):
		s = append(s, fmt.Sprintf("at most %.4g", m.hi))
	default:
		s = append(s, fmt.Sprintf("%.4g to %.4g", m.lo, m.hi))
	}
	if m.Judged() && !m.Holds() {
		s = append(s, "MISSED")
	}
	return strings.Join(s, ", ")
}
