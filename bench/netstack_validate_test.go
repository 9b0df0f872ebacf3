package bench

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// The scenario that the simulator and netstack's in-process links are compared
// in: one connection that always has something to send over two paths.
func validationPaths(loss float64) []netstack.Shape {
	return []netstack.Shape{
		{Rate: 20e6, Delay: 5 * time.Millisecond, QueueBytes: 100_000, Overhead: sim.OverheadMAC, Loss: loss},
		{Rate: 10e6, Delay: 20 * time.Millisecond, QueueBytes: 100_000, Overhead: sim.OverheadMAC, Loss: loss},
	}
}

// simulated returns the goodput in Mb/s in virtual time.
func simulated(t *testing.T, seed uint64, paths []netstack.Shape, warm, measure time.Duration) float64 {
	t.Helper()
	var shapes []sim.Shape
	for _, p := range paths {
		back := p
		back.Loss = 0
		shapes = append(shapes, sim.Shape{AB: p, BA: back})
	}
	net := sim.TwoHosts(sim.PairConfig{Seed: seed, Fast: true, Paths: shapes})
	tr := net.Start(sim.TransferConfig{AB: 1 << 50, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	net.RunFor(warm)
	before := tr.ProgramB.Received
	net.RunFor(measure)
	require.Empty(t, net.Violations())
	return float64(tr.ProgramB.Received-before) * 8 / measure.Seconds() / 1e6
}

// overPipes returns the goodput in Mb/s over netstack's in-process links, on
// whatever clock package time has.
func overPipes(t *testing.T, seed uint64, paths []netstack.Shape, warm, measure time.Duration) float64 {
	t.Helper()
	var hosts [2]*netstack.Host
	for k := range hosts {
		h, err := netstack.New(netstack.Config{MPTCP: &mptcp.Config{}})
		require.NoError(t, err)
		defer h.Close()
		hosts[k] = h
	}
	for i, p := range paths {
		back := p
		back.Loss = 0
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: p, BA: back, Seed: seed + uint64(i)})
		for k, end := range []*netstack.PipeEnd{a, b} {
			require.NoError(t, hosts[k].AddLink(netstack.LinkConfig{
				Name: fmt.Sprint("pipe", i), Link: end, Addrs: []netip.Prefix{netip.PrefixFrom(address(i, k+1), 24)},
			}))
		}
	}
	at := netip.AddrPortFrom(address(0, 2), port).String()
	l, err := hosts[1].Listen("mptcp", at)
	require.NoError(t, err)
	defer l.Close()
	client, err := hosts[0].Dial("mptcp", at)
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()

	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for b := make([]byte, 64<<10); ; {
			if _, err := client.Write(b); err != nil {
				return
			}
		}
	}()
	read := func(d time.Duration) (n int64) {
		require.NoError(t, server.SetReadDeadline(time.Now().Add(d)))
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{server}, make([]byte, 64<<10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		return n
	}
	read(warm)
	start := time.Now()
	n := read(measure)
	took := time.Since(start)
	require.NoError(t, server.(*mptcp.Conn).SetLinger(0))
	server.Close()
	<-sent
	return float64(n) * 8 / took.Seconds() / 1e6
}

// The whole of netstack, with gVisor's IP and our links, does what the
// simulator says. A bubble of synctest gives both a clock that does not depend
// on the machine; TestRealTime in the interop tests compares with a real one.
func TestNetstackMatchesTheSimulator(t *testing.T) {
	const warm, measure = 3 * time.Second, 10 * time.Second
	paths := validationPaths(0)
	want := simulated(t, 1, paths, warm, measure)
	require.InDelta(t, 30*1428/1514.0, want, 0.5, "saturated")
	synctest.Test(t, func(t *testing.T) {
		require.InEpsilon(t, want, overPipes(t, 1, paths, warm, measure), 0.03)
	})
}

func TestNetstackMatchesTheSimulatorAtLoss(t *testing.T) {
	const runs, warm, measure = 10, 3 * time.Second, 10 * time.Second
	paths := validationPaths(0.001)
	var want, got float64
	for seed := range uint64(runs) {
		want += simulated(t, seed, paths, warm, measure) / runs
		synctest.Test(t, func(t *testing.T) { got += overPipes(t, 100*seed, paths, warm, measure) / runs })
	}
	t.Logf("simulated %.2f Mb/s, netstack %.2f Mb/s", want, got)
	require.InEpsilon(t, want, got, 0.10)
}
