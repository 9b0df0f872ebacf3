//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
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

// distant is a link with a long round trip.
var distant = []netstack.Shape{{Rate: 50e6, Delay: 50 * time.Millisecond}}

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

const question, answer = 20, 100

// serveFast answers a question before it serves: after a fast open the answer
// leaves before the third ACK has come.
func serveFast(c halfCloser, n int64) received {
	if _, err := io.ReadFull(c, make([]byte, question)); err != nil {
		return received{err: err}
	}
	if _, err := c.Write(make([]byte, answer)); err != nil {
		return received{err: err}
	}
	return serve(c, n)
}

// ask asks what serveFast answers.
func ask(t *testing.T, c halfCloser) {
	t.Helper()
	_, err := c.Write(make([]byte, question))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, answer))
	require.NoError(t, err)
}

// Our client asks the kernel for a cookie, and sends data on the SYN from the
// second connection on.
func TestOurFastOpenToKernel(t *testing.T) {
	for _, c := range fastOpens {
		t.Run(fmt.Sprintf("mptcp %t checksum %t timestamps %t", c.multipath, c.checksum, c.timestamps), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				kernelFastOpen(t, c.timestamps)
				r := newRig(t, ipv4, distant)
				lc := net.ListenConfig{Control: option(unix.TCP_FASTOPEN, 16)}
				lc.SetMultipathTCP(c.multipath)
				l, err := lc.Listen(context.Background(), "tcp", ":8000")
				require.NoError(t, err)
				t.Cleanup(func() { l.Close() })
				for i := range 3 {
					server := make(chan received, 1)
					go func() {
						conn, err := l.(*net.TCPListener).AcceptTCP()
						if err != nil {
							return
						}
						server <- serveFast(conn, mebi)
					}()
					begun := time.Now()
					conn := r.dial(t, &mptcp.Config{Plain: !c.multipath, Checksum: c.checksum, FastOpen: true})
					within(t, conn, 30*time.Second)
					ask(t, conn)
					took := time.Since(begun)
					exchange(t, conn, server, mebi)
					logSubflows(t, conn)
					require.Equal(t, c.multipath, conn.Info().MPTCP)
					t.Logf("dial %d and answer took %v, %d bytes on the SYN", i, took, conn.Info().SYNData)
					require.Equal(t, i > 0, conn.Info().SYNData == question)
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
// second connection on. It stays with MPTCP as long as our server has nothing to
// say before the third ACK.
func TestKernelFastOpenToUs(t *testing.T) {
	for _, c := range fastOpens {
		t.Run(fmt.Sprintf("mptcp %t checksum %t timestamps %t", c.multipath, c.checksum, c.timestamps), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				kernelFastOpen(t, c.timestamps)
				r := newRig(t, ipv4, distant)
				l := r.fastListen(t, c.checksum)
				for i := range 3 {
					server := r.kernelAsks(t, l, c.multipath, serve, func(*net.TCPConn) {})
					require.Equal(t, c.multipath, server.Info().MPTCP)
					require.Equal(t, i > 0, server.Info().SYNData > 1000)
				}
				got := r.requireFastOpens(t)
				requireNoFaults(t, got)
			})
		})
	}
}

// The answer that our server has before the third ACK reaches the kernel as early
// as it may. Over MPTCP it has a mapping and no DATA_ACK (RFC 8684, Appendix B.3
// with erratum 6609), and Linux, which wants a DATA_ACK on the first data, goes on
// with plain TCP. Our server follows, and every byte arrives.
func TestKernelGetsEarlyAnswers(t *testing.T) {
	for _, c := range fastOpens {
		t.Run(fmt.Sprintf("mptcp %t checksum %t timestamps %t", c.multipath, c.checksum, c.timestamps), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				kernelFastOpen(t, c.timestamps)
				r := newRig(t, ipv4, distant)
				l := r.fastListen(t, c.checksum)
				fallbacks := 0
				for i := range 3 {
					begun := time.Now()
					server := r.kernelAsks(t, l, c.multipath, serveFast, func(conn *net.TCPConn) {
						ask(t, conn)
						t.Logf("dial %d and answer took %v", i, time.Since(begun))
					})
					require.Equal(t, i > 0, server.Info().SYNData == question)
					if c.multipath && !server.Info().MPTCP {
						fallbacks++
					}
				}
				got := r.requireFastOpens(t)
				t.Logf("%d fallbacks", fallbacks)
				require.Equal(t, fallbacks, got["MPCapableDataFallback"])
			})
		})
	}
}

// fastListen listens on our host for fast opens.
func (r *rig) fastListen(t *testing.T, checksum bool) net.Listener {
	t.Helper()
	lc := mptcp.ListenConfig{Stack: r.host.Stack, Config: &mptcp.Config{FastOpen: true, Checksum: checksum}}
	l, err := lc.Listen(context.Background(), "mptcp", fmt.Sprintf(":%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// kernelAsks connects the kernel to our host, which serves, lets first talk, and
// exchanges data. It returns our end.
func (r *rig) kernelAsks(t *testing.T, l net.Listener, multipath bool, serve func(halfCloser, int64) received, first func(*net.TCPConn)) *mptcp.Conn {
	t.Helper()
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
	d.SetMultipathTCP(multipath)
	conn, err := d.Dial("tcp", at(r.family.addr(1, ours)))
	require.NoError(t, err)
	within(t, conn, 30*time.Second)
	first(conn.(*net.TCPConn))
	exchange(t, conn.(*net.TCPConn), done, mebi)
	server := <-taken
	logSubflows(t, server)
	return server
}

// requireFastOpens checks that of three connections of the kernel the first asked
// for a cookie and the others used it.
func (r *rig) requireFastOpens(t *testing.T) counters {
	t.Helper()
	got := kernelCounters(t)
	logCounters(t, got)
	require.Equal(t, 2, got["TcpExt.TCPFastOpenActive"])
	mib := r.host.Counters().MIB
	require.EqualValues(t, 1, mib["TCPFastOpenCookieReqd"])
	require.EqualValues(t, 2, mib["TCPFastOpenPassive"])
	return got
}
