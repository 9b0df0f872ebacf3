package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/netstack"
)

// link is a TUN device between our host and the kernel.
type link struct {
	name   string
	ours   netip.Prefix // our address and the subnet
	kernel netip.Addr   // the kernel's address in it
}

// parseLink reads name,ours/bits,kernel's.
func parseLink(s string) (link, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 || parts[0] == "" {
		return link{}, errors.New("want name,ours/bits,kernel's")
	}
	l := link{name: parts[0]}
	var err error
	if l.ours, err = netip.ParsePrefix(parts[1]); err != nil {
		return link{}, err
	}
	if l.kernel, err = netip.ParseAddr(parts[2]); err != nil {
		return link{}, err
	}
	if !l.ours.Contains(l.kernel) || l.ours.Addr() == l.kernel {
		return link{}, fmt.Errorf("%v must be another address of %v", l.kernel, l.ours.Masked())
	}
	return l, nil
}

// attach creates the device, gives the kernel its address and makes it a link
// of the host.
func (l link) attach(host *netstack.Host, c *capture) error {
	tun, err := netstack.OpenTUN(netstack.TUNConfig{Name: l.name, NoOffload: true})
	if err != nil {
		return err
	}
	address := []string{"address", "replace", netip.PrefixFrom(l.kernel, l.ours.Bits()).String(), "dev", tun.Name()}
	if l.kernel.Is6() {
		address = append(address, "nodad")
	}
	for _, args := range [][]string{address, {"link", "set", tun.Name(), "up"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			tun.Close()
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	err = host.AddLink(netstack.LinkConfig{
		Name:  tun.Name(),
		Link:  c.tap(tun, tun.Name()),
		Addrs: []netip.Prefix{l.ours},
	})
	if err != nil {
		tun.Close()
	}
	return err
}

// capture is an optional pcapng file of all links.
type capture struct {
	file *os.File
	pcap *netstack.PcapWriter
}

// newCapture creates the file; with an empty name it captures nothing.
func newCapture(name string) (*capture, error) {
	if name == "" {
		return &capture{}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &capture{file: file, pcap: netstack.NewPcapWriter(file)}, nil
}

// tap lets the capture see a link.
func (c *capture) tap(ep stack.LinkEndpoint, name string) stack.LinkEndpoint {
	if c.file == nil {
		return ep
	}
	return netstack.NewTap(ep, name, c.pcap)
}

func (c *capture) close() error {
	if c.file == nil {
		return nil
	}
	return errors.Join(c.pcap.Flush(), c.file.Close())
}
