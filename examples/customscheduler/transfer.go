package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
	"github.com/gomptcp/gomptcp/scheduler"
)

// transfer sends data between two hosts in this process, and returns what each
// subflow did.
func transfer(policy scheduler.Factory, data []byte) ([]mptcp.SubflowInfo, error) {
	client, server, err := hosts()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer server.Close()
	l, err := server.Listen("mptcp", ":7")
	if err != nil {
		return nil, err
	}
	arrived := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			arrived <- err
			return
		}
		defer c.Close()
		got, err := io.ReadAll(c)
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("other bytes arrived than were sent")
		}
		arrived <- err
	}()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dialer := mptcp.Dialer{Stack: client.Stack, Config: &mptcp.Config{Scheduler: policy}}
	conn, err := dialer.DialMPTCP(ctx, netip.MustParseAddrPort("10.0.0.2:7"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(data); err != nil {
		return nil, err
	}
	subflows := conn.Subflows()
	if err := conn.CloseWrite(); err != nil {
		return nil, err
	}
	return subflows, <-arrived
}

// hosts returns two hosts joined by a link called wifi, 40 Mb/s and 10 ms each
// way, and one called metered, 20 Mb/s and 20 ms.
func hosts() (client, server *netstack.Host, err error) {
	if client, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	if server, err = netstack.New(netstack.Config{}); err != nil {
		return nil, nil, err
	}
	for i, name := range []string{"wifi", "metered"} {
		shape := netstack.Shape{Rate: 40e6 / float64(i+1), Delay: time.Duration(10*(i+1)) * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		for end, host := range []*netstack.Host{client, server} {
			addr := netip.MustParsePrefix(fmt.Sprintf("10.0.%d.%d/24", i, end+1))
			err := host.AddLink(netstack.LinkConfig{
				Name: name, Link: []*netstack.PipeEnd{a, b}[end], Addrs: []netip.Prefix{addr},
			})
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return client, server, nil
}
