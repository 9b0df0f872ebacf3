package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestTransferPerfectLink(t *testing.T) {
	l := link{rate: 1.25e6, delay: 10 * time.Millisecond}
	p := newPair(t, pairConfig{ab: l, ba: l})
	p.transfer(1<<20, 1000)
	p.finish(time.Minute)
	for _, st := range p.stats() {
		require.Zero(t, st.BytesRetransmitted)
		require.Zero(t, st.Timeouts)
	}
}

func TestTransferLossyLinks(t *testing.T) {
	sizes := [][2]int{{0, 0}, {1, 0}, {100, 100}, {1428, 1}, {5000, 20000}, {100000, 100000}, {1 << 20, 3000}}
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		for _, sack := range []bool{true, false} {
			for _, size := range sizes {
				l := link{
					rate: 1.25e6, delay: 10 * time.Millisecond, queue: 30000,
					loss: 0.02, reorder: 0.03, reorderBy: 8 * time.Millisecond, dup: 0.01,
				}
				knobs := func(c *subflow.Config) {
					c.NoSACK = !sack
					c.NoTimestamps = seed%3 == 2
					if seed%2 == 1 {
						c.SegmentMax = 20000
					}
				}
				p := newPair(t, pairConfig{seed: uint64(seed), ab: l, ba: l, a: knobs, b: knobs})
				p.transfer(size[0], size[1])
				if seed%4 == 3 {
					p.ends[0].borders, p.ends[1].borders = 3000, 777
				}
				p.ends[1].extend = seed%5 == 0 && p.ends[1].borders == 0
				p.finish(10 * time.Minute)
			}
		}
	}
}

func TestGoodput(t *testing.T) {
	for _, control := range []string{"reno", "cubic"} {
		t.Run(control, func(t *testing.T) {
			// 10 Mb/s, 20 ms of round trip, a queue of one bandwidth-delay product.
			l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 25000}
			p := newPair(t, pairConfig{cc: control, ab: l, ba: l})
			p.transfer(30<<20, 0)
			p.run(10 * time.Second)
			before := p.ends[1].got
			p.run(10 * time.Second)
			rate := float64(p.ends[1].got-before) / 10
			t.Logf("goodput %.3g B/s, %+v", rate, p.stats()[0])
			// Of 1500 bytes 1428 are payload here.
			require.Greater(t, rate, 0.9*1.25e6*1428/1500)
		})
	}
}

func TestGoodputWithLossAndReordering(t *testing.T) {
	for _, control := range []string{"reno", "cubic"} {
		l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 25000, loss: 0.01, reorder: 0.02, reorderBy: 5 * time.Millisecond}
		p := newPair(t, pairConfig{seed: 5, cc: control, ab: l, ba: l})
		p.transfer(4<<20, 0)
		p.finish(2 * time.Minute)
		t.Logf("%s: %v: %+v", control, p.now.Duration(), p.stats()[0])
	}
}

// What RACK and the tail loss probe are for: lost retransmissions and lost
// tails cost no timeouts, and late segments are seldom sent again.
func TestRACKSavesTimeouts(t *testing.T) {
	for _, late := range []time.Duration{0, 3 * time.Millisecond, 5 * time.Millisecond} {
		var took [2]time.Duration
		var timeouts, again [2]uint64
		for seed := range uint64(10) {
			for i := range 2 {
				l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 25000, loss: 0.01, reorder: 0.02, reorderBy: late}
				p := newPair(t, pairConfig{seed: seed, cc: "cubic", ab: l, ba: l, a: func(c *subflow.Config) { c.NoRACK = i == 1 }})
				p.transfer(2<<20, 0)
				p.finish(2 * time.Minute)
				st := p.stats()[0]
				took[i] += p.now.Duration()
				timeouts[i] += st.Timeouts
				again[i] += st.BytesRetransmitted
			}
		}
		t.Logf("late by %v: with RACK %v, %d timeouts, %d bytes again; without %v, %d, %d",
			late, took[0], timeouts[0], again[0], took[1], timeouts[1], again[1])
		require.Less(t, 3*timeouts[0], timeouts[1])
		require.Less(t, again[0], again[1])
		// The window is lowered twice for a lost retransmission (RFC 5681, Section
		// 4.3), which only RACK finds without a timeout.
		require.Less(t, float64(took[0]), 1.06*float64(took[1]))
	}
}

