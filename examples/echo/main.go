// Command echo sends lines over an MPTCP connection with two paths to an echo
// server in the same process, and prints what comes back.
//
//	go run ./examples/echo
//	echo hello | go run ./examples/echo
//
// It is the shortest whole program: two hosts, two links between them, a
// listener, a dial.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

func main() {
	input := io.Reader(strings.NewReader("hello over MPTCP\nand once more\n"))
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		input = os.Stdin
	}
	if err := run(input, os.Stdout); err != nil {
		log.Fatal("echo: ", err)
	}
}

// run sends the lines of in to the server and prints the answers.
func run(in io.Reader, out io.Writer) error {
	client, server, err := hosts()
	if err != nil {
		return err
	}
	defer client.Close()
	defer server.Close()

	l, err := server.Listen("mptcp", "10.0.1.2:7")
	if err != nil {
		return err
	}
	defer l.Close()
	go serve(l)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dialer := mptcp.Dialer{Stack: client.Stack}
	conn, err := dialer.DialMPTCP(ctx, netip.MustParseAddrPort("10.0.1.2:7"))
	if err != nil {
		return err
	}
	defer conn.Close()

	answers := bufio.NewReader(conn)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if _, err := fmt.Fprintln(conn, lines.Text()); err != nil {
			return err
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		fmt.Fprint(out, answer)
	}
	for _, s := range conn.Subflows() {
		fmt.Fprintf(out, "subflow %d over %s: %v to %v, %s\n", s.ID, s.Link, s.Local, s.Remote, s.State)
	}
	return lines.Err()
}

// hosts returns two hosts joined by two links of 5 ms each way.
func hosts() (client, server *netstack.Host, err error) {
	if client, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	if server, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	for i, name := range []string{"wifi", "lte"} {
		delay := netstack.Shape{Delay: 5 * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: delay, BA: delay})
		if err := client.AddLink(link(name, a, netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 1}))); err != nil {
			return nil, nil, err
		}
		if err := server.AddLink(link(name, b, netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 2}))); err != nil {
			return nil, nil, err
		}
	}
	return client, server, nil
}

// link describes one end of a link, for the host with that address.
func link(name string, end *netstack.PipeEnd, addr netip.Addr) netstack.LinkConfig {
	return netstack.LinkConfig{
		Name:  name,
		Link:  end,
		Addrs: []netip.Prefix{netip.PrefixFrom(addr, 24)},
	}
}

// serve echoes every connection until the listener is closed.
func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.Copy(c, c)
		}()
	}
}
