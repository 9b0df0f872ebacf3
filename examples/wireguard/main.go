// Command wireguard bonds WireGuard tunnels: one MPTCP connection goes over two
// of them at once, loses one on the way, and arrives whole.
//
//	go run ./examples/wireguard
//	go run ./examples/wireguard -bytes 100000000 -down=false -json
//
// It needs no privileges: the tunnels are those of wireguard-go, their keys are
// made at the start, and their UDP packets cross the loopback interface of the
// operating system between two hosts in this process. When a third has arrived
// the far end of the faster tunnel is taken down, which nobody is told.
//
// newTUN, in tun.go, is what a program with wireguard-go in it needs: a
// tun.Device for WireGuard whose other side is a link of a netstack.Host. Each
// tunnel needs one, and a way of its own to the peer: on Linux by its fwmark, and
// elsewhere by a conn.Bind that binds its sockets to an interface. Behind the
// peer's tunnels there must be MPTCP, too: this module's, or that of Linux.
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

// options are the settings of a run.
type options struct {
	bytes int64
	down  bool // take a tunnel down on the way
	json  bool
}

func main() {
	switch err := command(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "wireguard:", err)
		os.Exit(1)
	}
}

// command runs the program.
func command(args []string, w io.Writer) error {
	var o options
	f := flag.NewFlagSet("wireguard", flag.ContinueOnError)
	f.Int64Var(&o.bytes, "bytes", 8<<20, "send so many `bytes`")
	f.BoolVar(&o.down, "down", true, "take the faster tunnel down when a third has arrived")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.bytes < 1 {
		return errors.New("-bytes must be at least 1")
	}
	// For the tunnels and the connection to come up.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := o.run(ctx)
	if err != nil {
		return err
	}
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
