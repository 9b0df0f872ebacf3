package main

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// options are the settings of a run.
type options struct {
	experiment.Options
	list        bool
	names       string
	experiments []*experiment.Experiment
	seeds       int // 0 = as many as each experiment wants
	out         string
	json        bool
	trace       bool
	workers     int
	shard       int
	shards      int      // 0 = not sharded
	merge       []string // directories of shards
	command     []string // for the record
}

// parse reads the command line. Flags may come after directories.
func parse(args []string, errorOutput io.Writer) (*options, error) {
	o := &options{command: args}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	f.BoolVar(&o.list, "list", false, "list the experiments")
	f.StringVar(&o.names, "exp", "", "run these experiments: `names` separated by commas, or all")
	profile := f.String("profile", experiment.Modern.String(), "what hosts are like: "+strings.Join(experiment.Profiles[:], " or "))
	f.IntVar(&o.seeds, "seeds", 0, "run each case with seeds 1 to `N` (default: what the experiment says, mostly 5; 1 with -quick)")
	f.BoolVar(&o.Quick, "quick", false, "fewer points and shorter runs: shows that all runs, judges nothing")
	f.StringVar(&o.out, "out", "out/bench", "write results to this `directory`")
	f.BoolVar(&o.json, "json", false, "print results as JSON, one a line")
	f.IntVar(&o.workers, "j", runtime.GOMAXPROCS(0), "run so many simulations at once")
	f.BoolVar(&o.trace, "trace", false, "simulate everything anew and write traces of experiments that offer them to the directory's traces/NAME")
	shard := f.String("shard", "", "simulate the `i/n`-th part only, i from 0 to n-1, for a later -merge")
	merged := f.Bool("merge", false, "put the results of shards together: -merge DIR...")
	var dirs []string
	for rest := args; ; {
		if err := f.Parse(rest); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			break
		}
		dirs, rest = append(dirs, f.Arg(0)), f.Args()[1:]
	}
	if *merged {
		o.merge = dirs
	} else if len(dirs) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", dirs[0])
	}
	var err error
	o.Dir = o.out
	if o.Profile, err = experiment.ProfileByName(*profile); err != nil {
		return nil, fmt.Errorf("-profile: %w", err)
	}
	switch {
	case o.list:
		return o, nil
	case o.seeds < 0 || o.seeds > maxSeeds:
		return nil, fmt.Errorf("-seeds %d is not between 1 and %d", o.seeds, maxSeeds)
	case o.workers < 1:
		return nil, fmt.Errorf("-j %d is less than 1", o.workers)
	case *merged && (*shard != "" || o.names != "" || o.seeds != 0 || o.Quick):
		return nil, fmt.Errorf("-merge takes experiments and options from the shards: give -out only")
	case *merged && len(dirs) == 0:
		return nil, fmt.Errorf("-merge needs the directories of the shards")
	case *merged:
		return o, nil
	case o.names == "":
		return nil, fmt.Errorf("-exp is missing: give names of experiments, or all; -list shows them")
	}
	if *shard != "" {
		if o.shard, o.shards, err = parseShard(*shard); err != nil {
			return nil, err
		}
	}
	o.experiments, err = experiment.Select(o.names)
	return o, err
}

// Bounds of what a command line may ask for.
const (
	maxSeeds  = 10000
	maxShards = 100000
)

func parseShard(s string) (i, n int, err error) {
	var rest string
	if k, _ := fmt.Sscanf(s+" ", "%d/%d%s", &i, &n, &rest); k != 2 || i < 0 || n < 1 || i >= n || n > maxShards {
		return 0, 0, fmt.Errorf("-shard %s: write i/n with i from 0 to n-1", s)
	}
	return i, n, nil
}
