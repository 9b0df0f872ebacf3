// Command http serves and fetches a page over MPTCP with net/http as it is:
// the server's Serve takes our listener, the client's Transport our
// DialContext. A wrapper around the handler declares the Content-Length of each
// response as the size of the flow.
//
//	go run ./examples/http
//
// Both are hosts in this process, joined by two links.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/gomptcp/gomptcp/netstack"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal("http: ", err)
	}
}

// run starts the server, fetches a page from it three times and prints it.
func run(out io.Writer) error {
	client, server, err := hosts()
	if err != nil {
		return err
	}
	defer client.Close()
	defer server.Close()

	l, err := server.Listen("tcp", "10.0.1.2:80")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: sized(http.HandlerFunc(hello)), ConnContext: keepConn}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()

	transport := &http.Transport{DialContext: client.DialContext}
	browser := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	for range 3 {
		if err := fetch(browser, "http://10.0.1.2/", out); err != nil {
			return err
		}
	}
	transport.CloseIdleConnections()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fetch(browser *http.Client, url string, out io.Writer) error {
	answer, err := browser.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(out, answer.Body)
	return err
}

// hello tells the client how it is connected.
func hello(w http.ResponseWriter, r *http.Request) {
	c := connOf(r)
	if c == nil {
		http.Error(w, "not one of our connections", http.StatusInternalServerError)
		return
	}
	kind := "plain TCP"
	if multipath, err := c.MultipathTCP(); err == nil && multipath {
		kind = "MPTCP"
	}
	page := fmt.Sprintf("hello %s, you came by %s over", r.RemoteAddr, kind)
	for _, s := range c.Subflows() {
		page += " " + s.Link
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(page)+1))
	fmt.Fprintln(w, page)
}

// hosts returns two hosts joined by two links of 50 Mb/s and 10 ms each way.
func hosts() (client, server *netstack.Host, err error) {
	if client, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	if server, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	for i, name := range []string{"wifi", "lte"} {
		shape := netstack.Shape{Rate: 50e6, Delay: 10 * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
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
