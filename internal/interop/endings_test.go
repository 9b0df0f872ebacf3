//go:build linux

package interop

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// ends are both ends of a connection between our host and the kernel, with a
// second subflow, after a first exchange.
type ends struct {
	*session
	theirs halfCloser
}

// connect opens the connection of a scenario, which has no steps of its own.
func (sc *scenario) connect(t *testing.T) *ends {
	t.Helper()
	r := sc.build(t)
	e := &ends{session: &session{rig: r, scenario: sc}}
	if sc.kernel == server {
		l := kernelListen(t, true)
		e.conn = r.dial(t, &sc.config)
		c, err := l.AcceptTCP()
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		e.theirs = c
	} else {
		l, err := (&mptcp.ListenConfig{Stack: r.host.Stack, Config: &sc.config}).Listen(t.Context(), "mptcp", ":8000")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		e.theirs = kernelDial(t, true, at(r.family.addr(1, ours)))
		c, err := l.Accept()
		require.NoError(t, err)
		e.conn = c.(*mptcp.Conn)
	}
	within(t, e.conn, 30*time.Second)
	within(t, e.theirs, 30*time.Second)
	for _, pair := range [][2]io.ReadWriter{{e.conn, e.theirs}, {e.theirs, e.conn}} {
		_, err := pair[0].Write([]byte("hello"))
		require.NoError(t, err)
		_, err = io.ReadFull(pair[1], make([]byte, 5))
		require.NoError(t, err)
	}
	return e
}

// The end in order with nothing outstanding, where our FINs take the DATA_FIN
// along: the kernel reads the end of the stream, and everything is over at once and
// without a RST, whoever begins.
func TestEndInOrder(t *testing.T) {
	for _, kernelFirst := range []bool{true, false} {
		first := "we first"
		if kernelFirst {
			first = "kernel first"
		}
		for _, sc := range []scenario{
			{name: "one subflow", kernel: server},
			{name: "one subflow", kernel: client},
			{name: "two subflows", kernel: server, links: v4(1)},
			{name: "two subflows", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}},
		} {
			t.Run(first+", "+sc.title(), func(t *testing.T) {
				t.Parallel()
				isolated(t, time.Minute, func(t *testing.T) {
					var alone, along atomic.Int32 // DATA_FINs of ours
					sc.config.Trace = &mptcp.Trace{SegmentSent: func(s mptcp.SegmentInfo) {
						switch {
						case !strings.HasSuffix(s.String(), " fin>"):
						case s.Flags&1 != 0:
							along.Add(1)
						default:
							alone.Add(1)
						}
					}}
					e := sc.connect(t)
					subflows := 1
					if sc.name == "two subflows" {
						subflows = 2
						e.await(t, joins(1, 1, 1), 2)
					}
					require.Eventually(t, func() bool { return e.conn.Info().Unacked == 0 }, patience, 5*time.Millisecond)
					pair := []io.ReadWriteCloser{e.conn, e.theirs}
					if kernelFirst {
						slices.Reverse(pair)
					}
					require.NoError(t, pair[0].Close())
					_, err := pair[1].Read(make([]byte, 1))
					require.ErrorIs(t, err, io.EOF)
					require.NoError(t, pair[1].Close())
					require.Eventually(t, func() bool {
						return e.mib(t, true)["MPCurrEstab"] == 0 && e.mib(t, false)["MPCurrEstab"] == 0
					}, patience, 5*time.Millisecond)
					for _, kernel := range []bool{true, false} {
						require.Zero(t, e.mib(t, kernel)["MPRstTx"])
						require.Zero(t, e.mib(t, kernel)["MPFastcloseTx"])
					}
					require.EqualValues(t, subflows, along.Load())
					require.Zero(t, alone.Load())
				})
			})
		}
	}
}

// fastCloses are ways to end a connection at once.
var fastCloses = []struct {
	name   string
	closer string // "kernel" or "we"
	unread bool   // with bytes that nobody reads, instead of by order
}{
	{"kernel, by order", "kernel", false},
	{"kernel, unread", "kernel", true},
	{"we, by order", "we", false},
	{"we, unread", "we", true},
}

// MP_FASTCLOSE, which the kernel sends on a RST too.
func TestFastClose(t *testing.T) {
	for _, sc := range []scenario{
		{name: "one subflow", kernel: server},
		{name: "one subflow", kernel: client},
		{name: "two subflows", kernel: server, links: v4(1)},
		{name: "two subflows", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}},
	} {
		for _, how := range fastCloses {
			t.Run(how.name+", "+sc.title(), func(t *testing.T) {
				t.Parallel()
				isolated(t, time.Minute, func(t *testing.T) {
					e := sc.connect(t)
					subflows := 1
					if sc.name == "two subflows" {
						subflows = 2
						e.await(t, joins(1, 1, 1), 2)
					}
					e.fastClose(t, how.closer == "kernel", how.unread, subflows)
				})
			})
		}
	}
}

