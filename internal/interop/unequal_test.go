//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/netstack"
)

// Over 8 and 2 Mb/s together our host sends at least 0.92 of their sum to the
// kernel, where framing allows 0.94; the kernel's own sending over the like is
// measured beside. Both go through the kernel's tbf, without delay over veths,
// and with round trips of 10 and 40 ms over TUNs.
//
// Time is real here, and another process may spoil one try: each has three.
func TestUnequalLinks(t *testing.T) {
	for name, trips := range map[string][2]time.Duration{
		"veth": {}, "10 and 40 ms": {10 * time.Millisecond, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isolated(t, 2*time.Minute, func(t *testing.T) {
				const least = 0.92
				for try := 1; ; try++ {
					var rates [2]float64
					var both sync.WaitGroup
					for i, dial := range []func(*twoWays) net.Conn{(*twoWays).dialKernel, (*twoWays).dialOurs} {
						w := newTwoWays(t, trips)
						c, d := w.connect(dial)
						both.Go(func() { rates[i] = shareOfSum(t, c, d) })
					}
					both.Wait()
					t.Logf("share of the sum: kernel %.3f, ours %.3f", rates[0], rates[1])
					if rates[1] >= least {
						return
					}
					require.Less(t, try, 3, "ours is below %v each time", least)
				}
			})
		})
	}
}

// unequalRates are the rates of the links in bits/s.
var unequalRates = [2]float64{8e6, 2e6}

