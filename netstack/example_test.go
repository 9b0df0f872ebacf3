package netstack_test

import (
	"fmt"
	"io"
	"log"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// Two hosts in one process, joined by two links.
func Example() {
	client, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	server, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	for i, rate := range []float64{30e6, 10e6} {
		shape := netstack.Shape{Rate: rate, Delay: 5 * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		name := fmt.Sprintf("link%d", i)
		for node, end := range []*netstack.PipeEnd{a, b} {
			addr := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(node + 1)})
			err := []*netstack.Host{client, server}[node].AddLink(netstack.LinkConfig{
				Name: name, Link: end, Addrs: []netip.Prefix{netip.PrefixFrom(addr, 24)},
			})
			if err != nil {
				log.Fatal(err)
			}
		}
	}

	listener, err := server.Listen("mptcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintln(c, "hello over", c.(*mptcp.Conn).Info().Subflows, "subflow")
	}()

	c, err := client.Dial("mptcp", "10.0.0.2:80")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	greeting, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(greeting))
	// Output: hello over 1 subflow
}
