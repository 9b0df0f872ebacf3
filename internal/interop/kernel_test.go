//go:build linux

package interop

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cubic sets the congestion control of a kernel socket: the system's default
// may be one that does badly on shallow queues.
func cubic(_, _ string, raw syscall.RawConn) error {
	var err error
	if ctl := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	}); ctl != nil {
		return ctl
	}
	return err
}

// kernelListen listens in the kernel on the wildcard address, so that joins
// to other addresses find the listener.
func kernelListen(t *testing.T, mptcp bool) *net.TCPListener {
	t.Helper()
	lc := net.ListenConfig{Control: cubic}
	lc.SetMultipathTCP(mptcp)
	l, err := lc.Listen(context.Background(), "tcp", ":8000")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// kernelDial connects from the kernel.
func kernelDial(t *testing.T, mptcp bool, address string) *net.TCPConn {
	t.Helper()
	return kernelDialSpeaking(t, mptcp, mptcp, address)
}

// kernelDialSpeaking connects from the kernel. want says whether MPTCP has to
// be in use then.
func kernelDialSpeaking(t *testing.T, mptcp, want bool, address string) *net.TCPConn {
	t.Helper()
	d := net.Dialer{Control: cubic, Timeout: 10 * time.Second}
	d.SetMultipathTCP(mptcp)
	c, err := d.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	requireMultipath(t, c.(*net.TCPConn), want)
	return c.(*net.TCPConn)
}

// kernelDialMapped is kernelDial of an IPv4 address from a socket of IPv6.
func kernelDialMapped(t *testing.T, to netip.Addr) *net.TCPConn {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "mapped")
	defer f.Close()
	require.NoError(t, unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"))
	require.NoError(t, unix.Connect(fd, &unix.SockaddrInet6{Port: port, Addr: to.As16()}))
	c, err := net.FileConn(f)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	requireMultipath(t, c.(*net.TCPConn), true)
	return c.(*net.TCPConn)
}

// kernelServe accepts one connection, plays the server on it and sends what it
// received. want says whether it has to be MPTCP.
func kernelServe(t *testing.T, l *net.TCPListener, want bool, n int64) <-chan received {
	t.Helper()
	done := make(chan received, 1)
	go func() {
		c, err := l.AcceptTCP()
		if err != nil {
			done <- received{err: err}
			return
		}
		if is, err := c.MultipathTCP(); err != nil || is != want {
			t.Errorf("kernel server has MPTCP %t, want %t: %v", is, want, err)
		}
		done <- serve(c, n)
	}()
	return done
}

func requireMultipath(t *testing.T, c *net.TCPConn, want bool) {
	t.Helper()
	is, err := c.MultipathTCP()
	require.NoError(t, err)
	require.Equal(t, want, is, "kernel client: MPTCP in use")
}

// The kernel against itself shows that the peer of the other tests works, and
// that a failing one is not its fault.
func TestKernelWithItself(t *testing.T) {
	isolated(t, 30*time.Second, func(t *testing.T) {
		ip(t, "link set lo up")
		l := kernelListen(t, true)
		server := kernelServe(t, l, true, 8*mebi)
		exchange(t, kernelDial(t, true, "127.0.0.1:8000"), server, 8*mebi)
		got := kernelCounters(t)
		require.Equal(t, 1, got["MPCapableSYNRX"])
		require.Equal(t, 1, got["MPCapableACKRX"])
		requireNoFaults(t, got)
		logCounters(t, got)
	})
}
