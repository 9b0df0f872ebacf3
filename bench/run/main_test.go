package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/bench/experiment"
	"github.com/gomptcp/gomptcp/bench/figure"
)

// calls counts the units of the test's experiments that were run.
var calls atomic.Int64

func init() {
	// A quadratic of what a case is and what the seed drew: cheap, and
	// different for every unit.
	experiment.Register(experiment.Experiment{
		Name: "test-grid", Summary: "a grid for tests", Source: "nobody", Seeds: 3,
		Plan: func(o experiment.Options) experiment.Plan {
			p := experiment.Plan{Params: map[string]any{"length": experiment.Pick(o, 1, 2)}}
			for i := range 7 {
				p.Cases = append(p.Cases, experiment.Case{Name: fmt.Sprint("case", i), Run: func(u *experiment.Unit) error {
					calls.Add(1)
					x := u.Rand("x").Float64()
					u.Set("x", x)
					u.Set("y", x*x+float64(i))
					u.AddSeries("line", []float64{0, 1}, []float64{x, x + 1})
					u.SetHost("clock", 1)
					return nil
				}})
			}
			return p
		},
		Reduce: func(r *experiment.Results, rep *experiment.Report) {
			for _, c := range r.Plan.Cases {
				rep.Metric(c.Name, "m", r.Values(c.Name, "y")).AtMost(6)
			}
			rep.Figure(&figure.XY{Title: "line", Lines: []figure.Line{{Name: "path0", X: []float64{0, 1}, Y: r.Series("case0", "line")[0].Y}}})
		},
	})
	experiment.Register(experiment.Experiment{
		Name: "test-broken", Summary: "fails for its second seed", Source: "nobody",
		Plan: func(experiment.Options) experiment.Plan {
			return experiment.Plan{Cases: []experiment.Case{{Name: "only", Run: func(u *experiment.Unit) error {
				if u.Seed == 2 {
					return errors.New("seed of misfortune")
				}
				u.Set("v", 1)
				return nil
			}}}}
		},
		Reduce: func(r *experiment.Results, rep *experiment.Report) {
			rep.Metric("v", "", r.Values("only", "v")).AtLeast(0)
		},
	})
}

// lab runs a command line and returns what it printed and its exit code.
func lab(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

func mustLab(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := lab(t, args...)
	require.Zero(t, code, stderr)
	return stdout
}

// results returns the deterministic files of a directory.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), ".host.json") || e.Name() == "index.html" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(b)
	}
	return files
}

func TestSameSeedsSameFiles(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	mustLab(t, "-exp", "test-grid", "-out", a)
	mustLab(t, "-exp", "test-grid", "-out", b, "-j", "1")
	files := results(t, a)
	require.Equal(t, []string{"test-grid.csv", "test-grid.json", "test-grid.svg"}, slices.Sorted(maps.Keys(files)))
	require.Equal(t, files, results(t, b))
}

func TestFourShardsMergedAreOneRun(t *testing.T) {
	whole, merged := t.TempDir(), t.TempDir()
	mustLab(t, "-exp", "test-grid,two-paths", "-quick", "-out", whole)
	args := []string{"-merge"}
	for i := range 4 {
		dir := t.TempDir()
		mustLab(t, "-exp", "test-grid,two-paths", "-quick", "-shard", fmt.Sprintf("%d/4", i), "-out", dir)
		require.Empty(t, results(t, dir), "a shard writes outcomes only")
		args = append(args, dir)
	}
	before := calls.Load()
	_, stderr, code := lab(t, append(args[:4:4], "-out", t.TempDir())...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the shards lack", "one is missing")
	mustLab(t, append(args, "-out", merged)...)
	require.Equal(t, before, calls.Load(), "merging simulates nothing")
	require.Equal(t, results(t, whole), results(t, merged))
}

func TestShardsOfDifferentRunsAreNotMerged(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	mustLab(t, "-exp", "test-grid", "-quick", "-shard", "0/2", "-out", a)
	mustLab(t, "-exp", "test-grid", "-shard", "1/2", "-out", b)
	_, stderr, code := lab(t, "-merge", a, b, "-out", t.TempDir())
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "shards of different runs")

	_, stderr, code = lab(t, "-merge", t.TempDir(), "-out", t.TempDir())
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "holds no shard")

	c := t.TempDir()
	mustLab(t, "-exp", "test-grid", "-quick", "-shard", "0/1", "-out", c)
	_, stderr, code = lab(t, "-merge", c, "-out", c)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "-out is one of the shards")
	mustLab(t, "-merge", c, "-out", t.TempDir())
}