// RFC 9293, Figure 7, on a network that loses and reorders.
func TestSimultaneousOpenTransfer(t *testing.T) {
	for seed := range uint64(50) {
		l := link{delay: 10 * time.Millisecond, loss: 0.2, reorder: 0.1, reorderBy: 15 * time.Millisecond}
		p := newPair(t, pairConfig{seed: seed, ab: l, ba: l, both: true})
		p.transfer(3000, 5000)
		p.finish(30 * time.Minute)
	}
}

func TestReorderingAloneCostsLittle(t *testing.T) {
	l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 50000, reorder: 0.02, reorderBy: 5 * time.Millisecond}
	p := newPair(t, pairConfig{cc: "cubic", ab: l, ba: l})
	p.transfer(8<<20, 0)
	p.finish(time.Minute)
	st := p.stats()[0]
	require.Less(t, p.now.Duration(), 10*time.Second, "6.7 s at the link's rate")
	require.Less(t, float64(st.BytesRetransmitted), 0.02*float64(st.BytesSent))
	require.Zero(t, st.Timeouts)
}

func TestOutage(t *testing.T) {
	down := false
	drop := func(int, *wire.Segment) bool { return down }
	l := link{rate: 1.25e6, delay: 10 * time.Millisecond, drop: drop}
	p := newPair(t, pairConfig{ab: l, ba: l})
	p.transfer(4<<20, 0)
	p.run(time.Second)
	down = true
	p.run(5 * time.Second)
	require.GreaterOrEqual(t, p.stats()[0].Backoff, 3)
	down = false
	p.finish(20 * time.Second)
	kinds := map[subflow.EventKind]int{}
	for _, e := range p.ends[0].events {
		kinds[e.Kind]++
	}
	require.Equal(t, 1, kinds[subflow.EventRecovered])
}

// All ACKs that open the window again are lost once: only probes find out.
func TestLostWindowUpdates(t *testing.T) {
	l := link{delay: 10 * time.Millisecond}
	p := newPair(t, pairConfig{ab: l, ba: l})
	p.transfer(100000, 0)
	p.ends[1].buffer, p.ends[1].readRate = 8000, 200
	closed, lost := false, 0
	p.links[1].drop = func(_ int, seg *wire.Segment) bool {
		update := closed && seg.Wnd > 0
		closed = seg.Wnd == 0
		if update {
			lost++
		}
		return update
	}
	p.finish(time.Hour)
	require.Positive(t, lost)
}

func TestPathMTUShrinks(t *testing.T) {
	for _, super := range []int{0, 20000} {
		l := link{rate: 1.25e6, delay: 10 * time.Millisecond}
		p := newPair(t, pairConfig{ab: l, ba: l, a: func(c *subflow.Config) { c.SegmentMax = super }})
		p.transfer(1<<20, 0)
		p.run(300 * time.Millisecond)
		p.links[0].mtu = 1000
		p.finish(30 * time.Second)
		st := p.stats()[0]
		require.Equal(t, 1000-20-12-20, st.MSS)
		require.Zero(t, st.Timeouts)
		require.Zero(t, st.Recoveries)
	}
}

// Two ends that only answer each other must fall silent.
func TestNoACKWar(t *testing.T) {
	l := link{delay: time.Millisecond, dup: 0.5, reorder: 0.5, reorderBy: 5 * time.Millisecond}
	off := func(c *subflow.Config) { c.KeepAlive.Idle = -1 }
	p := newPair(t, pairConfig{ab: l, ba: l, a: off, b: off})
	p.transfer(50000, 50000)
	p.ends[0].closeAfter, p.ends[1].closeAfter = false, false
	p.run(time.Minute)
	before := p.links[0].n + p.links[1].n
	p.run(time.Hour)
	require.Equal(t, before, p.links[0].n+p.links[1].n)
	require.Zero(t, p.ends[0].s.Deadline())
}
