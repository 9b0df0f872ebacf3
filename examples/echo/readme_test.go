package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/netstack"
)

// Example is the program of the README: TestReadmeShowsTheExample keeps both
// the same.
func Example() {
	server, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// Two links: 30 Mb/s and 10 Mb/s, 10 ms each way.
	for i, rate := range []float64{30e6, 10e6} {
		shape := netstack.Shape{Rate: rate, Delay: 10 * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		name, subnet := fmt.Sprint("link", i), fmt.Sprint("10.0.", i)
		err := errors.Join(
			client.AddLink(netstack.LinkConfig{
				Name: name, Link: a, Addrs: []netip.Prefix{netip.MustParsePrefix(subnet + ".1/24")},
			}),
			server.AddLink(netstack.LinkConfig{
				Name: name, Link: b, Addrs: []netip.Prefix{netip.MustParsePrefix(subnet + ".2/24")},
			}),
		)
		if err != nil {
			log.Fatal(err)
		}
	}

	// From here on it is package net.
	listener, err := server.Listen("mptcp", ":7")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	conn, err := client.Dial("mptcp", "10.0.0.2:7")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello")
	answer := make([]byte, 5)
	if _, err := io.ReadFull(conn, answer); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", answer)
	// Output: hello
}

func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(source), "func Example() {\n")
	require.True(t, found)
	body, _, found = strings.Cut(body, "\t// Output:")
	require.True(t, found)
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")

	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go"+body+"```\n")
}
