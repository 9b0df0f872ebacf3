package speed

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace of the kernel, which lives as long as the
// thread that works in it. Sockets and devices stay in the namespace that they
// were made in.
type namespace struct {
	work chan func()
	tid  int
}

// newNamespace returns a namespace of its own with a loopback interface.
func newNamespace() (*namespace, error) {
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.tid = unix.Gettid()
		made <- err
		for f := range n.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		n.close()
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	return n, n.ip("link set lo up", "mptcp limits set subflows 8 add_addr_accepted 8")
}

func (n *namespace) close() { close(n.work) }

// do runs f in the namespace.
func (n *namespace) do(f func() error) error {
	done := make(chan error, 1)
	n.work <- func() { done <- f() }
	return <-done
}

// ip runs ip with the words of each line.
func (n *namespace) ip(lines ...string) error {
	return n.do(func() error {
		for _, line := range lines {
			out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
		}
		return nil
	})
}

// cubic sets the congestion control of a kernel socket.
func cubic(_, _ string, raw syscall.RawConn) error {
	var err error
	if ctl := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	}); ctl != nil {
		return ctl
	}
	return err
}

func (n *namespace) listen(address string, mptcp bool) (l net.Listener, err error) {
	lc := net.ListenConfig{Control: cubic}
	lc.SetMultipathTCP(mptcp)
	err = n.do(func() (err error) {
		l, err = lc.Listen(context.Background(), "tcp4", address)
		return err
	})
	return l, err
}

func (n *namespace) dial(address string, mptcp bool) (c net.Conn, err error) {
	d := net.Dialer{Control: cubic, Timeout: 10 * time.Second, FallbackDelay: -1}
	d.SetMultipathTCP(mptcp)
	err = n.do(func() (err error) {
		c, err = d.Dial("tcp4", address)
		return err
	})
	return c, err
}
