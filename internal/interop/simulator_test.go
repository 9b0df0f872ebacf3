//go:build linux

package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/netstack"
)

// The simulator is compared with real clocks: with netstack's in-process links,
// and with the kernel behind TUN links of the same shape. One connection always
// has something to send.
const (
	warmUp   = 3 * time.Second
	measured = 10 * time.Second
)

func comparedShapes(loss float64) []netstack.Shape {
	return []netstack.Shape{
		{Rate: 20e6, Delay: 5 * time.Millisecond, QueueBytes: 100_000, Overhead: sim.OverheadMAC, Loss: loss},
		{Rate: 10e6, Delay: 20 * time.Millisecond, QueueBytes: 100_000, Overhead: sim.OverheadMAC, Loss: loss},
	}
}

// simulated returns the goodput in Mb/s that the simulator says.
func simulated(t *testing.T, seed uint64, shapes []netstack.Shape) float64 {
	t.Helper()
	var paths []sim.Shape
	for _, s := range shapes {
		paths = append(paths, sim.Symmetric("", s))
	}
	net := sim.TwoHosts(sim.PairConfig{Seed: seed, Fast: true, Paths: paths})
	tr := net.Start(sim.TransferConfig{AB: 1 << 50, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	net.RunFor(warmUp)
	before := tr.ProgramB.Received
	net.RunFor(measured)
	require.Empty(t, net.Violations())
	return float64(tr.ProgramB.Received-before) * 8 / measured.Seconds() / 1e6
}

// saturate writes to one end of a connection until it is closed and returns
// the rate in Mb/s at which the other end reads, after a time to warm up.
func saturate(t *testing.T, from, to net.Conn) float64 {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 64<<10); ; {
			if _, err := from.Write(b); err != nil {
				return
			}
		}
	}()
	read := func(d time.Duration) float64 {
		start := time.Now()
		require.NoError(t, to.SetReadDeadline(start.Add(d)))
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{to}, make([]byte, 64<<10))
		require.True(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
		return float64(n) * 8 / time.Since(start).Seconds() / 1e6
	}
	read(warmUp)
	rate := read(measured)
	for _, c := range []net.Conn{to, from} {
		require.NoError(t, c.(interface{ SetLinger(int) error }).SetLinger(0))
		c.Close()
	}
	<-done
	return rate
}

// overPipes returns the goodput in Mb/s between two hosts of this process.
func overPipes(t *testing.T, seed uint64, shapes []netstack.Shape) float64 {
	t.Helper()
	var hosts [2]*netstack.Host
	for k := range hosts {
		h, err := netstack.New(netstack.Config{})
		require.NoError(t, err)
		defer h.Close()
		hosts[k] = h
	}
	for i, s := range shapes {
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: s, BA: s, Seed: 10*seed + uint64(i)})
		for k, end := range []*netstack.PipeEnd{a, b} {
			require.NoError(t, hosts[k].AddLink(netstack.LinkConfig{
				Name: fmt.Sprint("pipe", i), Link: end, Addrs: []netip.Prefix{netip.PrefixFrom(ipv4.addr(i+1, k+1), 24)},
			}))
		}
	}
	at := at(ipv4.addr(1, 2))
	l, err := hosts[1].Listen("mptcp", at)
	require.NoError(t, err)
	defer l.Close()
	from, err := hosts[0].Dial("mptcp", at)
	require.NoError(t, err)
	to, err := l.Accept()
	require.NoError(t, err)
	return saturate(t, from, to)
}

func TestSimulatorMatchesPipesInRealTime(t *testing.T) {
	isolated(t, time.Minute, func(t *testing.T) {
		want, got := simulated(t, 1, comparedShapes(0)), overPipes(t, 1, comparedShapes(0))
		t.Logf("simulated %.2f Mb/s, in real time %.2f Mb/s", want, got)
		require.InEpsilon(t, want, got, 0.03)
	})
}

func TestSimulatorMatchesPipesAtLoss(t *testing.T) {
	const runs = 10
	isolated(t, 4*time.Minute, func(t *testing.T) {
		var want, got float64
		for seed := range uint64(runs) {
			want += simulated(t, seed, comparedShapes(0.001)) / runs
			got += overPipes(t, seed, comparedShapes(0.001)) / runs
		}
		t.Logf("simulated %.2f Mb/s, in real time %.2f Mb/s, means of %d runs", want, got, runs)
		require.InEpsilon(t, want, got, 0.10)
	})
}

func TestSimulatorMatchesKernel(t *testing.T) {
	isolated(t, time.Minute, func(t *testing.T) {
		r := newRig(t, ipv4, comparedShapes(0))
		r.announce(t)
		l := kernelListen(t, true)
		from := r.dial(t, nil)
		to, err := l.Accept()
		require.NoError(t, err)
		got, want := saturate(t, from, to), simulated(t, 1, comparedShapes(0))
		t.Logf("simulated %.2f Mb/s, to the kernel %.2f Mb/s", want, got)
		require.InEpsilon(t, want, got, 0.05)
	})
}
