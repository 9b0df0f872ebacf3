package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomptcp/gomptcp/bench/experiment"
	"github.com/gomptcp/gomptcp/bench/figure"
)

//go:embed index.html.tmpl
var indexSource string

var indexTemplate = template.Must(template.New("index").Parse(indexSource))

// indexEntry is an experiment on the page.
type indexEntry struct {
	Anchor, Title   string
	Summary, Source string
	Verdict, Class  string
	Panels          []template.HTML
	Rows            []indexRow
	Params, Host    []indexPair
	Seeds           string
}

// indexRow is a metric.
type indexRow struct {
	Key, Unit, Mean, CI, Paper, Band, Says, Class string
	N                                             int
}

type indexPair struct{ Key, Value string }

// writeIndex writes the page that shows every result in the directory,
// whenever it was made. The page needs no other file.
func writeIndex(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	var entries []*indexEntry
	for _, f := range files {
		if strings.HasSuffix(f, ".host.json") {
			continue
		}
		e, err := readEntry(strings.TrimSuffix(f, ".json"))
		if err != nil {
			return err
		}
		if e != nil {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b *indexEntry) int { return strings.Compare(a.Title, b.Title) })
	var b strings.Builder
	err = indexTemplate.Execute(&b, struct {
		Style   template.CSS
		Entries []*indexEntry
	}{template.CSS(figure.Style()), entries})
	return errors.Join(err, writeFile(filepath.Join(dir, "index.html"), []byte(b.String())))
}

// readEntry reads the results with a common beginning of their files' names.
// It returns nil for what is no result.
func readEntry(base string) (*indexEntry, error) {
	b, err := os.ReadFile(base + ".json")
	if err != nil {
		return nil, err
	}
	var res experiment.Result
	if json.Unmarshal(b, &res) != nil || res.Verdict == "" {
		return nil, nil
	}
	e := &indexEntry{
		Anchor: filepath.Base(base), Title: filepath.Base(base), Verdict: res.Verdict,
		Class: verdictClass(res.Verdict), Seeds: ranges(res.Seeds),
	}
	if list, err := experiment.Select(res.Name); err == nil {
		e.Summary, e.Source = list[0].Summary, list[0].Source
	}
	for _, key := range slices.Sorted(maps.Keys(res.Metrics)) {
		e.Rows = append(e.Rows, rowOf(key, res.Metrics[key], &res))
	}
	e.Params = pairs(res.Params)
	if b, err := os.ReadFile(base + ".host.json"); err == nil {
		var host map[string]any
		if err := json.Unmarshal(b, &host); err != nil {
			return nil, fmt.Errorf("%s.host.json: %w", base, err)
		}
		delete(host, "name")
		e.Host = pairs(host)
	}
	sheet, err := os.ReadFile(base + ".svg")
	if err != nil {
		return nil, err
	}
	for _, p := range figure.Split(string(sheet)) {
		e.Panels = append(e.Panels, template.HTML(p))
	}
	return e, nil
}

func verdictClass(v string) string {
	first, _, _ := strings.Cut(v, " ")
	return first
}

func rowOf(key string, m experiment.MetricResult, res *experiment.Result) indexRow {
	r := indexRow{Key: key, Unit: m.Unit, N: m.N, Mean: show(m.Mean), Paper: show(m.Paper)}
	if m.CI95[0] != nil && m.CI95[1] != nil {
		r.CI = show(m.CI95[0]) + " to " + show(m.CI95[1])
	}
	switch lo, hi := m.Band[0], m.Band[1]; {
	case lo != nil && hi != nil:
		r.Band = show(lo) + " to " + show(hi)
	case lo != nil:
		r.Band = "at least " + show(lo)
	case hi != nil:
		r.Band = "at most " + show(hi)
	default:
		return r
	}
	switch {
	case res.Verdict == experiment.Smoke:
	case slices.Contains(res.Failed, key):
		r.Says, r.Class = "missed", "not"
	default:
		r.Says, r.Class = "holds", "reproduced"
	}
	return r
}

func show(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.4g", *v)
}

// pairs writes the members of an object, by name.
func pairs(object map[string]any) []indexPair {
	var list []indexPair
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, ok := object[key].(string)
		if !ok {
			b, err := json.Marshal(object[key])
			if err != nil {
				continue
			}
			value = string(b)
		}
		list = append(list, indexPair{key, value})
	}
	return list
}

// ranges writes numbers, runs of them by their ends.
func ranges(seeds []uint64) string {
	var parts []string
	for i := 0; i < len(seeds); {
		j := i
		for j+1 < len(seeds) && seeds[j+1] == seeds[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d to %d", seeds[i], seeds[j]))
		} else {
			parts = append(parts, fmt.Sprint(seeds[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
