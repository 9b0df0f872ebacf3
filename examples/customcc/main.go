// Command customcc sends a few megabytes over two shaped paths with a
// congestion control that is not part of the library, chosen by its name as
// any other.
//
//	go run ./examples/customcc
//	go run ./examples/customcc -cc olia
//
// The controller is in scalable.go; all that is needed beside it is the
// registry in run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

func main() {
	name := flag.String("cc", "scalable", "congestion control")
	megabytes := flag.Int("mb", 8, "megabytes to send")
	flag.Parse()
	if err := run(*name, *megabytes<<20, os.Stdout); err != nil {
		log.Fatal("customcc: ", err)
	}
}

// run sends size bytes with the congestion control called name and reports.
func run(name string, size int, out io.Writer) error {
	algorithms := cc.Registry{"scalable": func() cc.Group { return group{} }}
	congestion, err := algorithms.ByName(name)
	if err != nil {
		return err
	}
	config := &mptcp.Config{Congestion: congestion}
	client, server, err := hosts()
	if err != nil {
		return err
	}
	defer client.Close()
	defer server.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	to := netip.MustParseAddrPort("10.0.1.2:80")
	listen := mptcp.ListenConfig{Stack: server.Stack, Config: config}
	listener, err := listen.Listen(ctx, "mptcp", to.String())
	if err != nil {
		return err
	}
	defer listener.Close()
	dialer := mptcp.Dialer{Stack: client.Stack, Config: config}
	conn, err := dialer.DialMPTCP(ctx, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		return err
	}
	defer peer.Close()

	begin := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, size))
		sent <- err
	}()
	if _, err := io.CopyN(io.Discard, peer, int64(size)); err != nil {
		return err
	}
	took := time.Since(begin)
	fmt.Fprintf(out, "%s: %.1f Mb/s\n", name, float64(size)*8/1e6/took.Seconds())
	for _, s := range conn.Subflows() {
		fmt.Fprintf(out, "  over %s: window %d bytes, %d bytes sent\n", s.Link, s.Cwnd, s.BytesSent)
	}
	return <-sent
}

// hosts returns two hosts joined by a fast and a slow link.
func hosts() (client, server *netstack.Host, err error) {
	if client, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	if server, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	for i, shape := range []netstack.Shape{
		{Rate: 20e6, Delay: 10 * time.Millisecond},
		{Rate: 5e6, Delay: 25 * time.Millisecond},
	} {
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		for _, end := range []struct {
			host *netstack.Host
			link *netstack.PipeEnd
			last byte
		}{{client, a, 1}, {server, b, 2}} {
			addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i + 1), end.last}), 24)
			name := fmt.Sprintf("path%d", i+1)
			if err := end.host.AddLink(netstack.LinkConfig{Name: name, Link: end.link, Addrs: []netip.Prefix{addr}}); err != nil {
				return nil, nil, err
			}
		}
	}
	return client, server, nil
}
