package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
)

const mib = 1 << 20

// symmetric returns a link of the same kind in both directions.
func symmetric(cfg link.Config) sim.Shape { return sim.Shape{AB: cfg, BA: cfg} }

// fastAndSlow are two paths of 30 Mb/s with an RTT of 20 ms and 10 Mb/s with
// 60 ms, with queues of twice the bandwidth-delay product.
func fastAndSlow() []sim.Shape {
	return []sim.Shape{
		symmetric(link.Config{Rate: 30e6, Delay: 10 * time.Millisecond, QueueBytes: 150_000}),
		symmetric(link.Config{Rate: 10e6, Delay: 30 * time.Millisecond, QueueBytes: 150_000}),
	}
}

// finish runs a transfer to its end and checks what must hold in every run.
func finish(t *testing.T, p *sim.Pair, tr *sim.Transfer, limit time.Duration) {
	t.Helper()
	delivered := p.RunUntil(limit, tr.Delivered)
	require.Empty(t, p.Violations())
	require.True(t, delivered, "A read %d of %d, B read %d of %d bytes in %v; A: %v, B: %v",
		tr.ProgramA.Received, tr.ProgramA.Receive, tr.ProgramB.Received, tr.ProgramB.Receive, limit, tr.ConnA.Err(), closeOf(tr.ConnB))
	ended := p.RunUntil(5*time.Minute, tr.Ended)
	require.Empty(t, p.Violations())
	require.True(t, ended, "the connection ends on both sides")
	p.RunFor(2 * time.Minute)
	for _, n := range []*sim.Node{p.A, p.B} {
		require.Zero(t, n.Host.Counters().Conns, n.Name)
		require.Zero(t, n.Host.Counters().TimeWait, n.Name)
	}
	p.Run()
	require.Empty(t, p.Violations())
}

func closeOf(c *sim.Conn) reason.Close {
	if c == nil {
		return reason.CloseNone
	}
	return c.Err()
}

// goodput returns bits/s from the first write of one side to the last byte
// read by the other.
func goodput(from, to *sim.Program) float64 {
	return float64(to.Received) * 8 / to.LastByte.Sub(from.Begun).Seconds()
}

func TestTwoPathsAddUp(t *testing.T) {
	for _, sched := range []string{"minrtt", "default"} {
		t.Run(sched, func(t *testing.T) {
			p := sim.TwoHosts(sim.PairConfig{Seed: 1, Paths: fastAndSlow()})
			cfg := sim.ConnWith(sched, "", "")
			tr := p.Start(sim.TransferConfig{AB: 32 * mib, ConnA: cfg, ConnB: cfg})
			finish(t, p, tr, time.Minute)
			require.Equal(t, reason.CloseDone, tr.ProgramA.Close)
			require.Equal(t, reason.CloseDone, tr.ProgramB.Close)
			require.GreaterOrEqual(t, goodput(tr.ProgramA, tr.ProgramB), 0.9*40e6)
			for _, l := range p.Links {
				require.Greater(t, l.AB.Stats().ArrivedBytes, uint64(4*mib), l.Name)
			}
		})
	}
}

func TestBothDirectionsAtOnce(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 2, Paths: fastAndSlow(), IPv6: true})
	tr := p.Start(sim.TransferConfig{AB: 16 * mib, BA: 16 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, time.Minute)
	// The ACKs of one direction wait in the queues of the other.
	require.GreaterOrEqual(t, goodput(tr.ProgramA, tr.ProgramB), 0.6*40e6)
	require.GreaterOrEqual(t, goodput(tr.ProgramB, tr.ProgramA), 0.6*40e6)
}

func TestOneSubflowIsPlainTCPsEqual(t *testing.T) {
	var rates [2]float64
	for i := range rates {
		p := sim.TwoHosts(sim.PairConfig{Seed: 3, Paths: fastAndSlow()[:1]})
		cfg := sim.DefaultConn()
		cfg.Plain = i == 1
		tr := p.Start(sim.TransferConfig{AB: 8 * mib, ConnA: cfg, ConnB: cfg})
		finish(t, p, tr, time.Minute)
		require.Equal(t, i == 0, tr.ConnA.IsMPTCP())
		rates[i] = goodput(tr.ProgramA, tr.ProgramB)
		require.GreaterOrEqual(t, rates[i], 0.85*30e6)
	}
	require.InEpsilon(t, rates[1], rates[0], 0.05)
}

