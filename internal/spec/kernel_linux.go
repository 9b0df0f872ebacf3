package spec

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// kernel is Linux in a network namespace of its own, behind a TUN device. The
// applications are sockets of this process.
type kernel struct {
	setup    Setup
	start    time.Time
	ns       *os.File // the namespace
	tun      *os.File
	in       chan Packet
	accepted chan net.Conn
	listener net.Listener
	apps     []*kernelApp
}

// tunName is the device in the namespace.
const tunName = "spec0"

// NewKernel makes a namespace whose kernel is the target. It needs root.
func NewKernel(setup Setup) (Target, error) {
	t := &kernel{
		setup: setup, start: time.Now().Add(-time.Second),
		in: make(chan Packet, 4096), accepted: make(chan net.Conn, 64),
	}
	made := make(chan error)
	go func() {
		// The thread is given up with the goroutine: no other one may run in
		// the namespace.
		runtime.LockOSThread()
		made <- t.unshare()
	}()
	err := <-made
	if err == nil {
		err = t.within(t.configure)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	go t.receive()
	return t, nil
}

// unshare gives the calling thread a namespace with a TUN device.
func (t *kernel) unshare() (err error) {
	if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("new network namespace: %w", err)
	}
	if t.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(tunName)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("TUN device: %w", err)
	}
	t.tun = os.NewFile(uintptr(fd), "/dev/net/tun")
	return nil
}

// within runs f on a thread in the namespace.
func (t *kernel) within(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(t.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// configure brings the namespace into the state that the setup asks for.
func (t *kernel) configure() error {
	lines := []string{"link set lo up", fmt.Sprintf("link set %s mtu %d up", tunName, linkMTU)}
	for i := range max(t.setup.Addrs, 1) {
		lines = append(lines, t.addrLine("add", i))
	}
	subflows, accepted := 7, 0
	if t.setup.Subflows > 0 {
		subflows = t.setup.Subflows - 1
	}
	if t.setup.Mesh {
		accepted = 8
		for i := 1; i < max(t.setup.Addrs, 1); i++ {
			lines = append(lines, fmt.Sprintf("mptcp endpoint add %v id %d signal subflow", t.Addr(i), i+1))
		}
	}
	lines = append(lines, fmt.Sprintf("mptcp limits set subflows %d add_addr_accepted %d", min(subflows, 8), accepted))
	for _, l := range lines {
		if err := ip(l); err != nil {
			return err
		}
	}
	return t.sysctls()
}

func (t *kernel) addrLine(verb string, i int) string {
	if t.setup.IPv6 {
		return fmt.Sprintf("-6 addr %s %v/64 dev %s nodad", verb, t.Addr(i), tunName)
	}
	return fmt.Sprintf("addr %s %v/16 dev %s", verb, t.Addr(i), tunName)
}

func ip(line string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// sysctls sets what the kernel has no socket option for.
func (t *kernel) sysctls() error {
	// Announcements are repeated after a second instead of two minutes.
	values := map[string]string{"net/ipv4/conf/all/rp_filter": "0", "net/mptcp/add_addr_timeout": "1"}
	if t.setup.Checksum {
		values["net/mptcp/checksum_enabled"] = "1"
	}
	if t.setup.FastOpen {
		values["net/ipv4/tcp_fastopen"] = "1027" // client, server, and every listener
	}
	if n := t.setup.ReadBuffer; n > 0 {
		values["net/ipv4/tcp_rmem"] = fmt.Sprintf("4096 %d %d", n, n)
	}
	for name, v := range values {
		if err := os.WriteFile("/proc/sys/"+name, []byte(v), 0); err != nil {
			return fmt.Errorf("sysctl %s: %w", name, err)
		}
	}
	return nil
}

func (t *kernel) Name() string          { return "kernel" }
func (t *kernel) Virtual() bool         { return false }
func (t *kernel) Addr(i int) netip.Addr { return targetAddr(t.setup.IPv6, i) }
func (t *kernel) Peer(i int) netip.Addr { return peerAddr(t.setup.IPv6, i) }
func (t *kernel) Now() mono.Time        { return mono.Time(time.Since(t.start)) }

// receive reads what the kernel sends until the device is closed.
func (t *kernel) receive() {
	defer close(t.in)
	for {
		b := make([]byte, 65536)
		n, err := t.tun.Read(b)
		if err != nil {
			return
		}
		if p, ok := tcpPacket(b[:n], t.Now()); ok {
			t.in <- p
		}
	}
}

func (t *kernel) Send(p Packet) {
	// What the device does not take is lost, as on any link.
	_, _ = t.tun.Write(ipPacket(p.Src, p.Dst, protocolTCP, p.ECN, p.TCP))
}

func (t *kernel) Recv(until mono.Time) (Packet, bool) {
	select {
	case p, ok := <-t.in:
		return p, ok
	default:
	}
	timer := time.NewTimer(until.Sub(t.Now()))
	defer timer.Stop()
	select {
	case p, ok := <-t.in:
		return p, ok
	case <-timer.C:
		return Packet{}, false
	}
}

func (t *kernel) ICMP(quoted Packet, e ICMP) error {
	if t.setup.IPv6 {
		return ErrUnsupported
	}
	message := icmpMessage(e, ipPacket(quoted.Src, quoted.Dst, protocolTCP, quoted.ECN, quoted.TCP))
	_, err := t.tun.Write(ipPacket(quoted.Dst, quoted.Src, protocolICMP, 0, message))
	return err
}

func (t *kernel) network() string {
	if t.setup.IPv6 {
		return "tcp6"
	}
	return "tcp4"
}

func (t *kernel) Listen(port uint16) error {
	return t.within(func() (err error) {
		var lc net.ListenConfig
		lc.SetMultipathTCP(!t.setup.Plain)
		t.listener, err = lc.Listen(context.Background(), t.network(), ":"+strconv.Itoa(int(port)))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := t.listener.Accept()
				if err != nil {
					return
				}
				t.accepted <- c
			}
		}()
		return nil
	})
}

func (t *kernel) Accept(within time.Duration) (App, error) {
	select {
	case c := <-t.accepted:
		return t.adopt(c), nil
	case <-time.After(within):
		return nil, ErrTimeout
	}
}

func (t *kernel) Dial(remote netip.AddrPort) (App, error) {
	a := t.adopt(nil)
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(addrPort(t.Addr(0), 0))}
	d.SetMultipathTCP(!t.setup.Plain)
	go t.within(func() error {
		c, err := d.Dial(t.network(), remote.String())
		a.connected(c, err)
		return nil
	})
	return a, nil
}

func (t *kernel) SetAddr(i int, present bool) error {
	lines := []string{t.addrLine("add", i), fmt.Sprintf("mptcp endpoint add %v id %d signal subflow", t.Addr(i), i+1)}
	if !present {
		lines = []string{fmt.Sprintf("mptcp endpoint del id %d", i+1), strings.TrimSuffix(t.addrLine("del", i), " nodad")}
	}
	return t.within(func() error {
		for _, l := range lines {
			if err := ip(l); err != nil && !strings.Contains(l, "endpoint") {
				return err
			}
		}
		return nil
	})
}

func (t *kernel) Close() {
	if t.listener != nil {
		t.listener.Close()
	}
	for _, a := range t.apps {
		a.release()
	}
	if t.tun != nil {
		t.tun.Close()
	}
	if t.ns != nil {
		t.ns.Close()
	}
}
