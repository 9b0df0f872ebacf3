package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/subflow"
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