// What an interruption leaves is a store that ends anywhere, in the middle of
// a line too.
func TestInterruptedRunGoesOn(t *testing.T) {
	whole, dir := t.TempDir(), t.TempDir()
	mustLab(t, "-exp", "test-grid", "-out", whole)
	b, err := os.ReadFile(storeName(whole, "test-grid"))
	require.NoError(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	require.Len(t, lines, 1+7*3+1, "heading, units, and nothing after the last newline")
	cut := append(bytes.Join(lines[:11], nil), lines[11][:len(lines[11])/2]...)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, unitsDir), 0o755))
	require.NoError(t, os.WriteFile(storeName(dir, "test-grid"), cut, 0o644))

	before := calls.Load()
	mustLab(t, "-exp", "test-grid", "-out", dir)
	require.EqualValues(t, 21-10, calls.Load()-before)
	require.Equal(t, results(t, whole), results(t, dir))

	before = calls.Load()
	mustLab(t, "-exp", "test-grid", "-out", dir, "-seeds", "4")
	require.EqualValues(t, 7, calls.Load()-before, "more seeds: the new ones only")
}

func TestInterruptionKeepsWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o, err := parse([]string{"-exp", "test-grid", "-out", dir, "-j", "1"}, &bytes.Buffer{})
	require.NoError(t, err)
	r := newRunner(o, &bytes.Buffer{}, &bytes.Buffer{})
	before := calls.Load()
	plan := o.experiments[0].Plan
	counted := *o.experiments[0]
	counted.Plan = func(opts experiment.Options) experiment.Plan {
		p := plan(opts)
		inner := p.Cases[2].Run
		p.Cases[2].Run = func(u *experiment.Unit) error {
			cancel()
			return inner(u)
		}
		return p
	}
	o.experiments = []*experiment.Experiment{&counted}
	require.ErrorIs(t, r.run(ctx), context.Canceled)
	b, err := os.ReadFile(storeName(dir, "test-grid"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, bytes.Count(b, []byte("\n")), 1+6, "two cases of three seeds were done")
	require.Less(t, calls.Load()-before, int64(21))

	stdout, _, code := lab(t, "-exp", "test-grid", "-out", dir)
	require.Zero(t, code)
	require.Contains(t, stdout, "test-grid: not reproduced")
}

func TestOtherOptionsAreNotMixedIn(t *testing.T) {
	dir := t.TempDir()
	mustLab(t, "-exp", "test-grid", "-out", dir)
	before := calls.Load()
	_, stderr, code := lab(t, "-exp", "test-grid", "-quick", "-out", dir)
	require.Zero(t, code)
	require.Contains(t, stderr, "begun anew")
	require.EqualValues(t, 7, calls.Load()-before)
	require.FileExists(t, storeName(dir, "test-grid")+".old")

	mustLab(t, "-exp", "test-grid", "-quick", "-profile", "ns3-2015", "-out", dir)
	require.FileExists(t, filepath.Join(dir, "test-grid.ns3-2015.json"), "profiles have files of their own")
	require.FileExists(t, filepath.Join(dir, "test-grid.json"))
}

