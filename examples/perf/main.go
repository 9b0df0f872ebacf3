// Command perf measures throughput between two hosts, as iperf does, with a
// column for each path.
//
// Without an address both hosts are in this process, joined by pipes that are
// as fast as memory, or shaped:
//
//	go run ./examples/perf
//	go run ./examples/perf -paths 2 -rate 100 -delay 20ms -P 4 -R -json
//
// On TUN links (Linux, root; see examples/tunserver for what the fields mean)
// the peer is another perf, in the kernel of this machine with -os, or beyond
// it:
//
//	go build ./examples/perf
//	./perf -s -os &
//	sudo ./perf -c 10.10.1.1:5201 -tun mp0,10.10.1.2/24,10.10.1.1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

// options are the settings of a run.
type options struct {
	server   bool
	connect  string // the server's address; "" = in this process
	listen   string
	duration time.Duration
	interval time.Duration
	parallel int
	reverse  bool // the server sends
	plain    bool // TCP
	checksum bool
	json     bool

	system bool // the hosts' connections are the operating system's
	tuns   []tun
	paths  int // of hosts in this process
	rate   float64
	delay  time.Duration
}

func parse(args []string, errorOutput io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("perf", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	f.BoolVar(&o.server, "s", false, "be the server")
	f.StringVar(&o.connect, "c", "", "be the client of the server at this `address`")
	f.StringVar(&o.listen, "listen", ":5201", "`address` of the server")
	f.DurationVar(&o.duration, "t", 10*time.Second, "send for this `time`")
	f.DurationVar(&o.interval, "i", time.Second, "`time` between reports; 0 = only the last")
	f.IntVar(&o.parallel, "P", 1, "`number` of connections at once")
	f.BoolVar(&o.reverse, "R", false, "the server sends")
	f.BoolVar(&o.plain, "tcp", false, "plain TCP instead of MPTCP")
	f.BoolVar(&o.checksum, "checksum", false, "with DSS checksums")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end")
	f.BoolVar(&o.system, "os", false, "use the operating system's connections instead of this module's")
	f.Func("tun", "a link, as `name,ours/bits,kernel's` (once for each)", func(s string) error {
		t, err := parseTUN(s)
		o.tuns = append(o.tuns, t)
		return err
	})
	f.IntVar(&o.paths, "paths", 1, "`number` of paths between hosts in this process")
	f.Float64Var(&o.rate, "rate", 0, "rate of each of those paths in `Mb/s`; 0 = as fast as memory")
	f.DurationVar(&o.delay, "delay", 0, "round-trip `time` of those paths, without queues")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check(f.NArg())
}

func (o *options) check(extra int) error {
	remote := o.server || o.connect != ""
	switch {
	case extra > 0:
		return errors.New("unexpected arguments")
	case o.server && o.connect != "":
		return errors.New("give either -s or -c")
	case o.system && len(o.tuns) > 0:
		return errors.New("give either -os or -tun")
	case remote && !o.system && len(o.tuns) == 0:
		return errors.New("-s and -c need -os or -tun")
	case !remote && (o.system || len(o.tuns) > 0):
		return errors.New("-os and -tun need -s or -c")
	case o.duration <= 0 || o.interval < 0 || o.rate < 0 || o.delay < 0:
		return errors.New("times and rates must not be negative, -t not 0")
	case o.parallel < 1 || o.parallel > 128:
		return errors.New("-P must be 1 to 128")
	case o.paths < 1 || o.paths > 8:
		return errors.New("-paths must be 1 to 8")
	}
	return nil
}

// run does what the command line asks for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	client, server, closeHosts, err := o.hosts()
	if err != nil {
		return err
	}
	defer closeHosts()
	if server != nil {
		l, err := server.Listen("tcp", o.listen)
		if err != nil {
			return err
		}
		defer l.Close()
		if o.server {
			fmt.Fprintf(stderr, "listening on %v\n", l.Addr())
			stop := context.AfterFunc(ctx, func() { l.Close() })
			defer stop()
			serve(l, stderr)
			return nil
		}
		go serve(l, stderr)
	}
	res, err := o.measure(ctx, client, stdout)
	if err != nil {
		return err
	}
	return res.print(stdout, o.json)
}
