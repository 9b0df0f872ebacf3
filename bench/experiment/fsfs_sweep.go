package experiment

import (
	"errors"

	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name: "fsfs-rate", Seeds: 3, Summary: "completion times and throughput by arrival rate: FSFS, MPTCP on all paths, TCP",
		Source: fsfsSource + ", Figures 2 to 4",
		Plan:   func(o Options) Plan { return planFSFS(o, rateSweep(o)) },
		Reduce: func(r *Results, rep *Report) { reduceFSFS(r, rep, rateSweep(r.Options), "flows/s", fsfsRateClaims) },
	})
	Register(Experiment{
		Name: "fsfs-paths", Seeds: 3, Summary: "completion times and throughput by number of paths: FSFS, MPTCP on all paths, TCP",
		Source: fsfsSource + ", Figures 5 to 7",
		Plan:   func(o Options) Plan { return planFSFS(o, pathSweep(o)) },
		Reduce: func(r *Results, rep *Report) { reduceFSFS(r, rep, pathSweep(r.Options), "paths", fsfsPathClaims) },
	})
}

func rateSweep(o Options) (points []fsfsSetting) {
	for _, rate := range Pick(o, []float64{200}, []float64{50, 200, 500, 1000, 2000}) {
		points = append(points, fsfsSetting{paths: Pick(o, 4, 10), rate: rate})
	}
	return points
}

func pathSweep(o Options) (points []fsfsSetting) {
	for _, n := range Pick(o, []int{3}, []int{5, 10, 15, 20}) {
		points = append(points, fsfsSetting{paths: n, rate: Pick(o, 200.0, 1000)})
	}
	return points
}

func fsfsSizes(o Options) []string { return Pick(o, []string{"s1"}, []string{"s1", "s2"}) }

func (f fsfsSetting) of(scheme, sizes string) string {
	f.scheme, f.sizes = scheme, sizes
	return f.String()
}

func planFSFS(o Options, points []fsfsSetting) Plan {
	warm, length, drain := fsfsTimes(o)
	background := Pick(o, 1, 5)
	p := Plan{Params: map[string]any{
		"rate Mb/s": fsfsRate / 1e6, "round trips ms": "evenly spaced from 20 to 200", "queue ms": 110, "loss": 0, "background TCP flows a path": background,
		"sizes": fsfsSizes(o), "first path of tcp and mptcp": "random", "scheduler": "roundrobin for mptcp, minrtt-plain for fsfs", "congestion control": "lia, reno for tcp",
		"overhead bytes": sim.OverheadEthernet, "warm-up s": warm.Seconds(), "arrivals s": length.Seconds(), "completion s": drain.Seconds(), "receive buffer of tcp": "tuned; 131072 bytes in the profile ns3-2015",
	}}
	for _, point := range points {
		for _, sizes := range fsfsSizes(o) {
			for _, scheme := range fsfsSchemes {
				s := point
				s.scheme, s.sizes = scheme, sizes
				p.Cases = append(p.Cases, Case{s.String(), func(u *Unit) error { return runFSFS(u, s, background) }})
			}
		}
	}
	return p
}

// fsfsClasses are the names and the greatest sizes of the classes.
var fsfsClasses = []string{"G0", "G1", "G2", "long"}

func fsfsClass(size int64) int {
	for i, most := range []int64{100_000, 300_000, 800_000} {
		if size <= most {
			return i
		}
	}
	return 3
}

func runFSFS(u *Unit, s fsfsSetting, background int) error {
	warm, length, drain := fsfsTimes(u.Options)
	n, err := newFSFSNet(u, s.scheme, fsfsPaths(u, s.paths))
	if err != nil {
		return err
	}
	if err := n.background(u, background); err != nil {
		return err
	}
	if s.scheme == "fsfs" {
		n.probe()
	}
	sizes, err := workload.SizesByName(s.sizes)
	if err != nil {
		return err
	}
	flows := workload.Flows{Rate: s.rate, Sizes: sizes, Rand: u.Rand("arrivals")}
	first, open := u.Rand("first path"), 0
	flows.Start(n.Sim, warm+length, func(f *workload.Flow) {
		path := first.IntN(s.paths)
		if s.scheme == "fsfs" {
			path = n.fastest()
		}
		open++
		n.send(f, path, func(*workload.Flow) { open-- })
	})
	n.RunFor(warm + length)
	n.RunUntil(drain, func() bool { return open == 0 })
	done, open := flows.Complete(warm, warm+length)
	if len(done) == 0 {
		return errors.New("no flow is complete")
	}
	var sum, rate, count [4]float64
	for _, f := range done {
		c := fsfsClass(f.Size)
		sum[c] += f.FCT().Seconds()
		rate[c] += float64(f.Size) * 8 / f.FCT().Seconds() / 1e6
		count[c]++
	}
	all := 0.0
	for c, name := range fsfsClasses {
		all += rate[c]
		u.Set(name+" flows", count[c])
		u.Set(name+" s", sum[c]/max(count[c], 1))
		u.Set(name+" Mb/s", rate[c]/max(count[c], 1))
	}
	u.Set("all Mb/s", all/float64(len(done)))
	u.Set("open", float64(open))
	return u.Check(n.Sim)
}
