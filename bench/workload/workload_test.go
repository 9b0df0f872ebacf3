package workload_test

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// lab is two hosts with a server.
type lab struct {
	*sim.Pair
	srv *workload.Server
}

func newLab(t *testing.T, rates ...float64) lab {
	t.Helper()
	var paths []sim.Shape
	for _, rate := range rates {
		paths = append(paths, sim.Symmetric("", link.Config{Rate: rate, Delay: 10 * time.Millisecond}))
	}
	p := sim.TwoHosts(sim.PairConfig{Seed: 1, Paths: paths})
	srv, err := workload.NewServer(p.Sim, p.B, netip.AddrPortFrom(p.AddrB(0), 80), sim.DefaultConn())
	require.NoError(t, err)
	return lab{p, srv}
}

func (l lab) open(t *testing.T) *workload.Session {
	t.Helper()
	s, err := l.srv.Open(l.A, netip.AddrPort{}, sim.DefaultConn())
	require.NoError(t, err)
	return s
}

func TestPoissonHasItsRateAndItsVariance(t *testing.T) {
	s := sim.New(1)
	const rate, seconds = 200.0, 400
	perSecond := make([]float64, seconds)
	workload.Poisson(s, rand.New(rand.NewPCG(1, 2)), rate, seconds*time.Second, func(int) {
		perSecond[int(s.Elapsed().Seconds())]++
	})
	s.Run()
	var sum, squares float64
	for _, n := range perSecond {
		sum += n
		squares += (n - rate) * (n - rate)
	}
	// Counts of a second have the mean and the variance 200: the standard
	// errors over 400 of them are sqrt(200/400) and about 200*sqrt(2/400).
	require.InDelta(t, rate, sum/seconds, 3*math.Sqrt(rate/seconds))
	require.InDelta(t, rate, squares/seconds, 3*rate*math.Sqrt(2.0/seconds))
}

func TestFlowsHaveTheSameSizesAtEveryRate(t *testing.T) {
	sizes := func(rate float64) (all []int64) {
		s := sim.New(1)
		fs := workload.Flows{Rate: rate, Sizes: workload.S2(), Rand: rand.New(rand.NewPCG(3, 4))}
		fs.Start(s, 10*time.Second, func(f *workload.Flow) { all = append(all, f.Size) })
		s.Run()
		return all
	}
	slow, fast := sizes(10), sizes(50)
	require.Greater(t, len(fast), len(slow))
	require.Equal(t, slow, fast[:len(slow)])
}

func TestFlowsCompleteAndConnectionsEnd(t *testing.T) {
	l := newLab(t, 20e6, 20e6)
	fs := workload.Flows{Rate: 40, Sizes: workload.Fixed(30_000), Rand: rand.New(rand.NewPCG(1, 1))}
	fs.Start(l.Sim, 5*time.Second, func(f *workload.Flow) {
		l.srv.Send(l.A, netip.AddrPort{}, sim.DefaultConn(), f, nil)
	})
	l.Run()
	require.Empty(t, l.Violations())
	done, open := fs.Complete(time.Second, 4*time.Second)
	require.Zero(t, open)
	require.InDelta(t, 120, len(done), 33)
	for _, f := range done {
		require.NoError(t, f.Err)
		// Handshake and half a round trip, at least.
		require.Greater(t, f.FCT(), 30*time.Millisecond)
		require.Less(t, f.FCT(), time.Second)
	}
	require.Zero(t, l.A.Host.Counters().Conns)
	require.Zero(t, l.B.Host.Counters().Conns)
}

func TestExchangesFollowOneAnother(t *testing.T) {
	l := newLab(t, 10e6)
	s := l.open(t)
	a := s.Do(100, 5000, nil)
	b := s.Do(200_000, 0, nil)
	c := s.Do(0, 1_000_000, nil)
	s.Close()
	l.Run()
	require.Empty(t, l.Violations())
	require.True(t, s.Over())
	require.Less(t, a.Done, b.Done)
	require.Less(t, b.Done, c.Done)
	// 40 ms of handshake and question, 1 MB at 10 Mb/s.
	require.GreaterOrEqual(t, a.Duration(), 40*time.Millisecond)
	require.GreaterOrEqual(t, c.Duration(), 800*time.Millisecond)
	require.Less(t, c.Duration(), 1300*time.Millisecond)
	require.EqualValues(t, 1_000_000, c.Received())
	require.True(t, s.Do(1, 1, nil).Failed, "the session is over")
}