// fastClose has one side end the connection, and checks that the other learns
// of it and that both count it. Linux sends MP_FASTCLOSE on each subflow, as
// we do; by the time the second comes the other side may have no such subflow
// any more.
func (e *ends) fastClose(t *testing.T, byKernel, unread bool, subflows int) {
	t.Helper()
	closer, other := io.ReadWriteCloser(e.conn), io.ReadWriteCloser(e.theirs)
	if byKernel {
		closer, other = other, closer
	}
	if unread {
		_, err := other.Write([]byte("nobody reads this"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return e.arrived(byKernel) }, patience, 5*time.Millisecond)
	} else {
		require.NoError(t, closer.(interface{ SetLinger(int) error }).SetLinger(0))
	}
	require.NoError(t, closer.Close())
	_, err := other.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	if byKernel {
		var reset *mptcp.ResetError
		require.True(t, errors.As(err, &reset) && reset.Remote)
	}

	require.Eventually(t, func() bool {
		sent, received := e.mib(t, byKernel), e.mib(t, !byKernel)
		return sent["MPFastcloseTx"] == subflows && received["MPFastcloseRx"] >= 1 && sent["MPRstTx"] == subflows
	}, patience, 5*time.Millisecond)
	ours, theirs := e.mib(t, false), e.mib(t, true)
	t.Logf("fast closes: we sent %d, received %d; kernel sent %d, received %d",
		ours["MPFastcloseTx"], ours["MPFastcloseRx"], theirs["MPFastcloseTx"], theirs["MPFastcloseRx"])
	require.LessOrEqual(t, e.mib(t, !byKernel)["MPFastcloseRx"], subflows)
	require.Zero(t, e.mib(t, byKernel)["MPFastcloseRx"])
	require.Zero(t, e.mib(t, !byKernel)["MPFastcloseTx"])
	require.Zero(t, ours["MPCurrEstab"])
}

// mib are the counters of one side.
func (s *session) mib(t *testing.T, kernel bool) counters {
	t.Helper()
	if kernel {
		return kernelCounters(t)
	}
	all := make(counters)
	for name, n := range s.host.Counters().MIB {
		all[name] = int(n)
	}
	return all
}

// arrived reports whether what the other side wrote has been acknowledged.
func (e *ends) arrived(byKernel bool) bool {
	if byKernel {
		return e.conn.Info().Unacked == 0
	}
	return e.conn.Info().Readable > 0
}

// A byte that changes on the way, which DSS checksums notice: with one subflow
// MP_FAIL and an infinite mapping, with two MP_FAIL on the RST of the one it
// happened on, while the other goes on.
func TestFail(t *testing.T) {
	checksum := mptcp.Config{Checksum: true}
	for _, toUs := range []bool{true, false} {
		where := "to the kernel"
		detects := "kernel"
		if toUs {
			where, detects = "to us", "we"
		}
		for _, sc := range []scenario{
			{name: "one subflow", kernel: server, config: checksum, corrupt: 1},
			{name: "one subflow", kernel: client, config: checksum, corrupt: 1},
			{name: "two subflows", kernel: server, links: v4(1), endpoints: []string{"2 signal"}, apart: true, config: checksum, corrupt: 2},
			{name: "two subflows", kernel: client, links: v4(1), apart: true, config: checksum, corrupt: 2},
		} {
			sc.toUs = toUs
			t.Run(where+", "+sc.title(), func(t *testing.T) {
				t.Parallel()
				isolated(t, time.Minute, func(t *testing.T) {
					e := sc.connect(t)
					if sc.corrupt == 2 {
						e.await(t, joins(1, 1, 1).and(adds(server, 1)), 2)
					}
					e.fail(t, detects == "kernel")
				})
			})
		}
	}
}

// fail sends a stream in the direction that is corrupted.
func (e *ends) fail(t *testing.T, kernelDetects bool) {
	t.Helper()
	from, to := e.theirs, halfCloser(e.conn)
	if kernelDetects {
		from, to = to, from
	}
	const n = 8 * mebi
	sent := make(chan error, 1)
	go func() { sent <- send(from, payload(n, clientSeed)) }()
	whole := make(chan received, 1)
	var got bytes.Buffer
	go func() { whole <- receive(io.TeeReader(to, &got)) }()

	detects, other := func() counters { return e.mib(t, kernelDetects) }, func() counters { return e.mib(t, !kernelDetects) }
	require.Eventually(t, func() bool { return detects()["MPFailTx"] > 0 && other()["MPFailRx"] > 0 }, patience, 5*time.Millisecond)
	require.Equal(t, 1, detects()["DataCsumErr"])
	require.Zero(t, other()["DataCsumErr"])
	if e.corrupt == 2 {
		require.Eventually(t, func() bool { return detects()["MPRstTx"] == 1 }, patience, 5*time.Millisecond)
		require.NoError(t, <-sent)
		requireWhole(t, "over the other subflow", <-whole, n, clientSeed)
		require.Empty(t, e.conn.Info().Fallback)
		require.Zero(t, other()["InfiniteMapTx"])
		return
	}
	require.Eventually(t, func() bool { return e.conn.Info().Fallback != "" }, patience, 5*time.Millisecond)
	// On plain TCP, which it is from there on, nobody minds what boxes change: the
	// byte is delivered, as Linux's own test has it, too.
	want, err := io.ReadAll(payload(n, clientSeed))
	require.NoError(t, err)
	if !kernelDetects {
		// A Linux that sends answers, but mostly sends no more after that: it
		// waits for a DATA_ACK. It does so among its own kind, too.
		require.NoError(t, to.Close())
		<-whole
		require.LessOrEqual(t, differing(want[:got.Len()], got.Bytes()), 1)
		return
	}
	require.NoError(t, <-sent)
	require.NoError(t, (<-whole).err)
	require.Len(t, got.Bytes(), n)
	require.Equal(t, 1, differing(want, got.Bytes()))
	require.NotZero(t, other()["InfiniteMapTx"])
	require.NotZero(t, detects()["InfiniteMapRx"])
}

// differing counts the bytes that two slices of one length have not in common.
func differing(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
