package simnet_test

import (
	"io"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/simnet"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

var (
	clientAddr = netip.MustParseAddr("10.0.0.1")
	serverAddr = netip.MustParseAddr("10.0.0.2")
	server6    = netip.MustParseAddr("2001:db8::2")
	client6    = netip.MustParseAddr("2001:db8::1")
	plain      = &mptcp.Config{Plain: true}
)

// world is two nodes and the link between them.
type world struct {
	*testing.T
	net            *simnet.Net
	client, server *simnet.Node
	link           *simnet.Link
}

func run(t *testing.T, from, to netip.Addr, cfg simnet.LinkConfig, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, net: simnet.New(1)}
		w.client, w.server = w.net.Node(plain), w.net.Node(plain)
		w.link = w.net.Join("link", simnet.End{Node: w.client, Addr: from}, simnet.End{Node: w.server, Addr: to}, cfg)
		f(w)
		w.net.Close()
		synctest.Wait()
		require.Zero(t, w.net.Held())
	})
}

// serve sends n bytes to whoever connects, and closes.
func (w *world) serve(n int) {
	l, err := w.server.Listen("tcp", ":80")
	require.NoError(w, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(make([]byte, n))
			c.Close()
		}
	}()
}

// fetch connects and reads to the end.
func (w *world) fetch(to netip.Addr) (int, error) {
	c, err := w.client.Dial("tcp", netip.AddrPortFrom(to, 80).String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return len(b), err
}

func TestDelayIsExact(t *testing.T) {
	back := link.Config{Delay: 30 * time.Millisecond}
	cfg := simnet.LinkConfig{Shape: link.Config{Delay: 10 * time.Millisecond}, Back: &back}
	run(t, clientAddr, serverAddr, cfg, func(w *world) {
		w.serve(100)
		begin := time.Now()
		n, err := w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, 100, n)
		require.Equal(w, 80*time.Millisecond, time.Since(begin), "two round trips")
	})
}

func TestRateBoundsGoodput(t *testing.T) {
	cfg := simnet.LinkConfig{Shape: link.Config{Rate: 8e6, Delay: 5 * time.Millisecond, QueueBytes: 1 << 20}}
	run(t, client6, server6, cfg, func(w *world) {
		w.serve(1 << 20)
		begin := time.Now()
		n, err := w.fetch(server6)
		require.NoError(w, err)
		require.Equal(w, 1<<20, n)
		took := time.Since(begin).Seconds()
		require.Greater(w, took, 1.04, "1 MiB at 1 MB/s, headers not counted")
		require.Less(w, took, 1.3)
	})
}

func TestBadLinkDeliversEverythingInTheEnd(t *testing.T) {
	cfg := simnet.LinkConfig{
		SegmentMax: 20000,
		Shape: link.Config{
			Rate: 50e6, Delay: 5 * time.Millisecond, Jitter: time.Millisecond,
			Loss: 0.01, Duplicate: 0.01, Corrupt: 0.01, Reorder: 0.01,
		},
	}
	run(t, clientAddr, serverAddr, cfg, func(w *world) {
		w.serve(1 << 20)
		n, err := w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, 1<<20, n)
	})
}

func TestSuperSegmentsAreCut(t *testing.T) {
	run(t, clientAddr, serverAddr, simnet.LinkConfig{MTU: 1400, SegmentMax: 50000}, func(w *world) {
		largest := 0
		w.link.SetFilter(func(seg *wire.Segment) bool {
			largest = max(largest, seg.PayloadLen())
			return true
		})
		w.serve(300_000)
		n, err := w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, 300_000, n)
		w.link.SetFilter(nil)
		require.Equal(w, 1400-20-32, largest, "a full packet with timestamps")
	})
}

func TestFilterDropsPackets(t *testing.T) {
	run(t, clientAddr, serverAddr, simnet.LinkConfig{}, func(w *world) {
		syns := 0
		w.link.SetFilter(func(seg *wire.Segment) bool {
			if seg.Flags == wire.SYN {
				syns++
			}
			return syns > 1
		})
		w.serve(1)
		begin := time.Now()
		_, err := w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, time.Second, time.Since(begin), "RFC 6298, Section 2.1: the initial RTO")
	})
}

func TestLinkThatIsDownDropsInSilence(t *testing.T) {
	cfg := simnet.LinkConfig{Shape: link.Config{Delay: 10 * time.Millisecond}}
	run(t, clientAddr, serverAddr, cfg, func(w *world) {
		w.serve(1)
		// What is under way when the link goes down is lost, too.
		time.AfterFunc(5*time.Millisecond, func() { w.link.SetUp(false) })
		time.AfterFunc(500*time.Millisecond, func() { w.link.SetUp(true) })
		begin := time.Now()
		_, err := w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, time.Second+40*time.Millisecond, time.Since(begin))
	})
}

func TestUnpluggedLinkIsNoRoute(t *testing.T) {
	run(t, clientAddr, serverAddr, simnet.LinkConfig{}, func(w *world) {
		w.serve(1)
		w.link.Unplug()
		_, err := w.fetch(serverAddr)
		require.Error(w, err)
		w.link.Plug()
		w.link.SetShape(link.Config{Delay: time.Second})
		begin := time.Now()
		_, err = w.fetch(serverAddr)
		require.NoError(w, err)
		require.Equal(w, 4*time.Second, time.Since(begin))
	})
}