func TestExchangesFailWithTheirConnection(t *testing.T) {
	l := newLab(t, 10e6)
	s := l.open(t)
	failed := 0
	s.Do(100, 1e9, func(e *workload.Exchange) { failed++ })
	s.Do(100, 100, func(e *workload.Exchange) { failed++ })
	l.RunFor(time.Second)
	s.Client.Abort(l.Now())
	s.Client.Wake()
	l.Run()
	require.Equal(t, 2, failed)
}

func TestFilesTakeTheirTime(t *testing.T) {
	l := newLab(t, 10e6)
	f := workload.Files{Sizes: []int64{64 << 10, 1 << 20}, Gap: time.Second}
	session, done := l.open(t), false
	f.Start(l.Sim, session, func() { done = true; session.Close() })
	l.Run()
	require.True(t, done)
	require.Len(t, f.Times, 2)
	// 1 MiB at 10 Mb/s takes 839 ms and a round trip; headers are 4 %.
	require.InDelta(t, 0.93, f.Times[1].Seconds(), 0.07)
	require.Less(t, f.Times[0], 200*time.Millisecond)
}

func TestPageLoadsInTheOrderOfItsNames(t *testing.T) {
	for _, conns := range []int{1, 6} {
		l := newLab(t, 10e6)
		page := workload.Page{{20_000, -1}, {30_000, 0}, {40_000, 0}, {10_000, 2}}
		load := workload.Load{Page: page, Conns: conns, Open: func() (*workload.Session, error) { return l.open(t), nil }}
		done := false
		load.Start(l.Sim, func() { done = true })
		l.Run()
		require.True(t, done)
		require.False(t, load.Failed)
		require.Less(t, load.Objects[0], load.Objects[1])
		require.Less(t, load.Objects[2], load.Objects[3])
		require.Less(t, load.Time, time.Second)
		require.Equal(t, map[int]int{1: 1, 6: 2}[conns], len(l.A.Conns()), "no more connections than objects wait")
	}
	p := workload.RandomPage(rand.New(rand.NewPCG(1, 1)), 53)
	require.Len(t, p, 53)
	require.InDelta(t, 2e6, p.Bytes(), 1.5e6)
}

func TestVideoAdapts(t *testing.T) {
	// 0.8 of 2 Mb/s allows 1.3 Mb/s.
	l := newLab(t, 2e6)
	v := workload.Video{Ladder: workload.VideoLadder}
	v.Start(l.Sim, l.open(t), 4*time.Minute)
	l.Run()
	require.False(t, v.Failed)
	require.Zero(t, v.Stalls)
	require.Equal(t, 0, v.Chosen[0])
	require.Equal(t, 2, v.Chosen[len(v.Chosen)-1])
	require.InDelta(t, 1.3e6, v.MeanBitrate(), 0.1e6)
	// Four minutes of play and what was ahead.
	require.InDelta(t, 75, len(v.Chosen), 2)
	require.Less(t, v.StartUp, time.Second+300*time.Millisecond)

	// Less than the lowest rung: it stalls again and again.
	l = newLab(t, 0.3e6)
	v = workload.Video{Ladder: workload.VideoLadder}
	v.Start(l.Sim, l.open(t), 2*time.Minute)
	l.Run()
	require.Greater(t, v.Stalls, 10)
	require.InDelta(t, 0.25, v.Stalled.Seconds()/120, 0.1)
}

func TestBulkAndAskingReport(t *testing.T) {
	l := newLab(t, 10e6)
	up, ask := workload.Upload(l.open(t)), workload.Asking{Request: 100, Response: 1000, Think: 50 * time.Millisecond}
	var lines []workload.Interval
	up.Report(time.Second, func(i workload.Interval) { lines = append(lines, i) })
	session := l.open(t)
	ask.Start(l.Sim, session)
	l.RunFor(10 * time.Second)
	require.Len(t, lines, 10)
	require.Equal(t, 10*time.Second, lines[9].End)
	var sum int64
	for _, i := range lines {
		sum += i.Bytes
	}
	require.Equal(t, up.Received(), sum)
	require.InDelta(t, 9.4e6, lines[9].Rate(time.Second), 0.5e6)
	require.Greater(t, len(ask.Latencies), 50)
	for _, d := range ask.Latencies {
		require.GreaterOrEqual(t, d, 20*time.Millisecond)
	}
	up.Stop()
	session.Close()
	l.Run()
	require.Zero(t, l.A.Host.Counters().Conns)

	l = newLab(t, 10e6)
	down := workload.Download(l.open(t))
	l.RunFor(5 * time.Second)
	require.Greater(t, down.Received(), int64(4_000_000))
}
