package experiment

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "fsfs-motivation",
		Summary: "completion time of 80 KB and throughput of 5 MB by the number of subflows",
		Source:  fsfsSource + ", Figure 1: both rise with the number of subflows",
		Seeds:   3,
		Plan:    planFSFSMotivation,
		Reduce:  reduceFSFSMotivation,
	})
}

const (
	motivationPaths = 5
	motivationFlows = 30
)

var motivationSizes = []int64{80_000, 5_000_000}

func motivationCase(size int64, subflows int) string {
	return fmt.Sprintf("%d KB %d", size/1000, subflows)
}

func planFSFSMotivation(o Options) Plan {
	rounds := Pick(o, 1, 5)
	p := Plan{Params: map[string]any{
		"paths": motivationPaths, "rate Mb/s": fsfsRate / 1e6, "round trip ms": 20, "loss": 0.002, "background TCP flows a path": 1, "flows at once": motivationFlows,
		"rounds": rounds, "scheduler": "roundrobin", "congestion control": "lia", "overhead bytes": sim.OverheadEthernet,
	}}
	for _, size := range motivationSizes {
		for subflows := 1; subflows <= motivationPaths; subflows++ {
			p.Cases = append(p.Cases, Case{motivationCase(size, subflows), func(u *Unit) error {
				return runFSFSMotivation(u, size, subflows, rounds)
			}})
		}
	}
	return p
}

// runFSFSMotivation begins all flows within a tenth of a second, each on a
// random path.
func runFSFSMotivation(u *Unit, size int64, subflows, rounds int) error {
	var paths []sim.Shape
	for range motivationPaths {
		s := sim.Symmetric("", link.Config{Rate: fsfsRate, Delay: 10 * time.Millisecond, Loss: 0.002, Overhead: sim.OverheadEthernet})
		s.MTU = u.Profile.MTU()
		paths = append(paths, s)
	}
	n, err := newFSFSNet(u, "mptcp", fsfsRate, paths)
	if err != nil {
		return err
	}
	n.conn.Limits = pathmgr.Limits{Subflows: subflows, Accepted: motivationPaths}
	if err := n.background(u, 1); err != nil {
		return err
	}
	n.RunFor(Pick(u.Options, 500*time.Millisecond, 5*time.Second))
	rng, sum, rate := u.Rand("flows"), 0.0, 0.0
	for range rounds {
		left := motivationFlows
		var flows []*workload.Flow
		for range motivationFlows {
			f, path := &workload.Flow{Size: size}, rng.IntN(motivationPaths)
			flows = append(flows, f)
			n.After(time.Duration(rng.Int64N(int64(100*time.Millisecond))), func() {
				n.servers[path].Send(n.A, netip.AddrPortFrom(n.AddrA(path), 0), n.conn, f, func(*workload.Flow) { left-- })
			})
		}
		if !n.RunUntil(10*time.Minute, func() bool { return left == 0 }) {
			return errors.New("not every flow is complete")
		}
		for _, f := range flows {
			sum += f.FCT().Seconds() * 1e3
			rate += float64(size) * 8 / f.FCT().Seconds() / 1e6
		}
	}
	u.Set("FCT ms", sum/float64(rounds*motivationFlows))
	u.Set("throughput Mb/s", rate/float64(rounds*motivationFlows))
	return u.Check(n.Sim)
}

func reduceFSFSMotivation(r *Results, rep *Report) {
	for i, size := range motivationSizes {
		key := []string{"FCT ms", "throughput Mb/s"}[i]
		var x []float64
		var values [][]float64
		for subflows := 1; subflows <= motivationPaths; subflows++ {
			v := r.Values(motivationCase(size, subflows), key)
			x, values = append(x, float64(subflows)), append(values, v)
			rep.Metric(fmt.Sprintf("%s %s", key, motivationCase(size, subflows)), "", v)
			if subflows > 1 {
				rise := Ratios(v, values[subflows-2])
				rep.Metric(fmt.Sprintf("%d KB: %d subflows over %d", size/1000, subflows, subflows-1), "", rise).AtLeast(1)
			}
		}
		rep.Figure(&figure.XY{
			Title: fmt.Sprintf("Flows of %d KB by subflows", size/1000), Note: "Five paths of 100 Mb/s and 20 ms, loss 0.2 %, one TCP flow on each, 30 flows at once; " + r.Profile.String() + " profile",
			X: figure.Axis{Label: "subflows"}, Y: figure.Axis{Label: key}, Lines: []figure.Line{LineOf("mptcp", x, values)},
		})
	}
}
