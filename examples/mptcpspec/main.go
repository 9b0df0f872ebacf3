// Command mptcpspec tests an MPTCP stack for conformance: it plays a peer made
// of raw segments and judges what the target sends, item by item, against the
// RFCs.
//
//	go run ./examples/mptcpspec                    this module's stack, in virtual time
//	go run ./examples/mptcpspec -target kernel     Linux behind a TUN device, as root
//	go run ./examples/mptcpspec -list              the items
//	go run ./examples/mptcpspec -run 'M04|join' -v some of them, with the segments
//
// With -target self the exit status is 1 if an item fails; with -target kernel
// it is 0 whatever the kernel does, and 1 only if the test cannot be run.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"

	"github.com/gomptcp/gomptcp/internal/spec"
)

type options struct {
	target   string
	json     bool
	list     bool
	verbose  bool
	parallel int
	match    *regexp.Regexp
}

func main() {
	var o options
	var pattern string
	flag.StringVar(&o.target, "target", "self", "stack under test: self or kernel")
	flag.StringVar(&pattern, "run", "", "play only items whose id or title matches this `regexp`")
	flag.BoolVar(&o.json, "json", false, "print the report as JSON")
	flag.BoolVar(&o.list, "list", false, "list the items and play none")
	flag.BoolVar(&o.verbose, "v", false, "show the segments of items that do not pass, on standard error")
	flag.IntVar(&o.parallel, "parallel", 16, "items to play at once where time is real; those that fail are played again")
	flag.Parse()
	var err error
	if o.match, err = regexp.Compile(pattern); err == nil {
		err = run(os.Stdout, os.Stderr, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mptcpspec:", err)
		os.Exit(1)
	}
}

// run does what the options ask for.
func run(out, notes io.Writer, o options) error {
	items := spec.Items(o.match)
	if o.list {
		for _, it := range items {
			fmt.Fprintf(out, "%-4s %-6s %-14s %s\n", it.ID, it.Level, it.Section, it.Title)
		}
		return nil
	}
	report := &spec.Report{Target: o.target}
	switch o.target {
	case "self":
		report.Items = play(items, self, 1)
	case "kernel":
		t, err := spec.NewKernel(spec.Setup{})
		if err != nil {
			return err
		}
		t.Close()
		report.Items = play(items, spec.NewKernel, max(o.parallel, 1))
		again(items, report.Items, spec.NewKernel)
	default:
		return fmt.Errorf("target %q is unknown (known: self, kernel)", o.target)
	}
	if o.verbose {
		traces(notes, report)
	}
	write := report.WriteTable
	if o.json {
		write = report.WriteJSON
	}
	if err := write(out); err != nil {
		return err
	}
	if n := report.Count(spec.Fail); n > 0 && o.target == "self" {
		return fmt.Errorf("%d of %d items fail", n, len(items))
	}
	return nil
}

func self(s spec.Setup) (spec.Target, error) { return spec.NewSelf(s), nil }

// play plays the items, so many at once.
func play(items []spec.Item, target spec.Maker, parallel int) []spec.Result {
	results := make([]spec.Result, len(items))
	next := make(chan int)
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for i := range next {
				results[i] = spec.Run(items[i], target)
			}
		})
	}
	for i := range items {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// again plays items that failed once more, a few at a time: where time is real,
// a busy machine can make an item fail.
func again(items []spec.Item, results []spec.Result, target spec.Maker) {
	var failed []spec.Item
	var places []int
	for i := range results {
		if results[i].Verdict == spec.Fail {
			failed, places = append(failed, items[i]), append(places, i)
		}
	}
	for i, r := range play(failed, target, 4) {
		results[places[i]] = r
	}
}

// traces shows what led to the verdicts that are not pass.
func traces(w io.Writer, r *spec.Report) {
	for i := range r.Items {
		if it := &r.Items[i]; it.Verdict != spec.Pass {
			fmt.Fprintf(w, "%s %s: %s\n", it.ID, it.Verdict, it.Note)
			for _, line := range it.Trace {
				fmt.Fprintln(w, "  ", line)
			}
		}
	}
}
