package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/gomptcp/gomptcp/netstack"
)

// link is a TUN device between our host and the kernel.
type link struct {
	name   string
	ours   netip.Prefix   // our address and the subnet
	kernel netip.Addr     // the kernel's address in it
	routes []netip.Prefix // what is reached over it besides the subnet; nil = everything
}

// parseLink reads name,ours/bits,kernel's[,prefix...].
func parseLink(s string) (link, error) {
	parts := strings.Split(s, ",")
	if len(parts) < 3 || parts[0] == "" {
		return link{}, errors.New("want name,ours/bits,kernel's[,prefix...]")
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
	for _, part := range parts[3:] {
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return link{}, err
		}
		l.routes = append(l.routes, p)
	}
	return l, nil
}

// newHost returns a host on the links.
func newHost(links []link) (*netstack.Host, error) {
	host, err := netstack.New(netstack.Config{})
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if err := l.attach(host); err != nil {
			host.Close()
			return nil, err
		}
	}
	return host, nil
}

// attach creates the device, gives the kernel its address and makes it a link
// of the host.
func (l link) attach(host *netstack.Host) error {
	tun, err := netstack.OpenTUN(netstack.TUNConfig{Name: l.name, NoOffload: true})
	if err != nil {
		return err
	}
	if err := route(tun.Name(), netip.PrefixFrom(l.kernel, l.ours.Bits()), nil); err != nil {
		tun.Close()
		return err
	}
	err = host.AddLink(netstack.LinkConfig{
		Name: tun.Name(), Link: tun, Addrs: []netip.Prefix{l.ours}, Routes: l.routes, Default: l.routes == nil,
	})
	if err != nil {
		tun.Close()
	}
	return err
}

// route gives the kernel its address on a device, sets the device up and
// routes prefixes into it.
func route(device string, address netip.Prefix, prefixes []netip.Prefix) error {
	commands := [][]string{{"address", "replace", address.String(), "dev", device}, {"link", "set", device, "up"}}
	if address.Addr().Is6() {
		// The device has nobody else who could have the address.
		commands[0] = append(commands[0], "nodad")
	}
	for _, p := range prefixes {
		commands = append(commands, []string{"route", "replace", p.String(), "dev", device})
	}
	for _, args := range commands {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
