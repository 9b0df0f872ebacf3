// Run runs experiments of the laboratory, and writes and draws their results:
//
//	go run ./bench/run -list
//	go run ./bench/run -exp two-paths -out DIR
//	go run ./bench/run -exp all -quick -out DIR
//
// The README of package bench tells what is written, and how to spread a run
// over several machines.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does what the command line asks for and returns the exit code: 0, 1 when
// something failed, 2 for a wrong command line, 130 when interrupted. A claim
// that is not reproduced is a result like any other.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "run:", err)
		return 2
	case o.list:
		list(stdout)
		return 0
	}
	if len(o.merge) > 0 {
		err = merge(o)
	}
	if err == nil {
		err = newRunner(o, stdout, stderr).run(ctx)
	}
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "run: interrupted; what is done is in %s, the same command goes on from there\n", o.out)
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "run:", err)
		return 1
	}
	return 0
}

// list prints what there is to run.
func list(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range experiment.List() {
		summary := e.Summary
		if e.Clocked {
			summary += " (reads the clock; not part of all)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Name, summary, e.Source)
	}
	t.Flush()
}

// print shows a result on standard output.
func (r *runner) print(res *experiment.Result, rep *experiment.Report) {
	if r.options.json {
		b, err := json.Marshal(res)
		if err == nil {
			fmt.Fprintf(r.stdout, "%s\n", b)
		}
		return
	}
	fmt.Fprintf(r.stdout, "%s: %s\n", res.Name, res.Verdict)
	t := tabwriter.NewWriter(r.stdout, 2, 0, 2, ' ', 0)
	for _, m := range rep.Metrics {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", m.Key, m.Measured(), m.Demand())
	}
	t.Flush()
}
