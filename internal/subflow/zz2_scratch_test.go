package subflow_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/internal/subflow"
)

func TestYY(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("YY"))
	for seed := range n {
		if os.Getenv("SEED") != "" && os.Getenv("SEED") != fmt.Sprint(seed) {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		mk := func() link {
			l := link{delay: time.Duration(r.IntN(100)) * time.Millisecond}
			if r.IntN(2) == 0 {
				l.rate = float64(20000 + r.IntN(2000000))
				l.queue = 3000 + r.IntN(100000)
			}
			if r.IntN(2) == 0 {
				l.loss = r.Float64() * 0.3 * r.Float64()
			}
			if r.IntN(2) == 0 {
				l.reorder = r.Float64() * 0.2
				l.reorderBy = time.Duration(r.IntN(50)) * time.Millisecond
			}
			if r.IntN(3) == 0 {
				l.dup = r.Float64() * 0.1
			}
			return l
		}
		knobs := func(c *subflow.Config) {
			c.NoSACK = r.IntN(3) == 0
			c.NoTimestamps = r.IntN(3) == 0
			c.Nagle = r.IntN(3) == 0
			if r.IntN(2) == 0 {
				c.SegmentMax = r.IntN(65536)
			}
			c.SYNRetries, c.Retries, c.FinWait2 = 50, 50, 24*time.Hour
		}
		p := newPair(t, pairConfig{seed: uint64(seed), cc: []string{"reno", "cubic"}[r.IntN(2)], ab: mk(), ba: mk(), a: knobs, b: knobs})
		p.transfer(r.IntN(400000), r.IntN(1000)*r.IntN(400))
		for _, e := range p.ends {
			e.buffer = 1000 + r.IntN(10000)
			if r.IntN(2) == 0 {
				e.buffer += r.IntN(1 << 20)
			}
			if r.IntN(4) == 0 {
				e.readRate = 1000
			}
			if r.IntN(3) == 0 {
				e.borders = 1000 + r.IntN(5000)
			}
		}
		p.trace = os.Getenv("SEED") != ""
		start := time.Now()
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p.t = t
			for range 4000 {
				if p.run(time.Second) {
					break
				}
				p.check()
			}
			p.finish(time.Second)
		})
		if !ok {
			t.Fatalf("%+v", p.links)
		}
		bytes := len(p.ends[0].data) + len(p.ends[1].data)
		if d := time.Since(start); d > time.Second || p.now.Duration().Seconds() > 60+float64(bytes)/1000 {
			t.Logf("seed %d: real %v virtual %v bytes %d links %+v\n%+v", seed, d, p.now.Duration(), bytes, p.links, p.stats())
		}
	}
}
