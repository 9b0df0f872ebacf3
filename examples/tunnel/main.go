// Command tunnel carries TCP flows, and UDP, over MPTCP, so that one download
// uses several links at once. Linux only, as root.
//
// The client creates a TUN device. A TCP flow that is routed into it is
// terminated there and carried to the server over an MPTCP connection of its
// own, which begins with a short header that names the destination. The server
// dials that destination, if its list allows it, and relays both ways, half
// closes included. Refused and unreachable destinations are refused to the
// application, too. The UDP datagrams between two addresses and ports have a
// connection of their own as well, so that what one flow loses holds up no
// other; those that wait for too long give way to newer ones. Ping is answered
// by the client.
//
// Each side reaches the other over links: TUN devices between the program and
// the kernel, which forwards their packets to where they shall go. A link has
// an address for the program, one for the kernel, and the prefixes that are
// reached over it. With two uplinks, eth0 and wwan0:
//
//	server$ sudo tunnel server -link up0,10.21.1.2/24,10.21.1.1 -link up1,10.21.2.2/24,10.21.2.1 \
//		-listen :7000 -allow 198.18.0.0/16:80 -allow 198.18.0.0/16:443
//	client$ sudo tunnel client -link up0,10.20.1.2/24,10.20.1.1,10.21.1.0/24 \
//		-link up1,10.20.2.2/24,10.20.2.1,10.21.2.0/24 \
//		-server 10.21.1.2:7000 -dev app0,198.19.0.1/24 -route 198.18.0.0/16
//	client$ curl http://198.18.0.1/
//
// The kernels have to forward between the links and the uplinks
// (net.ipv4.ip_forward=1), each link's prefix over the uplink it stands for.
//
// Security: the tunnel neither encrypts nor authenticates. Whoever reaches the
// server's port can reach what -allow lists, and whoever is on the path can
// read and alter the flows that do not protect themselves. Run it inside
// networks that you trust, and keep the list short.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tunnel:", err)
		os.Exit(1)
	}
}

// command runs the client or the server until ctx ends.
func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: tunnel client|server FLAGS (-h shows them)")
	}
	switch args[0] {
	case "client":
		o, err := parseClient(args[1:], os.Stderr)
		if err != nil {
			return err
		}
		return runClient(ctx, o)
	case "server":
		o, err := parseServer(args[1:], os.Stderr)
		if err != nil {
			return err
		}
		return runServer(ctx, o)
	}
	return fmt.Errorf("unknown mode %q: client or server", args[0])
}
