package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gomptcp/gomptcp/bench/energy"
	"github.com/gomptcp/gomptcp/bench/experiment"
)

// job is an experiment that is being run.
type job struct {
	*experiment.Experiment
	options experiment.Options
	plan    experiment.Plan
	seeds   []uint64
	store   *store
	done    []record
	failed  error // the first unit's failure
	left    int   // units of this run not done yet
}

// file is the name of the experiment's files, without ending: that of the
// experiment, and that of the profile unless it is the usual one.
func (j *job) file() string { return fileName(j.Name, j.options.Profile) }

func fileName(name string, p experiment.Profile) string {
	if p == experiment.Modern {
		return name
	}
	return name + "." + p.String()
}

// task is a unit to be run.
type task struct {
	job  *job
	c    experiment.Case
	seed uint64
}

// result is what became of a task.
type result struct {
	task
	record
	err error
}

// runner runs the units of all chosen experiments.
type runner struct {
	options        *options
	stdout, stderr io.Writer
	jobs           []*job
	progress       *progress
	begun          time.Time
	commit         string // of the tree when it began; "" = unknown
	modified       bool   // the tree differed from it
	energy         *energy.Meter
	noEnergy       error // why energy can't be read
}

func newRunner(o *options, stdout, stderr io.Writer) *runner {
	r := &runner{options: o, stdout: stdout, stderr: stderr, begun: time.Now()}
	r.commit, r.modified = revision()
	r.energy, r.noEnergy = energy.Open(energy.System())
	return r
}

// run simulates what is not done yet and writes the results of every
// experiment whose units are all there.
func (r *runner) run(ctx context.Context) error {
	defer r.close()
	var shared, alone []task // those that read the clock run alone
	for _, e := range r.options.experiments {
		j, tasks, err := r.open(e)
		if err != nil {
			return err
		}
		r.jobs = append(r.jobs, j)
		if e.Clocked {
			alone = append(alone, tasks...)
		} else {
			shared = append(shared, tasks...)
		}
	}
	if r.options.shards > 0 {
		if err := writeManifest(r.options); err != nil {
			return err
		}
		shared, alone = part(shared, r.options), part(alone, r.options)
	}
	r.count(shared, alone)
	if len(r.options.merge) > 0 && len(shared)+len(alone) > 0 {
		t := append(shared, alone...)[0]
		return fmt.Errorf("the shards lack %d units, such as %s: case %s, seed %d", len(shared)+len(alone), t.job.Name, t.c.Name, t.seed)
	}
	r.progress = newProgress(r.stderr, r.jobs, r.options.workers)
	err := r.drain(ctx, shared, r.options.workers)
	if err == nil {
		err = r.drain(ctx, alone, 1)
	}
	r.progress.clear()
	if err != nil || r.options.shards > 0 {
		return errors.Join(err, r.failures())
	}
	return errors.Join(r.conclude(), r.failures())
}

// open prepares an experiment and returns the units that are still to be run.
func (r *runner) open(e *experiment.Experiment) (*job, []task, error) {
	j := &job{
		Experiment: e, options: r.options.Options, plan: e.Plan(r.options.Options),
		seeds: e.SeedList(r.options.Options, r.options.seeds),
	}
	if r.options.trace {
		j.options.TraceDir = filepath.Join(r.options.out, "traces", j.file())
	}
	var err error
	if j.store, err = newStore(r.options.out, j); err != nil {
		return nil, nil, err
	}
	if r.options.trace {
		if err := j.store.forget(); err != nil {
			return nil, nil, err
		}
	}
	records, aside, err := j.store.open()
	if err != nil {
		return nil, nil, err
	}
	if aside {
		fmt.Fprintf(r.stderr, "%s: the outcomes in %s were %v: begun anew\n", e.Name, r.options.out, errOtherHeading)
	}
	type unit struct {
		name string
		seed uint64
	}
	have := make(map[unit]bool)
	for _, rec := range records {
		have[unit{rec.Case, rec.Seed}] = true
	}
	j.done = records
	var tasks []task
	names := make(map[string]bool)
	for _, c := range j.plan.Cases {
		if names[c.Name] {
			return nil, nil, fmt.Errorf("%s has two cases %q", e.Name, c.Name)
		}
		names[c.Name] = true
		for _, seed := range j.seeds {
			if !have[unit{c.Name, seed}] {
				tasks = append(tasks, task{j, c, seed})
			}
		}
	}
	return j, tasks, nil
}

// part returns the tasks of one shard. Which units those are must not depend
// on what is done already, so the place in the plan counts.
func part(tasks []task, o *options) []task {
	var mine []task
	for _, t := range tasks {
		if t.place()%o.shards == o.shard {
			mine = append(mine, t)
		}
	}
	return mine
}

// place is the number of a unit in its experiment.
func (t task) place() int {
	for i, c := range t.job.plan.Cases {
		if c.Name == t.c.Name {
			return i*len(t.job.seeds) + int(t.seed) - 1
		}
	}
	return 0
}

func (r *runner) count(lists ...[]task) {
	for _, list := range lists {
		for _, t := range list {
			t.job.left++
		}
	}
}

// drain runs tasks, so many at once, and keeps their outcomes. It returns at
// once when ctx ends: units under way are lost, as they can not be stopped.
func (r *runner) drain(ctx context.Context, tasks []task, workers int) error {
	todo, results := make(chan task), make(chan result)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	for range min(workers, len(tasks)) {
		go func() {
			runtime.LockOSThread() // for the processor time
			for {
				select {
				case t := <-todo:
					res := t.run()
					select {
					case results <- res:
					case <-stop.Done():
						return
					}
				case <-stop.Done():
					return
				}
			}
		}()
	}
	for next, running := 0, 0; next < len(tasks) || running > 0; {
		var feed chan task
		var t task
		if next < len(tasks) {
			feed, t = todo, tasks[next]
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case feed <- t:
			next, running = next+1, running+1
		case res := <-results:
			running--
			if err := r.keep(res); err != nil {
				return err
			}
		case <-r.progress.ticks():
			r.progress.show()
		}
	}
	return nil
}

// run runs a unit.
func (t task) run() result {
	began := experiment.ThreadCPU()
	out, err := experiment.Execute(t.c, t.seed, t.job.options)
	return result{t, record{out, (experiment.ThreadCPU() - began).Seconds()}, err}
}

// keep stores the outcome of a unit.
func (r *runner) keep(res result) error {
	j := res.job
	j.left--
	r.joules()
	r.progress.note(res)
	if res.err != nil {
		if j.failed == nil {
			j.failed = fmt.Errorf("%s: %w", j.Name, res.err)
		}
		return nil
	}
	j.done = append(j.done, res.record)
	return j.store.add(res.record)
}

// conclude writes the results of every experiment that is complete, and the
// index of all in the directory.
func (r *runner) conclude() error {
	var all error
	for _, j := range r.jobs {
		if j.failed != nil || j.left > 0 {
			continue
		}
		res, rep, err := r.write(j)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		r.print(res, rep)
	}
	return errors.Join(all, writeIndex(r.options.out))
}

func (r *runner) failures() error {
	var all error
	for _, j := range r.jobs {
		all = errors.Join(all, j.failed)
	}
	return all
}

func (r *runner) close() {
	for _, j := range r.jobs {
		j.store.close()
	}
}
