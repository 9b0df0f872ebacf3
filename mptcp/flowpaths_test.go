package mptcp_test

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// ways is a client that reaches the one address of a server over four links
// with round trips of 50, 20, 90 and 30 ms.
type ways struct {
	*pair
	listener *mptcp.Listener
}

func inWays(t *testing.T, manager mptcp.PathManagerFactory, f func(w *ways)) {
	t.Helper()
	cfg := &mptcp.Config{PathManager: manager}
	inBubble(t, setup{client: cfg, links: []link.Config{rtt(50)}}, func(p *pair) {
		for i, ms := range []time.Duration{20, 90, 30} {
			p.links = append(p.links, p.net.Join("", end(p.client, clientAddr(i+1)), end(p.server, serverAddr(0)), linkOf(rtt(ms))))
		}
		w := &ways{p, p.listen()}
		defer w.listener.Close()
		f(w)
	})
}

func rtt(ms time.Duration) link.Config { return link.Config{Delay: ms * time.Millisecond / 2} }

// flow begins a flow of a size, 0 = unknown, and sends a first byte.
func (w *ways) flow(size int64) *mptcp.Conn {
	w.Helper()
	d := mptcp.Dialer{Stack: w.client.Stack, FlowSize: size}
	c, err := d.DialMPTCP(w.Context(), w.target())
	require.NoError(w, err)
	w.conns = append(w.conns, c)
	accepted, err := w.listener.AcceptMPTCP()
	require.NoError(w, err)
	w.conns = append(w.conns, accepted)
	go io.Copy(io.Discard, accepted)
	w.write(c, 1)
	return c
}

// write writes bytes and leaves time for what follows from them.
func (w *ways) write(c *mptcp.Conn, n int) {
	w.Helper()
	_, err := c.Write(pattern(n))
	require.NoError(w, err)
	settle(300 * time.Millisecond)
}

// over returns the links of the subflows that are there, in the order in which
// they were opened.
func over(c *mptcp.Conn) (links []int) {
	for _, s := range live(c) {
		links = append(links, int(s.Local.Addr().As4()[2]))
	}
	return links
}

// A host learns the round trips of its links from the first connection, which
// tries them all. After that each flow has the fastest ones, as many as its
// size deserves, and begins on the fastest.
func TestFlowSizePathsAreTheFastest(t *testing.T) {
	manager := mptcp.FlowSizePaths(mptcp.FlowSizePathConfig{ReprobeAfter: time.Minute})
	inWays(t, manager, func(w *ways) {
		first := w.flow(80_000)
		settle(time.Second)
		require.Equal(w, clientAddr(0), first.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Addr(), "nothing is known")
		require.Equal(w, []int{0}, over(first), "what was opened to measure is closed")
		require.Equal(w, 4, first.Info().SubflowsOpened)
		for _, tt := range []struct {
			size int64
			want []int
		}{
			{1, []int{1}},
			{100_000, []int{1}},
			{100_001, []int{1, 3}},
			{300_000, []int{1, 3}},
			{300_001, []int{1, 3, 0}},
			{800_000, []int{1, 3, 0}},
			{800_001, []int{1, 3, 0, 2}},
		} {
			c := w.flow(tt.size)
			require.Equal(w, tt.want, over(c), "%d", tt.size)
			require.Equal(w, len(tt.want), c.Info().SubflowsOpened, "%d", tt.size)
		}
	})
}

// A flow whose size nobody declared gets the next path when it has written more
// than its class; one that declares its size later gets all of them at once.
func TestFlowSizePathsArePromoted(t *testing.T) {
	manager := mptcp.FlowSizePaths(mptcp.FlowSizePathConfig{Classes: [3]int64{10_000, 20_000, 30_000}, ReprobeAfter: time.Minute})
	inWays(t, manager, func(w *ways) {
		w.flow(1)
		c := w.flow(0)
		w.write(c, 9_999)
		require.Equal(w, []int{1}, over(c))
		for _, want := range [][]int{{1, 3}, {1, 3, 0}, {1, 3, 0, 2}} {
			w.write(c, 1)
			require.Equal(w, want, over(c))
			w.write(c, 9_999)
			require.Equal(w, want, over(c))
		}
		c = w.flow(0)
		require.Equal(w, []int{1}, over(c))
		require.NoError(w, c.SetFlowSize(20_001))
		settle(300 * time.Millisecond)
		require.Equal(w, []int{1, 3, 0}, over(c))
	})
}

// What nobody has measured for a second is measured again by the next
// connection; until then the old figures count.
func TestFlowSizePathsAreProbedAgain(t *testing.T) {
	manager := mptcp.FlowSizePaths(mptcp.FlowSizePathConfig{})
	inWays(t, manager, func(w *ways) {
		w.flow(1).Close()
		require.Equal(w, []int{1}, over(w.flow(1)))
		w.links[2].SetShape(rtt(10))
		c := w.flow(1)
		require.Equal(w, []int{1}, over(c))
		require.Equal(w, 1, c.Info().SubflowsOpened, "what is known is young")
		settle(time.Second)
		require.Equal(w, []int{1}, over(w.flow(1)), "nobody knows yet that link 2 is faster now")
		require.Equal(w, []int{2}, over(w.flow(1)))
	})
}

// With freeway short flows share one link at first, and long ones the others.
func TestFreewayPaths(t *testing.T) {
	inWays(t, mptcp.FreewayPaths(mptcp.FreewayPathConfig{}), func(w *ways) {
		for range 3 {
			require.Equal(w, []int{0}, over(w.flow(1000)))
		}
		used := map[int]bool{}
		for range 3 {
			links := over(w.flow(1 << 30))
			require.Len(w, links, 1)
			used[links[0]] = true
		}
		require.Equal(w, map[int]bool{1: true, 2: true, 3: true}, used)
		// One of unknown size moves when it turns out to be long.
		c := w.flow(0)
		require.Equal(w, []int{0}, over(c))
		w.write(c, 100_000)
		settle(time.Second)
		links := over(c)
		require.Len(w, links, 1)
		require.NotEqual(w, 0, links[0])
		w.write(c, 100_000)
		require.Equal(w, uint64(200_001), c.Info().BytesAcked)
	})
}
