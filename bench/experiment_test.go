package bench

import (
	"strings"
	"testing"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// BenchmarkExperiment runs the quick form of each experiment that does not
// read the clock, all its units one after another, and reports the metrics that
// it is judged by.
func BenchmarkExperiment(b *testing.B) {
	for _, e := range experiment.List() {
		if e.Clocked {
			continue
		}
		b.Run(e.Name, func(b *testing.B) {
			for b.Loop() {
				rep := quickReport(b, e)
				for _, m := range rep.Metrics {
					if m.Judged() {
						b.ReportMetric(experiment.Mean(m.Values), benchUnit(m))
					}
				}
			}
		})
	}
}

func quickReport(b *testing.B, e *experiment.Experiment) *experiment.Report {
	o := experiment.Options{Quick: true}
	plan, seeds := e.Plan(o), e.SeedList(o, 0)
	var outcomes []experiment.Outcome
	for _, c := range plan.Cases {
		for _, seed := range seeds {
			out, err := experiment.Execute(c, seed, o)
			if err != nil {
				b.Fatal(err)
			}
			outcomes = append(outcomes, out)
		}
	}
	results, err := experiment.NewResults(o, plan, seeds, outcomes)
	if err != nil {
		b.Fatal(err)
	}
	rep, _, err := e.Conclude(results)
	if err != nil {
		b.Fatal(err)
	}
	return rep
}

// benchUnit makes the name of a metric a unit, which has no spaces.
func benchUnit(m *experiment.Metric) string {
	name := strings.Join(strings.Fields(m.Key), "-")
	if m.Unit == "" {
		return name
	}
	return name + "-" + strings.Join(strings.Fields(m.Unit), "-")
}
