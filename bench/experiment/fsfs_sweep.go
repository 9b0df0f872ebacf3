package experiment

import (
	"errors"
	"time"

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
		points = append(points, fsfsSetting{paths: Pick(o, 4, 10), rate: rate, link: fsfsRate})
	}
	return points
}

func pathSweep(o Options) (points []fsfsSetting) {
	for _, n := range Pick(o, []int{3}, []int{5, 10, 15, 20}) {
		points = append(points, fsfsSetting{paths: n, rate: Pick(o, 200.0, 1000), link: fsfsRate})
	}
	return points
}

// inBytes is the point of a sweep with paths of 100 MB/s. With modern hosts it
// would be like one with an eighth of the rate, as their background fills queues
// of any size.
func inBytes(o Options, points []fsfsSetting) (p fsfsSetting, ok bool) {
	for _, p := range points {
		if p.rate == 1000 && p.paths == 10 && o.Profile == NS32015 {
			p.link = 8 * fsfsRate
			return p, true
		}
	}
	return p, false
}

func fsfsSizes(o Options) []string { return Pick(o, []string{"s1"}, []string{"s1", "s2"}) }

func (f fsfsSetting) of(scheme, sizes string) fsfsSetting {
	f.scheme, f.sizes = scheme, sizes
	return f
}

// runs reports whether a setting is simulated: sizes S2 at loads below 1, and
// with the paper's schemes only.
func (f fsfsSetting) runs() bool {
	return f.sizes == "s1" || f.load() < 1 && f.scheme != "fsfs-placed"
}

// fsfsSettings returns all settings of a sweep.
func fsfsSettings(o Options, points []fsfsSetting) (all []fsfsSetting) {
	for _, sizes := range fsfsSizes(o) {
		for _, point := range points {
			for _, scheme := range fsfsSchemes {
				if s := point.of(scheme, sizes); s.runs() {
					all = append(all, s)
				}
			}
		}
	}
	if p, ok := inBytes(o, points); ok {
		for _, scheme := range fsfsSchemes {
			all = append(all, p.of(scheme, "s1"))
		}
	}
	return all
}

func planFSFS(o Options, points []fsfsSetting) Plan {
	background := Pick(o, 1, 5)
	p := Plan{Params: map[string]any{
		"rate Mb/s": "100; 800 as a spot check in the profile ns3-2015", "round trips ms": "evenly spaced from 20 to 200", "queue ms": 110, "loss": 0, "background TCP flows a path": background,
		"sizes": fsfsSizes(o), "first path of tcp and mptcp": "random", "scheduler": "roundrobin for mptcp, minrtt-plain for fsfs", "congestion control": "lia, reno for tcp",
		"overhead bytes": sim.OverheadEthernet, "receive buffer of tcp": "tuned; 131072 bytes in the profile ns3-2015",
		"round trip of a path": "average of all the host's samples with a gain of 1/8", "share of the bytes placed that fsfs-placed counts": fsfsShare,
	}}
	for _, s := range fsfsSettings(o, points) {
		p.Cases = append(p.Cases, Case{s.String(), func(u *Unit) error { return runFSFS(u, s, background) }})
	}
	for i, when := range []string{"warm-up s", "arrivals s", "completion s"} {
		var all []float64
		for _, point := range points {
			warm, length, drain := point.of("fsfs", "s1").times(o)
			all = append(all, []time.Duration{warm, length, drain}[i].Seconds())
		}
		p.Params[when] = all
	}
	return p
}

// fsfsClasses are the names and the greatest sizes of the classes.
var fsfsClasses = []string{"G0", "G1", "G2", "long"}

const fsfsLong = 3 // the class of long flows

func fsfsClass(size int64) int {
	for i, most := range []int64{100_000, 300_000, 800_000} {
		if size <= most {
			return i
		}
	}
	return fsfsLong
}

func runFSFS(u *Unit, s fsfsSetting, background int) error {
	warm, length, drain := s.times(u.Options)
	n, err := newFSFSNet(u, s.scheme, s.link, fsfsPaths(u, s.paths, s.link))
	if err != nil {
		return err
	}
	if err := n.background(u, background); err != nil {
		return err
	}
	byRTT := s.scheme == "fsfs" || s.scheme == "fsfs-placed"
	if byRTT {
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
		if byRTT {
			path = n.fastest()
		}
		open++
		n.send(f, path, func() { open-- })
	})
	n.RunFor(warm + length)
	n.RunUntil(drain, func() bool { return open == 0 })
	return noteFSFS(u, n, &flows, warm, warm+length)
}

// noteFSFS notes what became of the flows that began between two times. One
// that is not complete counts with the time it has taken so far, and with the
// throughput that it has had.
func noteFSFS(u *Unit, n *fsfsNet, flows *workload.Flows, from, to time.Duration) error {
	var sum, rate, count [fsfsLong + 1]float64
	unfinished, all := 0, 0.0
	for _, f := range flows.Begun(from, to) {
		took := f.FCT()
		if took == 0 {
			unfinished++
			took = n.Now().Sub(f.Start)
		}
		c := fsfsClass(f.Size)
		sum[c] += took.Seconds()
		rate[c] += float64(f.Received()) * 8 / took.Seconds() / 1e6
		count[c]++
	}
	for c, name := range fsfsClasses {
		all += rate[c]
		u.Set(name+" flows", count[c])
		u.Set(name+" s", sum[c]/max(count[c], 1))
		u.Set(name+" Mb/s", rate[c]/max(count[c], 1))
	}
	total := count[0] + count[1] + count[2] + count[fsfsLong]
	if total == 0 {
		return errors.New("no flow counts")
	}
	u.Set("all Mb/s", all/total)
	u.Set("open", float64(unfinished))
	return u.Check(n.Sim)
}
