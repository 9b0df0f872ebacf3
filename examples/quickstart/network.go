package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// network is two hosts in this process, joined by one pipe for each path.
type network struct {
	client, server *netstack.Host
	pipes          []*netstack.PipeEnd  // the client's ends
	links          []stack.LinkEndpoint // the same, with the tap of a capture
	capture        *os.File
	pcap           *netstack.PcapWriter // writes to capture
	traces         []traceFile
}

// name is what path i is called.
func name(i int) string { return fmt.Sprintf("path%d", i+1) }

// Numbers of the hosts in their addresses.
const (
	clientHost = 1
	serverHost = 2
)

// address is the client's or the server's address on path i.
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
	from := time.Now()
	if n.client, err = n.host(o, "client", from); err != nil {
		return n, err
	}
	if n.server, err = n.host(o, "server", from); err != nil {
		return n, err
	}
	if o.pcap != "" {
		if n.capture, err = os.Create(o.pcap); err != nil {
			return n, err
		}
		n.pcap = netstack.NewPcapWriter(n.capture)
	}
	for i, p := range o.paths {
		if err = n.lay(i, p); err != nil {
			return n, err
		}
		if o.handover && i != o.leaving() {
			continue
		}
		if err = n.attach(i); err != nil {
			return n, err
		}
	}
	return n, nil
}

// host makes a host, which is traced if that is asked for.
func (n *network) host(o *options, name string, from time.Time) (*netstack.Host, error) {
	trace, err := n.trace(o, name, from)
	if err != nil {
		return nil, err
	}
	return netstack.New(netstack.Config{MPTCP: &mptcp.Config{
		Scheduler: o.scheduler, Congestion: o.congestion, Trace: trace,
	}})
}

// lay lays path i between the hosts and gives the server its end.
func (n *network) lay(i int, p path) error {
	// A queue of one bandwidth-delay product, at least 64 KiB, is the default.
	shape := netstack.Shape{Rate: p.rate, Delay: p.delay / 2, Loss: p.loss}
	a, b := netstack.NewPipe(netstack.PipeConfig{
		AB: shape, BA: shape, Seed: uint64(i + 1), Checksum: n.pcap != nil,
	})
	var link stack.LinkEndpoint = a
	if n.pcap != nil {
		link = netstack.NewTap(a, name(i), n.pcap)
	}
	n.pipes, n.links = append(n.pipes, a), append(n.links, link)
	return addLink(n.server, i, serverHost, b)
}

// attach gives the client its end of path i.
func (n *network) attach(i int) error { return addLink(n.client, i, clientHost, n.links[i]) }

func addLink(h *netstack.Host, i, host int, link stack.LinkEndpoint) error {
	return h.AddLink(netstack.LinkConfig{
		Name:  name(i),
		Link:  link,
		Addrs: []netip.Prefix{netip.PrefixFrom(address(i, host), 24)},
	})
}

// close ends both hosts, the capture and the traces.
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
	return errors.Join(err, n.closeTraces())
}
