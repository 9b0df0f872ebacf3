package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// network is two hosts in this process, joined by one pipe for each path.
type network struct {
	client, server *netstack.Host
	pipes          []*netstack.PipeEnd // the client's ends
	capture        *os.File
	pcap           *netstack.PcapWriter // writes to capture
}

// name is what path i is called.
func name(i int) string { return fmt.Sprintf("path%d", i+1) }

// address is the client's (1) or the server's (2) address on path i.
func address(i, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(i + 1), byte(host)})
}

// newNetwork builds the hosts and their paths.
func newNetwork(o *options) (n *network, err error) {
	n = &network{}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	cfg := &mptcp.Config{Scheduler: o.scheduler, Congestion: o.congestion}
	if n.client, err = netstack.New(netstack.Config{MPTCP: cfg}); err != nil {
		return n, err
	}
	if n.server, err = netstack.New(netstack.Config{MPTCP: cfg}); err != nil {
		return n, err
	}
	if o.pcap != "" {
		if n.capture, err = os.Create(o.pcap); err != nil {
			return n, err
		}
		n.pcap = netstack.NewPcapWriter(n.capture)
	}
	for i, p := range o.paths {
		if err = n.join(i, p); err != nil {
			return n, err
		}
	}
	return n, nil
}

// join lays path i between the hosts.
func (n *network) join(i int, p path) error {
	// A queue of one bandwidth-delay product, at least 64 KiB, is the default.
	shape := netstack.Shape{Rate: p.rate, Delay: p.delay / 2, Loss: p.loss}
	a, b := netstack.NewPipe(netstack.PipeConfig{
		AB: shape, BA: shape, Seed: uint64(i + 1), Checksum: n.pcap != nil,
	})
	n.pipes = append(n.pipes, a)
	ends := []struct {
		host *netstack.Host
		link stack.LinkEndpoint
	}{{n.client, a}, {n.server, b}}
	if n.pcap != nil {
		ends[0].link = netstack.NewTap(a, name(i), n.pcap)
	}
	for k, end := range ends {
		err := end.host.AddLink(netstack.LinkConfig{
			Name:  name(i),
			Link:  end.link,
			Addrs: []netip.Prefix{netip.PrefixFrom(address(i, k+1), 24)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends both hosts and the capture.
func (n *network) close() error {
	var err error
	for _, h := range []*netstack.Host{n.client, n.server} {
		if h != nil {
			h.Close()
		}
	}
	if n.capture != nil {
		err = errors.Join(n.pcap.Flush(), n.capture.Close())
	}
	return err
}
