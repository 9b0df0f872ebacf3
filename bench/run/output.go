package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomptcp/gomptcp/bench/experiment"
	"github.com/gomptcp/gomptcp/bench/figure"
)

// write reduces a complete experiment and writes its files.
func (r *runner) write(j *job) (*experiment.Result, *experiment.Report, error) {
	outcomes := make([]experiment.Outcome, len(j.done))
	for i, rec := range j.done {
		outcomes[i] = rec.Outcome
	}
	results, err := experiment.NewResults(j.options, j.plan, j.seeds, outcomes)
	if err != nil {
		return nil, nil, err
	}
	rep, res, err := j.Conclude(results)
	if err != nil {
		return nil, nil, err
	}
	object, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	host, err := json.MarshalIndent(r.hostOf(j), "", "  ")
	if err != nil {
		return nil, nil, err
	}
	base := filepath.Join(r.options.out, j.file())
	if rep.Cover > 0 {
		if err := writeFile(base+".cover.svg", []byte(figure.Sheet(rep.Figures[:rep.Cover], 2))); err != nil {
			return nil, nil, err
		}
	}
	return res, rep, errors.Join(
		writeFile(base+".json", append(object, '\n')),
		writeFile(base+".csv", table(results)),
		writeFile(base+".svg", []byte(figure.Sheet(rep.Figures, 2))),
		writeFile(base+".host.json", append(host, '\n')),
	)
}

// table writes every value and series, one number a line. Values have no x.
func table(r *experiment.Results) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"case", "seed", "key", "x", "y"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, c := range r.Plan.Cases {
		for _, out := range r.Outcomes(c.Name) {
			seed := strconv.FormatUint(out.Seed, 10)
			for _, key := range slices.Sorted(maps.Keys(out.Values)) {
				w.Write([]string{c.Name, seed, key, "", number(out.Values[key])})
			}
			for _, key := range slices.Sorted(maps.Keys(out.Series)) {
				s := out.Series[key]
				for i, y := range s.Y {
					x := ""
					if s.X != nil {
						x = number(s.X[i])
					}
					w.Write([]string{c.Name, seed, key, x, number(y)})
				}
			}
		}
	}
	w.Flush()
	return []byte(b.String())
}

// writeFile writes a file so that nobody ever sees half of it.
func writeFile(name string, b []byte) error {
	if err := os.WriteFile(name+".tmp", b, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}
