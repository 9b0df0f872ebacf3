package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// environment is a random set of paths and a file to be sent over them.
type environment struct {
	paths  []sim.Shape // the one with the least RTT first: connections begin there
	file   int64       // bytes
	buffer int         // of the receiver, bytes; 0 = tuned
}

// environments are drawn one by one from a seed that is always the same: two
// paths or three, rates from 0.3 to 100 Mb/s, RTTs from 10 to 400 ms and queues
// from 0.2 to 4 bandwidth-delay products, all log-uniform, loss of 0 in half of
// the paths and up to 2 % in the others. Files and buffers go round.
func environments(n int) []environment { return drawEnvironments(2012, n) }

// drawEnvironments draws as environments does, from a seed of choice.
func drawEnvironments(seed uint64, n int) []environment {
	r := rand.New(rand.NewPCG(seed, 8684))
	between := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	all := make([]environment, n)
	for i := range all {
		e := &all[i]
		e.file = []int64{256_000, 2_000_000, 20_000_000}[i%3]
		e.buffer = []int{0, 256 << 10}[i/3%2]
		for range 2 + i/6%2 {
			rate, rtt := between(0.3e6, 100e6), between(0.01, 0.4)
			l := link.Config{Rate: rate, Delay: time.Duration(rtt / 2 * float64(time.Second)), Overhead: sim.OverheadEthernet}
			l.QueueBytes = max(int(between(0.2, 4)*rate/8*rtt), 2*1538)
			if lossy, loss := r.IntN(2) == 0, r.Float64(); lossy {
				l.Loss = 0.02 * loss
			}
			e.paths = append(e.paths, sim.Symmetric("", l))
		}
		slices.SortFunc(e.paths, func(a, b sim.Shape) int { return int(a.AB.Delay - b.AB.Delay) })
	}
	return all
}

// send returns the goodput of the file from the first SYN to the last byte, in
// bits/s, over all paths or over one of them.
func (e *environment) send(u *Unit, conn host.ConnConfig, only int) (float64, error) {
	paths := slices.Clone(e.paths)
	for i := range paths {
		paths[i].MTU = u.Profile.MTU()
	}
	if only >= 0 {
		paths = paths[only : only+1]
		conn.PathManager = nil
	}
	conn.ReadBuffer = e.buffer
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths})
	begin := net.Now()
	t := net.Start(sim.TransferConfig{AB: e.file, ConnA: conn, ConnB: conn})
	if !net.RunUntil(time.Hour, t.Delivered) {
		return 0, fmt.Errorf("%d of %d bytes after an hour", t.ProgramB.Received, e.file)
	}
	return float64(e.file) * 8 / t.ProgramB.LastByte.Sub(begin).Seconds(), u.Check(net.Sim)
}

// singles returns the goodput over each path alone by MPTCP, that is with the
// same framing.
func (e *environment) singles(u *Unit, congestion string) (best, sum float64, err error) {
	for i := range e.paths {
		g, err := e.send(u, u.Conn("minrtt-plain", congestion, ""), i)
		if err != nil {
			return 0, 0, err
		}
		best, sum = max(best, g), sum+g
	}
	return best, sum, nil
}

// benefit is the aggregation benefit (Kaspar; Paasch et al., CSWS 2014): 1 if
// all paths add up, or more (where loss is random), 0 as the best one alone, -1
// if nothing arrives.
func benefit(goodput, best, sum float64) float64 {
	if goodput >= best {
		return min((goodput-best)/max(sum-best, 1), 1)
	}
	return (goodput - best) / best
}
