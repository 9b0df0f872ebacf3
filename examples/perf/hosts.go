package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// host makes connections.
type host interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(network, address string) (net.Listener, error)
}

// hosts returns the hosts that this process plays: nil for one it does not.
func (o *options) hosts() (client, server host, closeAll func(), err error) {
	var both []*netstack.Host
	closeAll = func() {
		for _, h := range both {
			h.Close()
		}
	}
	var one host
	switch {
	case o.system:
		one = system{!o.plain}
	case len(o.tuns) > 0:
		h, err := o.onTUNs()
		if err != nil {
			return nil, nil, nil, err
		}
		one, both = h, append(both, h)
	default:
		a, b, err := o.inProcess()
		if err != nil {
			return nil, nil, nil, err
		}
		both = append(both, a, b)
		o.connect = netip.AddrPortFrom(address(0, 2), 5201).String()
		return a, b, closeAll, nil
	}
	if o.server {
		return nil, one, closeAll, nil
	}
	return one, nil, closeAll, nil
}

func (o *options) newHost() (*netstack.Host, error) {
	return netstack.New(netstack.Config{MPTCP: &mptcp.Config{Plain: o.plain, Checksum: o.checksum}})
}

func address(path, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(path + 1), byte(host)})
}

// inProcess returns two hosts that are joined by pipes.
func (o *options) inProcess() (a, b *netstack.Host, err error) {
	if a, err = o.newHost(); err != nil {
		return nil, nil, err
	}
	if b, err = o.newHost(); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	for i := range o.paths {
		shape := netstack.Shape{Rate: o.rate * 1e6, Delay: o.delay / 2}
		near, far := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape, Offload: true, Seed: uint64(i + 1)})
		for k, end := range []*netstack.PipeEnd{near, far} {
			err := []*netstack.Host{a, b}[k].AddLink(netstack.LinkConfig{
				Name: fmt.Sprintf("path%d", i+1), Link: end,
				Addrs: []netip.Prefix{netip.PrefixFrom(address(i, k+1), 24)},
			})
			if err != nil {
				return nil, nil, errors.Join(err, a.Close(), b.Close())
			}
		}
	}
	return a, b, nil
}

// tun is a TUN link between our host and the kernel.
type tun struct {
	name   string
	ours   netip.Prefix
	kernel netip.Addr
}

func parseTUN(s string) (t tun, err error) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 || parts[0] == "" {
		return t, errors.New("want name,ours/bits,kernel's")
	}
	t.name = parts[0]
	if t.ours, err = netip.ParsePrefix(parts[1]); err != nil {
		return t, err
	}
	if t.kernel, err = netip.ParseAddr(parts[2]); err != nil {
		return t, err
	}
	if !t.ours.Contains(t.kernel) || t.ours.Addr() == t.kernel {
		return t, fmt.Errorf("%v must be another address of %v", t.kernel, t.ours.Masked())
	}
	return t, nil
}

// onTUNs returns a host on TUN links.
func (o *options) onTUNs() (*netstack.Host, error) {
	h, err := o.newHost()
	if err != nil {
		return nil, err
	}
	for i, t := range o.tuns {
		if err := t.attach(h, i == 0); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// attach creates the device, gives the kernel its address and adds the link to
// a host, for everything if it is the default.
func (t tun) attach(h *netstack.Host, isDefault bool) error {
	link, err := netstack.OpenTUN(netstack.TUNConfig{Name: t.name})
	if err != nil {
		return err
	}
	kernel := netip.PrefixFrom(t.kernel, t.ours.Bits()).String()
	for _, line := range []string{"address replace " + kernel + " dev " + link.Name(), "link set " + link.Name() + " up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			link.Close()
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	err = h.AddLink(netstack.LinkConfig{Name: link.Name(), Link: link, Addrs: []netip.Prefix{t.ours}, Default: isDefault})
	if err != nil {
		link.Close()
	}
	return err
}

// system is the operating system as a host.
type system struct{ mptcp bool }

func (s system) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	d.SetMultipathTCP(s.mptcp)
	return d.DialContext(ctx, network, address)
}

func (s system) Listen(network, address string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(s.mptcp)
	return lc.Listen(context.Background(), network, address)
}
