package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/scheduler"
)

// path is one emulated path between the two hosts. Both its directions are
// alike.
type path struct {
	rate  float64       // bits a second
	delay time.Duration // round trip, of propagation alone
	loss  float64       // probability that a packet is lost
}

// options are the settings of a run.
type options struct {
	file       string // sent to the server; "" = generated data
	bytes      int64  // of generated data
	paths      []path
	scheduler  scheduler.Factory
	congestion cc.Factory
	handover   bool          // the second path appears when the first is gone
	outage     time.Duration // how long the path that goes away is down; 0 = never
	json       bool
	pcap       string // capture file; "" = none
	trace      string // beginning of the names of trace files; "" = none
}

// parse reads the command line. What is wrong with it goes to errors.
func parse(args []string, errorOutput io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	f.StringVar(&o.file, "file", "", "send this `file` (default: generated data)")
	f.Int64Var(&o.bytes, "bytes", 32<<20, "send so many `bytes` of generated data")
	rates := f.String("rates", "30,10", "rate of each path, in `Mb/s`; their number is the number of paths")
	delays := f.String("delays", "", "round-trip `times` of the paths, without queues; one for all or one for each (default 20ms, and 60ms for those after the first)")
	losses := f.String("loss", "0", "packets lost at random on each path, in `percent` a direction; one for all or one for each")
	sched := f.String("scheduler", "default", "packet scheduler: "+strings.Join(scheduler.Names(), ", "))
	congestion := f.String("cc", "default", "congestion control: "+strings.Join(cc.Names(), ", "))
	f.BoolVar(&o.handover, "handover", false, "begin with the first path alone; lose it in the middle, and get the second instead")
	f.DurationVar(&o.outage, "outage", 2*time.Second, "how long the fastest path is down in the middle, 0 = never; with -handover the time without a path (default 3s)")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	f.StringVar(&o.pcap, "pcap", "", "write the client's packets to this pcapng `file`")
	f.StringVar(&o.trace, "trace", "", "trace both hosts to `NAME`.client.sqlog and NAME.server.sqlog, for traceview")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.bytes < 1 || o.outage < 0 {
		return nil, errors.New("-bytes must be at least 1, -outage at least 0")
	}
	var err error
	if o.paths, err = parsePaths(*rates, *delays, *losses); err != nil {
		return nil, err
	}
	if o.handover {
		if len(o.paths) != 2 {
			return nil, fmt.Errorf("-handover: %d paths instead of 2", len(o.paths))
		}
		if !isSet(f, "outage") {
			o.outage = 3 * time.Second
		}
	}
	if o.scheduler, err = scheduler.ByName(*sched); err != nil {
		return nil, fmt.Errorf("-scheduler: %w", err)
	}
	if o.congestion, err = cc.ByName(*congestion); err != nil {
		return nil, fmt.Errorf("-cc: %w", err)
	}
	return o, nil
}

// mostPaths is how many subflows a connection has at most by default.
const mostPaths = 8

// parsePaths reads the three lists that describe the paths.
func parsePaths(rates, delays, losses string) ([]path, error) {
	rate := strings.Split(rates, ",")
	if delays == "" {
		delays = "20ms" + strings.Repeat(",60ms", len(rate)-1)
	}
	delay, loss := each(delays, len(rate)), each(losses, len(rate))
	switch {
	case len(rate) > mostPaths:
		return nil, fmt.Errorf("-rates: %d paths, at most %d", len(rate), mostPaths)
	case delay == nil:
		return nil, fmt.Errorf("-delays %s: give 1 or %d", delays, len(rate))
	case loss == nil:
		return nil, fmt.Errorf("-loss %s: give 1 or %d", losses, len(rate))
	}
	paths := make([]path, len(rate))
	for i := range paths {
		mbps, err := strconv.ParseFloat(strings.TrimSpace(rate[i]), 64)
		if err != nil || !(mbps > 0 && mbps <= 1e5) {
			return nil, fmt.Errorf("-rates: %q is no rate in Mb/s", rate[i])
		}
		rtt, err := time.ParseDuration(strings.TrimSpace(delay[i]))
		if err != nil || rtt < 0 {
			return nil, fmt.Errorf("-delays: %q is no round-trip time", delay[i])
		}
		percent, err := strconv.ParseFloat(strings.TrimSpace(loss[i]), 64)
		if err != nil || !(percent >= 0 && percent < 100) {
			return nil, fmt.Errorf("-loss: %q is no percentage", loss[i])
		}
		paths[i] = path{rate: mbps * 1e6, delay: rtt, loss: percent / 100}
	}
	return paths, nil
}

// each splits a list into n items, a single one being meant for all; nil if
// it has another number.
func each(list string, n int) []string {
	items := strings.Split(list, ",")
	if len(items) == 1 {
		return slices.Repeat(items, n)
	}
	if len(items) != n {
		return nil
	}
	return items
}

// isSet reports whether a flag was given.
func isSet(f *flag.FlagSet, name string) bool {
	set := false
	f.Visit(func(x *flag.Flag) { set = set || x.Name == name })
	return set
}

// leaving is the index of the path that goes away: the fastest, or the one
// that a hand-over begins with.
func (o *options) leaving() int {
	best := 0
	if o.handover {
		return best
	}
	for i, p := range o.paths {
		if p.rate > o.paths[best].rate {
			best = i
		}
	}
	return best
}
