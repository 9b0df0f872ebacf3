package speed

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// HasKernel says whether Kernel can be measured on this system.
const HasKernel = true

// Kernel measures, as root, transfers to the kernel ("out") and from it ("in")
// over TUNs with offload, by gVisor's TCP and ours on one and by our MPTCP on
// two, and between two namespaces of the kernel, with its own MPTCP over two
// veths. Each takes turn; round decides the order. It returns bytes a second.
func Kernel(turn time.Duration, round int) (map[string]float64, error) {
	rates := make(map[string]float64)
	measures := []func() error{
		func() error { return overTUN(rates, "gvisor", 1, false, openGVisor, turn) },
		func() error {
			return overTUN(rates, "tcp", 1, false, opener(&mptcp.Config{Plain: true}), turn)
		},
		func() error { return overTUN(rates, "mptcp2", 2, true, opener(&mptcp.Config{}), turn) },
		func() error { return betweenKernels(rates, "veth mptcp2", turn) },
	}
	var all error
	for i := range measures {
		all = errors.Join(all, measures[(i+round)%len(measures)]())
	}
	return rates, all
}

// The kernel is .1 in network 10.1.i.0/24 of TUN i, the stack under test .2.
func tunAddr(i, host int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i), byte(host)}) }

// opened is a stack that dials the kernel over TUNs, which it closes.
type opened struct {
	dial  func(to netip.AddrPort) (net.Conn, error)
	close func() error
}

// overTUN measures one stack on n TUNs.
func overTUN(rates map[string]float64, name string, n int, multipath bool, open func([]*netstack.TUN) (*opened, error), turn time.Duration) error {
	ns, err := newNamespace()
	if err != nil {
		return err
	}
	defer ns.close()
	var tuns []*netstack.TUN
	for i := 1; i <= n; i++ {
		dev := fmt.Sprintf("tun%d", i)
		var tun *netstack.TUN
		if err := ns.do(func() (err error) {
			tun, err = netstack.OpenTUN(netstack.TUNConfig{Name: dev})
			return err
		}); err != nil {
			return err
		}
		tuns = append(tuns, tun)
		if err := ns.ip(fmt.Sprintf("address add %v/24 dev %s", tunAddr(i, 1), dev), fmt.Sprintf("link set %s up", dev)); err != nil {
			return err
		}
		if i > 1 {
			if err := ns.ip(fmt.Sprintf("mptcp endpoint add %v dev %s signal", tunAddr(i, 1), dev)); err != nil {
				return err
			}
		}
	}
	s, err := open(tuns)
	if err != nil {
		return err
	}
	l, err := ns.listen(fmt.Sprintf(":%d", Port), multipath)
	if err != nil {
		return errors.Join(err, s.close())
	}
	r := &Rig{
		Dial:  func(port int) (net.Conn, error) { return s.dial(netip.AddrPortFrom(tunAddr(1, 1), uint16(port))) },
		paths: n,
	}
	for _, way := range []string{"out", "in"} {
		client, server, err := r.pair(l, Port)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), l.Close(), s.close())
		}
		if way == "in" {
			client, server = server, client
		}
		used, err := Bulk(client, server, turn/4, turn)
		if err != nil {
			return errors.Join(fmt.Errorf("%s %s: %w", name, way, err), l.Close(), s.close())
		}
		rates[name+" "+way] = used.PerSecond()
	}
	return errors.Join(l.Close(), s.close())
}

// opener returns what opens a host of ours on TUNs.
func opener(cfg *mptcp.Config) func([]*netstack.TUN) (*opened, error) {
	return func(tuns []*netstack.TUN) (*opened, error) {
		cfg.ReadBuffer, cfg.WriteBuffer = BufferSize, BufferSize
		h, err := netstack.New(netstack.Config{MPTCP: cfg})
		if err != nil {
			return nil, err
		}
		for i, tun := range tuns {
			if err := h.AddLink(netstack.LinkConfig{
				Name: tun.Name(), Link: tun,
				Addrs: []netip.Prefix{netip.PrefixFrom(tunAddr(i+1, 2), 24)},
			}); err != nil {
				return nil, errors.Join(err, h.Close())
			}
		}
		return &opened{
			dial:  func(to netip.AddrPort) (net.Conn, error) { return h.Dial("mptcp", to.String()) },
			close: h.Close,
		}, nil
	}
}

// verified is a TUN for gVisor's TCP, which has to be told that the kernel's
// checksums need no look.
type verified struct{ *netstack.TUN }

func (verified) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// Wait returns at once: gVisor calls it with a lock held that the link's reader
// may wait for.
func (verified) Wait() {}

// openGVisor opens gVisor's own TCP on a TUN.
func openGVisor(tuns []*netstack.TUN) (*opened, error) {
	s, err := newGVisor(verified{tuns[0]}, netip.PrefixFrom(tunAddr(1, 2), 24))
	if err != nil {
		return nil, err
	}
	return &opened{
		dial: func(to netip.AddrPort) (net.Conn, error) {
			return dialGVisor(s, tcpip.FullAddress{Addr: tcpip.AddrFrom4(to.Addr().As4()), Port: to.Port()})
		},
		close: func() error {
			s.Destroy()
			tuns[0].Wait()
			return nil
		},
	}, nil
}

// betweenKernels measures the kernel's MPTCP with itself over two veths.
func betweenKernels(rates map[string]float64, name string, turn time.Duration) error {
	near, err := newNamespace()
	if err != nil {
		return err
	}
	defer near.close()
	far, err := newNamespace()
	if err != nil {
		return err
	}
	defer far.close()
	for i := 1; i <= 2; i++ {
		if err := errors.Join(
			near.ip(
				fmt.Sprintf("link add near%d type veth peer name far%d netns %d", i, i, far.tid),
				fmt.Sprintf("address add 10.2.%d.1/24 dev near%d", i, i),
				fmt.Sprintf("link set near%d up", i),
			),
			far.ip(
				fmt.Sprintf("address add 10.2.%d.2/24 dev far%d", i, i),
				fmt.Sprintf("link set far%d up", i),
			),
		); err != nil {
			return err
		}
	}
	if err := far.ip("mptcp endpoint add 10.2.2.2 dev far2 signal"); err != nil {
		return err
	}
	l, err := far.listen(fmt.Sprintf(":%d", Port), true)
	if err != nil {
		return err
	}
	defer l.Close()
	r := &Rig{Dial: func(port int) (net.Conn, error) { return near.dial(fmt.Sprintf("10.2.1.2:%d", port), true) }}
	client, server, err := r.pair(l, Port)
	if err != nil {
		return err
	}
	used, err := Bulk(client, server, turn/4, turn)
	rates[name] = used.PerSecond()
	return err
}
