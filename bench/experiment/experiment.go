package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Experiment is what can be run by name.
type Experiment struct {
	Name    string // of flags and files: lower-case letters, digits, hyphens
	Summary string // one line, for -list
	Source  string // whose claim it checks: paper or document, and where in it
	// Clocked says that units read the clock of the machine. They run alone,
	// one after another, and are not part of "all". Their metrics are judged by
	// the median over the seeds, which are then the rounds of one run.
	Clocked    bool
	Seeds      int // of a full run; 0 = 5
	QuickSeeds int // of a quick run; 0 = 1

	// Plan returns the cases for some options. It must return the same for the
	// same options, always.
	Plan func(Options) Plan
	// Reduce makes metrics and figures of the outcomes of all units. It may
	// rely on each value being there for each case and seed.
	Reduce func(*Results, *Report)
}

// Options are the choices of whoever runs an experiment.
type Options struct {
	Quick   bool    // fewer points, shorter runs: at most 12 seconds of processor time in all
	Profile Profile // what the hosts are like
	Dir     string  // where the results go, for what is kept beside them; "" = nowhere
	// TraceDir is where units that offer traces put them; "" = nowhere. It has
	// no influence on outcomes.
	TraceDir string
}

// Pick returns quick in a quick run and full in a full one.
func Pick[T any](o Options, quick, full T) T {
	if o.Quick {
		return quick
	}
	return full
}

// Plan says what is to be simulated.
type Plan struct {
	// Params are the parameters that hold for all cases, for the result file:
	// numbers, strings, and lists of them.
	Params map[string]any
	Cases  []Case
}

// Case is one setting of an experiment.
type Case struct {
	Name string // unique in the experiment
	// Run simulates the case for the unit's seed and notes what it measured
	// there. It runs on one goroutine while other units run on others.
	Run func(*Unit) error
}

// Defaults of Experiment.
const (
	defaultSeeds      = 5
	defaultQuickSeeds = 1
)

// SeedList returns the seeds to run: 1 to n, and if n is 0 as many as the
// experiment wants for the options.
func (e *Experiment) SeedList(o Options, n int) []uint64 {
	if n == 0 {
		n = Pick(o, max(e.QuickSeeds, defaultQuickSeeds), e.Seeds)
	}
	if n == 0 {
		n = defaultSeeds
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

var (
	registry  = map[string]*Experiment{}
	validName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
)

// Register makes an experiment known. It panics on an unusable or taken name;
// it is for the init functions of this package and of tests.
func Register(e Experiment) {
	switch {
	case !validName.MatchString(e.Name) || e.Name == "all" || e.Name == "index":
		panic(fmt.Sprintf("experiment: %q is no name for an experiment", e.Name))
	case registry[e.Name] != nil:
		panic(fmt.Sprintf("experiment: %q is there twice", e.Name))
	case e.Plan == nil || e.Reduce == nil:
		panic(fmt.Sprintf("experiment: %s lacks Plan or Reduce", e.Name))
	}
	registry[e.Name] = &e
}

// List returns all experiments by name.
func List() []*Experiment {
	all := make([]*Experiment, 0, len(registry))
	for _, e := range registry {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Experiment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Select returns the experiments of a list of names separated by commas; "all"
// stands for every one that is not clocked.
func Select(names string) ([]*Experiment, error) {
	var chosen []*Experiment
	add := func(e *Experiment) {
		if !slices.Contains(chosen, e) {
			chosen = append(chosen, e)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		switch e := registry[strings.TrimSpace(name)]; {
		case e != nil:
			add(e)
		case strings.TrimSpace(name) == "all":
			for _, e := range List() {
				if !e.Clocked {
					add(e)
				}
			}
		default:
			return nil, fmt.Errorf("no experiment is called %q; -list shows all", strings.TrimSpace(name))
		}
	}
	return chosen, nil
}
