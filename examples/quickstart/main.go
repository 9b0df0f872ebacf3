// Command quickstart sends a file over one MPTCP connection that uses two
// paths at once, loses one of them on the way, and arrives whole.
//
//	go run ./examples/quickstart
//
// It needs no privileges and no network: client and server are two hosts in
// this process, each a network stack of its own, joined by two emulated paths
// (30 Mb/s with a round-trip time of 20 ms, and 10 Mb/s with 60 ms). When a
// third has arrived, the fast path goes away without notice for two seconds.
// At the end the program compares the SHA-256 of both sides and shows what
// each path carried; it fails if anything was lost or altered. Flags change
// all of this:
//
//	go run ./examples/quickstart -rates 50,50,5 -delays 10ms,30ms,80ms -loss 0,0.1,0
//	go run ./examples/quickstart -outage 0 -json
//	go run ./examples/quickstart -file movie.mkv -pcap client.pcapng
//	go run ./examples/quickstart -trace run # then: traceview run.*.sqlog
//
// With -handover the client never has two paths: its only one goes away when a
// third has arrived, and three seconds later the client comes up on the other,
// where the same connection goes on:
//
//	go run ./examples/quickstart -handover
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	switch err := command(os.Args[1:], os.Stdout, isTerminal(os.Stdout)); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// command runs the program. With live it shows the progress on w.
func command(args []string, w io.Writer, live bool) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	var watch func(*transfer, <-chan struct{})
	if live && !o.json {
		watch = progress(w)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := o.run(ctx, watch)
	if err != nil {
		return err
	}
	r := newReport(o, out)
	if o.json {
		err = r.writeJSON(w)
	} else {
		err = r.writeText(w)
	}
	if err == nil && !r.SHA256OK {
		err = errors.New("the server received something else than was sent")
	}
	return err
}
