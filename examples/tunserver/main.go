// Command tunserver is an HTTP file server and an HTTP client on TUN links, so
// that Linux itself, with its own MPTCP, is the peer. Linux only, as root.
//
// Each link is a TUN device with an address for us and one for the kernel.
// Serve the current directory over two of them, then download from another
// shell, with the kernel's TCP and with the kernel's MPTCP:
//
//	go build ./examples/tunserver
//	sudo ./tunserver -tun mp0,10.10.1.2/24,10.10.1.1 -tun mp1,10.10.2.2/24,10.10.2.1 -serve .
//	curl -O http://10.10.1.2:8080/go.mod
//	mptcpize run curl -O http://10.10.1.2:8080/go.mod
//
// For the kernel to use the second link as well, it must accept the address
// that the server announces:
//
//	sudo ip mptcp limits set subflows 8 add_addr_accepted 8
//
// The client mode fetches a URL from a server in the kernel. A server under
// mptcpize, and its second address as an endpoint, make that MPTCP over two
// links:
//
//	sudo ip mptcp endpoint add 10.10.2.1 dev mp1 signal
//	sudo ./tunserver -tun mp0,10.10.1.2/24,10.10.1.1 -tun mp1,10.10.2.2/24,10.10.2.1 \
//		-get http://10.10.1.1:8000/file -o file
//
// The devices disappear when the program ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gomptcp/gomptcp/netstack"
)

// options are the settings of a run.
type options struct {
	links  []link
	serve  string // directory; "" = do not serve
	listen string
	get    string // URL; "" = do not fetch
	output string // file; "-" = standard output
	pcap   string // capture file; "" = none
}

func main() {
	switch err := command(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tunserver:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, errorOutput io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("tunserver", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	f.Func("tun", "a link, as `name,ours/bits,kernel's`: mp0,10.10.1.2/24,10.10.1.1 (once for each link)", func(s string) error {
		l, err := parseLink(s)
		o.links = append(o.links, l)
		return err
	})
	f.StringVar(&o.serve, "serve", "", "serve the files of this `directory`")
	f.StringVar(&o.listen, "listen", ":8080", "`address` to serve on")
	f.StringVar(&o.get, "get", "", "fetch this `URL`")
	f.StringVar(&o.output, "o", "-", "write what was fetched to this `file`; - is standard output")
	f.StringVar(&o.pcap, "pcap", "", "write all packets to this pcapng `file`")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case len(o.links) == 0:
		return nil, errors.New("give at least one -tun")
	case (o.serve == "") == (o.get == ""):
		return nil, errors.New("give either -serve or -get")
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, nil
}

func command(args []string) (err error) {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	host, err := netstack.New(netstack.Config{})
	if err != nil {
		return err
	}
	defer host.Close()
	capture, err := newCapture(o.pcap)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.close()) }()
	for _, l := range o.links {
		if err := l.attach(host, capture); err != nil {
			return err
		}
	}
	if o.get != "" {
		return o.fetch(ctx, host)
	}
	listener, err := host.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving %s on %v\n", o.serve, listener.Addr())
	return serve(ctx, listener, o.serve)
}

// fetch writes what the URL gives to the output.
func (o *options) fetch(ctx context.Context, host *netstack.Host) error {
	if o.output == "-" {
		return get(ctx, host, o.get, os.Stdout, os.Stderr)
	}
	file, err := os.Create(o.output)
	if err != nil {
		return err
	}
	return errors.Join(get(ctx, host, o.get, file, os.Stderr), file.Close())
}
