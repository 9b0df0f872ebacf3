//go:build linux

package interop

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// Files pass both ways over a path with loss of 0.01 to 1 %, a delay of up to
// 49 ms and reordering (mptcp_connect.sh): between MPTCP, and from and to plain
// TCP, over IPv4 and IPv6, with and without DSS checksums. Of the self-test's
// other dimensions, peeking and the ways to write are the kernel's own, and
// transparent proxies and routers between the hosts do not show to the ends.
func TestConnectMatrix(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		for _, kernel := range []side{client, server} {
			m := matrix{seed: seed, kernel: kernel}
			t.Run(m.String(), func(t *testing.T) {
				t.Parallel()
				isolated(t, 3*time.Minute, m.run)
			})
		}
	}
}

// matrix is a path of the connect matrix, and the kernel's part.
type matrix struct {
	seed   uint64
	kernel side
}

func (m matrix) String() string {
	s := scenario{name: fmt.Sprintf("path %d", m.seed), kernel: m.kernel}
	return s.title()
}

// the self-test allows a transfer so long.
const connectLimit = 61 * time.Second

func (m matrix) run(t *testing.T) {
	rng := rand.New(rand.NewPCG(m.seed, 3<<32))
	delay := time.Duration(rng.IntN(50)) * time.Millisecond
	loss := 0.0001 * float64(1+rng.IntN(100))
	reorder := float64(rng.IntN(11)) / 100
	f := []family{ipv4, ipv6}[rng.IntN(2)]
	checksum := rng.IntN(3) == 0
	t.Logf("%v, delay %v, loss %.2f %%, reordering %.0f %%, checksums %t", f, delay, loss*100, reorder*100, checksum)

	r := emptyRig(t, f)
	// As in the self-test, one hop loses and delays, the other reorders.
	there := netstack.Shape{Rate: 1e9, Delay: delay / 2, Loss: loss, QueueBytes: 1500 * 1000}
	back := netstack.Shape{Rate: 1e9, Delay: delay / 2, Reorder: reorder, ReorderBy: max(delay/4, time.Millisecond), QueueBytes: 1500 * 1000}
	r.addLink(t, linkSpec{family: f, shape: there})
	in, out := there, back
	if rng.IntN(2) == 0 {
		in, out = out, in
	}
	require.NoError(t, r.links[0].SetShape(in, out))

	for _, kind := range []struct{ plainClient, plainServer bool }{{false, false}, {false, true}, {true, false}} {
		cfg := &mptcp.Config{Checksum: checksum}
		size := 256<<10 + rng.Int64N(mebi)
		is := !kind.plainClient && !kind.plainServer
		begun := time.Now()
		if m.kernel == server {
			cfg.Plain = kind.plainClient
			l := kernelListen(t, !kind.plainServer)
			done := kernelServe(t, l, is, size)
			c := r.dial(t, cfg)
			within(t, c, connectLimit)
			exchange(t, c, done, size)
			require.NoError(t, l.Close())
			require.Equal(t, is, c.Info().Fallback == "", c.Info().Fallback)
		} else {
			cfg.Plain = kind.plainServer
			taken, done, stop := r.serveWith(t, &mptcp.ListenConfig{Config: cfg}, size)
			c := kernelDialSpeaking(t, !kind.plainClient, is, at(f.addr(1, ours)))
			within(t, c, connectLimit)
			exchange(t, c, done, size)
			stop()
			conn := <-taken
			require.Equal(t, is, conn.Info().Fallback == "", conn.Info().Fallback)
		}
		require.Less(t, time.Since(begun), connectLimit)
	}
	m.requireCounts(t, r)
}

// requireCounts checks what both sides counted of the three connections: all
// clients that could offered MPTCP, one server took it. A SYN that is repeated
// may count twice.
func (m matrix) requireCounts(t *testing.T, r *rig) {
	t.Helper()
	s := &session{rig: r}
	theirs, ours := s.mib(t, true), s.mib(t, false)
	ofClient, ofServer := ours, theirs
	if m.kernel == client {
		ofClient, ofServer = theirs, ours
	}
	require.Equal(t, 2, ofClient["MPCapableSYNTX"])
	require.Equal(t, 1, ofClient["MPCapableSYNACKRX"])
	require.Equal(t, 1, ofClient["MPCapableFallbackSYNACK"])
	require.GreaterOrEqual(t, ofServer["MPCapableSYNRX"], 1)
	require.Equal(t, 1, ofServer["MPCapableACKRX"])
	for _, c := range []counters{ours, theirs} {
		require.Zero(t, c["DataCsumErr"])
		require.Zero(t, c["MPFailTx"]+c["MPFailRx"]+c["InfiniteMapTx"]+c["InfiniteMapRx"])
	}
	require.Zero(t, theirs["Tcp.InCsumErrors"])
}

// One socket of the kernel connects three times, disconnecting in between.
func TestDisconnect(t *testing.T) {
	isolated(t, time.Minute, func(t *testing.T) {
		r := newRig(t, ipv4, []netstack.Shape{quick})
		const size = 64 << 10
		taken, done := r.serve(t, size)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
		require.NoError(t, err)
		defer unix.Close(fd)
		to := &unix.SockaddrInet4{Port: port, Addr: ipv4.addr(1, ours).As4()}
		for i := 1; i <= 3; i++ {
			require.NoError(t, unix.Connect(fd, to))
			f := descriptor(fd)
			sent, err := io.Copy(f, payload(size, clientSeed))
			require.NoError(t, err)
			require.EqualValues(t, size, sent)
			require.NoError(t, unix.Shutdown(fd, unix.SHUT_WR))
			requireWhole(t, "server to client", receive(f), size, serverSeed)
			require.NoError(t, disconnect(fd))
			requireWhole(t, "client to server", <-done, size, clientSeed)
			require.Empty(t, (<-taken).Info().Fallback)
			require.Equal(t, i, kernelCounters(t)["MPCapableSYNACKRX"])
			require.EqualValues(t, i, r.host.Counters().MIB["MPCapableSYNRX"])
			require.EqualValues(t, i, r.host.Counters().MIB["MPCapableACKRX"])
		}
	})
}

// descriptor reads and writes a blocking socket, whose owner closes it.
type descriptor int

func (d descriptor) Write(p []byte) (int, error) { return unix.Write(int(d), p) }

func (d descriptor) Read(p []byte) (int, error) {
	n, err := unix.Read(int(d), p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// disconnect is connect(2) to no address.
func disconnect(fd int) error {
	none := unix.RawSockaddrAny{Addr: unix.RawSockaddr{Family: unix.AF_UNSPEC}}
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unix.SizeofSockaddrInet4); e != 0 {
		return e
	}
	return nil
}