func TestFullMesh(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 4, Paths: fastAndSlow(), Mesh: true})
	tr := p.Start(sim.TransferConfig{AB: 4 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	most := 0
	for p.RunUntil(50*time.Millisecond, func() bool { return false }); !tr.Delivered(); p.RunFor(50 * time.Millisecond) {
		most = max(most, tr.ConnA.Info().Subflows)
		require.Less(t, p.Elapsed(), time.Minute)
	}
	require.Equal(t, 4, most, "each address of A reaches each of B")
	finish(t, p, tr, time.Minute)
}

// A reader that takes less than the network gives closes the window; nothing
// may be lost or sent beyond it.
func TestSlowReader(t *testing.T) {
	for _, plain := range []bool{false, true} {
		p := sim.TwoHosts(sim.PairConfig{Seed: 5, Paths: fastAndSlow()})
		cfg := sim.DefaultConn()
		cfg.ReadBuffer, cfg.Plain = 64<<10, plain
		tr := p.Start(sim.TransferConfig{AB: 2 * mib, ReadB: 200_000, ConnA: cfg, ConnB: cfg})
		finish(t, p, tr, time.Minute)
		require.InEpsilon(t, 200_000, tr.ProgramB.Goodput(), 0.1)
	}
}

func TestSuperSegmentsAreCutAtTheLink(t *testing.T) {
	shapes := fastAndSlow()
	for i := range shapes {
		shapes[i].SegmentMax = 60000
	}
	p := sim.TwoHosts(sim.PairConfig{Seed: 6, Paths: shapes})
	tr := p.Start(sim.TransferConfig{AB: 8 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, time.Minute)
	require.GreaterOrEqual(t, goodput(tr.ProgramA, tr.ProgramB), 0.8*40e6)
}

func TestChecksumsAreKept(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 7, Paths: fastAndSlow()})
	cfg := sim.DefaultConn()
	cfg.Checksum = true
	tr := p.Start(sim.TransferConfig{AB: 4 * mib, BA: mib, ConnA: cfg, ConnB: sim.DefaultConn()})
	finish(t, p, tr, time.Minute)
	require.True(t, tr.ConnB.Info().Checksum)
	require.Zero(t, tr.ConnB.Info().Stats.ChecksumErrors)
}

func TestEmptyAndTinyStreams(t *testing.T) {
	for _, ab := range []int64{0, 1, 5000} {
		for _, ba := range []int64{0, 1, 5000} {
			for _, plain := range []bool{false, true} {
				p := sim.TwoHosts(sim.PairConfig{Seed: 8, Paths: fastAndSlow()})
				cfg := sim.DefaultConn()
				cfg.Plain = plain
				tr := p.Start(sim.TransferConfig{AB: ab, BA: ba, ConnA: cfg, ConnB: cfg})
				finish(t, p, tr, 10*time.Second)
				require.Equal(t, reason.CloseDone, tr.ProgramA.Close, "%d/%d plain %v", ab, ba, plain)
				require.Equal(t, reason.CloseDone, tr.ProgramB.Close, "%d/%d plain %v", ab, ba, plain)
				require.Less(t, tr.ProgramA.Ended, mono.Time(3*time.Second), "%d/%d plain %v", ab, ba, plain)
			}
		}
	}
}

func TestLoss(t *testing.T) {
	for _, plain := range []bool{false, true} {
		shapes := fastAndSlow()
		for i := range shapes {
			shapes[i].AB.Loss, shapes[i].BA.Loss = 0.01, 0.01
		}
		p := sim.TwoHosts(sim.PairConfig{Seed: 9, Paths: shapes})
		cfg := sim.DefaultConn()
		cfg.Plain = plain
		tr := p.Start(sim.TransferConfig{AB: 8 * mib, ConnA: cfg, ConnB: cfg})
		finish(t, p, tr, 2*time.Minute)
		// The response function of Reno, 1.22*MSS/(RTT*sqrt(p)), allows 7 Mb/s
		// on the path of 20 ms; CUBIC gets as much at least, on one path alone.
		require.GreaterOrEqual(t, goodput(tr.ProgramA, tr.ProgramB), 4e6)
	}
}

func TestManyConnectionsShareAHost(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 10, Paths: fastAndSlow(), Host: host.Config{}})
	tr := p.Start(sim.TransferConfig{AB: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	var more []*sim.Transfer
	for i := range 20 {
		more = append(more, p.StartOn(uint16(9000+i), sim.TransferConfig{AB: 100_000, BA: 100_000, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()}))
	}
	for _, m := range more {
		require.True(t, p.RunUntil(time.Minute, m.Delivered))
	}
	require.True(t, p.RunUntil(time.Minute, func() bool {
		for _, m := range more {
			if !m.Ended() {
				return false
			}
		}
		return true
	}))
	finish(t, p, tr, time.Minute)
}