// shareOfSum sends for ten seconds and returns the goodput of the last eight,
// as a share of both rates.
func shareOfSum(t *testing.T, c, d net.Conn) float64 {
	stop := time.Now().Add(11 * time.Second)
	c.SetDeadline(stop)
	d.SetDeadline(stop)
	go io.Copy(c, zeros{})
	buf, bytes, from := make([]byte, 64<<10), 0, time.Now().Add(2*time.Second)
	for until := from.Add(8 * time.Second); ; {
		n, err := d.Read(buf)
		now := time.Now()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if err != nil || now.After(until) {
			break
		}
		if now.After(from) {
			bytes += n
		}
	}
	return float64(bytes) * 8 / 8 / (unequalRates[0] + unequalRates[1])
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// twoWays are two namespaces joined by two links: near has the address
// 10.20.i.1 on link i, far 10.20.i.2. The kernel of far listens.
type twoWays struct {
	*testing.T
	near, far *space
	listener  net.Listener
}

func newTwoWays(t *testing.T, trips [2]time.Duration) *twoWays {
	t.Helper()
	w := &twoWays{T: t, near: newSpace(t), far: newSpace(t)}
	for i := 1; i <= 2; i++ {
		if trip := trips[i-1]; trip == 0 {
			w.near.run("ip", fmt.Sprintf("link add link%d type veth peer name link%d netns %d", i, i, w.far.tid))
		} else {
			relay(t, w.near.tun(fmt.Sprintf("link%d", i), trip/2), w.far.tun(fmt.Sprintf("link%d", i), trip/2))
		}
		for host, s := range []*space{w.near, w.far} {
			s.run("ip", fmt.Sprintf("address add 10.20.%d.%d/24 dev link%d", i, host+1, i))
			s.run("ip", fmt.Sprintf("link set link%d up", i))
			// A queue of 50 ms, but of 30 KB at least.
			rate := unequalRates[i-1]
			s.run("tc", fmt.Sprintf("qdisc add dev link%d root tbf rate %.0f burst 5000 limit %.0f", i, rate, max(rate/8*0.05, 30_000)))
		}
		// Our host lives behind near.
		w.far.run("ip", fmt.Sprintf("route add 10.30.%d.0/24 via 10.20.%d.1", i, i))
	}
	w.far.run("ip", "mptcp endpoint add 10.20.2.2 dev link2 signal")
	lc := net.ListenConfig{Control: cubic}
	lc.SetMultipathTCP(true)
	w.far.do(func() (err error) {
		w.listener, err = lc.Listen(context.Background(), "tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	t.Cleanup(func() { w.listener.Close() })
	return w
}

// connect returns both ends of a connection.
func (w *twoWays) connect(dial func(*twoWays) net.Conn) (c, d net.Conn) {
	w.Helper()
	c = dial(w)
	w.Cleanup(func() { c.Close() })
	d, err := w.listener.Accept()
	require.NoError(w, err)
	w.Cleanup(func() { d.Close() })
	return c, d
}

// dialKernel dials from the kernel of near.
func (w *twoWays) dialKernel() (c net.Conn) {
	d := net.Dialer{Control: cubic, Timeout: 10 * time.Second, FallbackDelay: -1}
	d.SetMultipathTCP(true)
	w.near.do(func() (err error) {
		c, err = d.Dial("tcp4", fmt.Sprintf("10.20.1.2:%d", port))
		return err
	})
	return c
}

// dialOurs dials from a host of ours that near forwards for.
func (w *twoWays) dialOurs() net.Conn {
	w.near.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	h, err := netstack.New(netstack.Config{})
	require.NoError(w, err)
	w.Cleanup(func() { h.Close() })
	for i := 1; i <= 2; i++ {
		name := fmt.Sprintf("ours%d", i)
		tun := w.near.tun(name, 0)
		w.near.run("ip", fmt.Sprintf("address add 10.30.%d.1/24 dev %s", i, name))
		w.near.run("ip", fmt.Sprintf("link set %s up", name))
		require.NoError(w, h.AddLink(netstack.LinkConfig{
			Name: name, Link: tun,
			Addrs:  []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.30.%d.2/24", i))},
			Routes: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.20.%d.0/24", i))},
		}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := h.DialContext(ctx, "mptcp", fmt.Sprintf("10.20.1.2:%d", port))
	require.NoError(w, err)
	return c
}

// space is a network namespace, which lives as long as the thread that works in
// it.
type space struct {
	*testing.T
	work chan func()
	tid  int
}

func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{T: t, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		s.tid = unix.Gettid()
		made <- err
		for f := range s.work {
			f()
		}
	}()
	require.NoError(t, <-made)
	t.Cleanup(func() { close(s.work) })
	s.run("ip", "link set lo up")
	s.run("ip", "mptcp limits set subflows 8 add_addr_accepted 8")
	return s
}

// do runs f in the namespace.
func (s *space) do(f func() error) {
	s.Helper()
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	require.NoError(s, <-done)
}

// run runs a command with the words of a line in the namespace.
func (s *space) run(name, line string) {
	s.Helper()
	path := program(s.T, name)
	s.do(func() error {
		out, err := exec.Command(path, strings.Fields(line)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, line, err, out)
		}
		return nil
	})
}

// tun makes a TUN in the namespace that delays what the kernel sends into it.
func (s *space) tun(name string, delay time.Duration) (tun *netstack.TUN) {
	s.Helper()
	s.do(func() (err error) {
		tun, err = netstack.OpenTUN(netstack.TUNConfig{Name: name, In: netstack.Shape{Delay: delay}, NoOffload: true})
		return err
	})
	s.Cleanup(tun.Close)
	return tun
}

// relay passes packets between two TUNs.
func relay(t *testing.T, a, b *netstack.TUN) {
	a.Attach(relayTo{b})
	b.Attach(relayTo{a})
	t.Cleanup(func() {
		a.Attach(nil)
		b.Attach(nil)
	})
}

type relayTo struct{ out *netstack.TUN }

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (r relayTo) DeliverNetworkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	view := pkt.ToView()
	defer view.Release()
	var list stack.PacketBufferList
	defer list.Reset()
	out := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(append([]byte(nil), view.AsSlice()...))})
	out.NetworkProtocolNumber = proto
	list.PushBack(out)
	r.out.WritePackets(list)
}

// DeliverLinkPacket does nothing: there is no link header.
func (relayTo) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}