func TestVerdictsAndShape(t *testing.T) {
	dir := t.TempDir()
	stdout := mustLab(t, "-exp", "test-grid", "-json", "-out", dir)
	var res experiment.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &res))
	require.Equal(t, experiment.NotReproduced, res.Verdict)
	require.Equal(t, []string{"case6"}, res.Failed, "its mean is above 6")
	require.Equal(t, []uint64{1, 2, 3}, res.Seeds)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &object))
	require.Equal(t, []string{"failed", "metrics", "name", "params", "seeds", "verdict"}, slices.Sorted(maps.Keys(object)))
	metric := object["metrics"].(map[string]any)["case0"].(map[string]any)
	require.Equal(t, []string{"band", "ci95", "mean", "n", "paper", "unit"}, slices.Sorted(maps.Keys(metric)))
	require.Equal(t, []any{nil, 6.0}, metric["band"])
	require.Nil(t, metric["paper"])

	b, err := os.ReadFile(filepath.Join(dir, "test-grid.host.json"))
	require.NoError(t, err)
	var host hostRecord
	require.NoError(t, json.Unmarshal(b, &host))
	require.Equal(t, 21, host.Units)
	require.Equal(t, map[string]float64{"clock": 1}, host.Measured["case3"])
	require.NotEmpty(t, host.Energy, "where the energy was read, or why it was not")

	stdout = mustLab(t, "-exp", "test-grid", "-json", "-quick", "-out", dir)
	require.NoError(t, json.Unmarshal([]byte(stdout), &res))
	require.Equal(t, experiment.Smoke, res.Verdict)
	require.Empty(t, res.Failed)
}

func TestFailingUnitFailsTheRun(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, code := lab(t, "-exp", "test-broken,test-grid", "-out", dir, "-seeds", "2")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "test-broken: case only, seed 2: seed of misfortune")
	require.Contains(t, stdout, "test-grid:", "the others are finished")
	require.NoFileExists(t, filepath.Join(dir, "test-broken.json"))
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", "-exp is missing"},
		{"-exp nothing-like-it", `no experiment is called "nothing-like-it"`},
		{"-exp two-paths -profile ns2", `no profile is called "ns2"`},
		{"-exp two-paths -seeds -1", "-seeds -1 is not between"},
		{"-exp two-paths -shard 4/4", "-shard 4/4: write i/n"},
		{"-exp two-paths -shard 1of4", "-shard 1of4: write i/n"},
		{"-exp two-paths -shard 1/4x", "-shard 1/4x: write i/n"},
		{"-exp two-paths -j 0", "-j 0 is less than 1"},
		{"-exp two-paths stray", `unexpected argument "stray"`},
		{"-merge", "-merge needs the directories"},
		{"-merge -exp two-paths x", "-merge takes experiments and options from the shards"},
		{"-nonsense", "flag provided but not defined: -nonsense"},
	} {
		_, stderr, code := lab(t, strings.Fields(c.args)...)
		require.Equal(t, 2, code, c.args)
		require.Contains(t, stderr, c.says, c.args)
	}
}

func TestListNamesEveryExperiment(t *testing.T) {
	stdout := mustLab(t, "-list")
	for _, e := range experiment.List() {
		require.Contains(t, stdout, e.Name)
		require.Contains(t, stdout, e.Summary)
	}
}

func TestIndexShowsAllResultsOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	mustLab(t, "-exp", "test-grid", "-out", dir)
	mustLab(t, "-exp", "test-grid", "-quick", "-profile", "ns3-2015", "-out", dir)
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	page := string(b)
	for _, want := range []string{`id="test-grid"`, `id="test-grid.ns3-2015"`, "not reproduced", "smoke", "missed", "at most 6", "prefers-color-scheme:dark"} {
		require.Contains(t, page, want)
	}
	require.Equal(t, 2, strings.Count(page, `<svg class="fig panel"`), "every panel of every figure")
	for _, outside := range []string{"src=", "<link", "@import", "url(http"} {
		require.NotContains(t, page, outside, "the page needs no other file")
	}
}

func TestProgressLine(t *testing.T) {
	j := &job{Experiment: &experiment.Experiment{Name: "x"}, left: 4}
	p := newProgress(&bytes.Buffer{}, []*job{j}, 2)
	require.Nil(t, p.ticks(), "nobody sees it")
	require.Equal(t, "["+strings.Repeat(".", 30)+"] 0 of 4, x", p.line())
	j.left = 2
	p.note(result{task: task{job: j}, record: record{CPU: 10}})
	p.note(result{task: task{job: j}, record: record{CPU: 20}})
	require.Equal(t, "["+strings.Repeat("#", 15)+strings.Repeat(".", 15)+"] 2 of 4, 15s left, x", p.line())
}
