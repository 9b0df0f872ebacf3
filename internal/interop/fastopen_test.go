//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// far is a link with a long round trip.
var far = []netstack.Shape{{Rate: 50e6, Delay: 50 * time.Millisecond}}

// kernelFastOpen lets the kernel of this namespace open fast as client (1) and
// server (2). A SYN/ACK has no room for timestamps beside MP_CAPABLE and the
// kernel's cookie of 8 bytes, so that it leaves them out; we shorten the cookie
// (RFC 8684, Appendix B.1 allows both).
func kernelFastOpen(t *testing.T, timestamps bool) {
	t.Helper()
	set := func(name, value string) {
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0o644))
	}
	set("tcp_fastopen", "3")
	if !timestamps {
		set("tcp_timestamps", "0")
	}
}

// option sets a TCP option of a kernel socket, beside its congestion control.
func option(name, value int) func(network, address string, raw syscall.RawConn) error {
	return func(network, address string, raw syscall.RawConn) (err error) {
		if err := cubic(network, address, raw); err != nil {
			return err
		}
		if ctl := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, name, value)
		}); ctl != nil {
			return ctl
		}
		return err
	}
}

// fastOpens are what a fast open is tried with.
var fastOpens = []struct {
	multipath, checksum, timestamps bool
}{
	{false, false, true},
	{true, false, false},
	{true, true, false},
	{true, false, true},
}

// Our client asks the kernel for a cookie, and sends data on the SYN from the
// second connection on.
func TestOurFastOpenToKernel(t *testing.T) {
	for _, c := range fastOpens {
		t.Run(fmt.Sprintf("mptcp %t checksum %t timestamps %t", c.multipath, c.checksum, c.timestamps), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				kernelFastOpen(t, c.timestamps)
				r := newRig(t, ipv4, far)
				lc := net.ListenConfig{Control: option(unix.TCP_FASTOPEN, 16)}
				lc.SetMultipathTCP(c.multipath)
				l, err := lc.Listen(context.Background(), "tcp", ":8000")
				require.NoError(t, err)
				t.Cleanup(func() { l.Close() })
				for i := range 3 {
					server := kernelServe(t, l.(*net.TCPListener), c.multipath, mebi)
					begun := time.Now()
					conn := r.dial(t, &mptcp.Config{Plain: !c.multipath, Checksum: c.checksum, FastOpen: true})
					took := time.Since(begun)
					within(t, conn, 30*time.Second)
					exchange(t, conn, server, mebi)
					logSubflows(t, conn)
					require.Equal(t, c.multipath, conn.Info().MPTCP)
					t.Logf("dial %d took %v, %d bytes on the SYN", i, took, conn.Info().SYNData)
					require.Equal(t, i > 0, conn.Info().SYNData > 1000)
				}
				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 1, got["TcpExt.TCPFastOpenCookieReqd"])
				require.Equal(t, 2, got["TcpExt.TCPFastOpenPassive"])
				require.EqualValues(t, 2, r.host.Counters().MIB["TCPFastOpenActive"])
				requireNoFaults(t, got)
			})
		})
	}
}

// The kernel asks our server for a cookie, and sends data on the SYN from the
// second connection on.
func TestKernelFastOpenToUs(t *testing.T) {
	for _, c := range fastOpens {
		t.Run(fmt.Sprintf("mptcp %t checksum %t timestamps %t", c.multipath, c.checksum, c.timestamps), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				kernelFastOpen(t, c.timestamps)
				r := newRig(t, ipv4, far)
				lc := mptcp.ListenConfig{Stack: r.host.Stack, Config: &mptcp.Config{FastOpen: true, Checksum: c.checksum}}
				l, err := lc.Listen(context.Background(), "mptcp", fmt.Sprintf(":%d", port))
				require.NoError(t, err)
				t.Cleanup(func() { l.Close() })
				for i := range 3 {
					taken, done := make(chan *mptcp.Conn, 1), make(chan received, 1)
					go func() {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						taken <- conn.(*mptcp.Conn)
						done <- serve(conn.(*mptcp.Conn), mebi)
					}()
					d := net.Dialer{Control: option(unix.TCP_FASTOPEN_CONNECT, 1), Timeout: 10 * time.Second}
					d.SetMultipathTCP(c.multipath)
					conn, err := d.Dial("tcp", at(r.family.addr(1, ours)))
					require.NoError(t, err)
					within(t, conn, 30*time.Second)
					exchange(t, conn.(*net.TCPConn), done, mebi)
					server := <-taken
					logSubflows(t, server)
					require.Equal(t, c.multipath, server.Info().MPTCP)
					t.Logf("%d bytes on the SYN", server.Info().SYNData)
					require.Equal(t, i > 0, server.Info().SYNData > 0)
				}
				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 2, got["TcpExt.TCPFastOpenActive"])
				mib := r.host.Counters().MIB
				require.EqualValues(t, 1, mib["TCPFastOpenCookieReqd"])
				require.EqualValues(t, 2, mib["TCPFastOpenPassive"])
				requireNoFaults(t, got)
			})
		})
	}
}
