package experiment

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomptcp/gomptcp/bench/figure"
)

// fsfsClaim is a headline: by how much FSFS is better, at least.
type fsfsClaim struct {
	key, rival, what string
	paper, lo, hi    float64
}

var inf = math.Inf(1)

var fsfsRateClaims = []fsfsClaim{
	{"G0 s", "mptcp", "less time G0", 0.3188, 0.2, 0.45},
	{"G0 s", "tcp", "less time G0", 0.2512, 0, inf},
	{"G1 s", "mptcp", "less time G1", 0.2369, 0.15, 0.35},
	{"G1 s", "tcp", "less time G1", 0.2115, 0, inf},
	{"G2 s", "mptcp", "less time G2", 0.1079, 0.05, 0.25},
	{"G2 s", "tcp", "less time G2", 0.1690, 0, inf},
	{"long Mb/s", "mptcp", "more throughput long", -0.0349, -0.05, inf},
	{"long Mb/s", "tcp", "more throughput long", 0.7615, 0, inf},
	{"all Mb/s", "mptcp", "more throughput all", 0.3957, 0.2, inf},
	{"all Mb/s", "tcp", "more throughput all", 0.3082, 0.2, inf},
}

var fsfsPathClaims = []fsfsClaim{
	{"G0 s", "mptcp", "less time G0", 0.3167, 0.2, 0.45},
	{"G0 s", "tcp", "less time G0", 0.2332, 0, inf},
	{"G1 s", "mptcp", "less time G1", 0.2341, 0.15, 0.35},
	{"G1 s", "tcp", "less time G1", 0.2081, 0, inf},
	{"G2 s", "mptcp", "less time G2", 0.1105, 0.05, 0.25},
	{"G2 s", "tcp", "less time G2", 0.1810, 0, inf},
	{"long Mb/s", "mptcp", "more throughput long", -0.0216, -0.05, inf},
	{"long Mb/s", "tcp", "more throughput long", 0.0781, 0, inf},
	{"all Mb/s", "mptcp", "more throughput all", 0.4247, 0.2, inf},
	{"all Mb/s", "tcp", "more throughput all", 0.3408, 0.2, inf},
}

// better returns by how much a scheme is better than the rival at a point, one
// value a seed.
func (c fsfsClaim) better(r *Results, p fsfsSetting, scheme, sizes string) (gains []float64) {
	for _, ratio := range Ratios(r.Values(p.of(scheme, sizes).String(), c.key), r.Values(p.of(c.rival, sizes).String(), c.key)) {
		if strings.HasSuffix(c.key, " s") {
			ratio = 2 - ratio // of a time: less is better
		}
		gains = append(gains, ratio-1)
	}
	return gains
}

// fsfsMean returns better on average over the points whose load is below 1.
func fsfsMean(r *Results, points []fsfsSetting, scheme, sizes string, c fsfsClaim) []float64 {
	mean, n := make([]float64, len(r.Seeds)), 0
	for _, p := range points {
		if p.of(scheme, sizes).load() >= 1 {
			continue
		}
		n++
		for i, gain := range c.better(r, p, scheme, sizes) {
			mean[i] += gain
		}
	}
	for i := range mean {
		mean[i] /= float64(n)
	}
	return mean
}

// claimFSFS judges the scheme of the paper with the first sizes, and shows the
// rest: other sizes, our variation, single points, and paths of 100 MB/s.
func claimFSFS(r *Results, rep *Report, points []fsfsSetting, axis string, c fsfsClaim) {
	name := func(scheme, where string) string {
		what := fmt.Sprintf("%s than %s, %s", c.what, c.rival, where)
		if scheme != "fsfs" {
			what = scheme + ": " + what
		}
		return what
	}
	for _, sizes := range fsfsSizes(r.Options) {
		m := rep.Metric(name("fsfs", sizes), "", fsfsMean(r, points, "fsfs", sizes, c)).Paper(c.paper)
		if sizes == "s1" {
			m.Between(c.lo, c.hi)
		}
	}
	for _, scheme := range []string{"fsfs", "fsfs-placed"} {
		if scheme != "fsfs" {
			rep.Metric(name(scheme, "s1"), "", fsfsMean(r, points, scheme, "s1", c)).Paper(c.paper)
		}
		for _, p := range points {
			if c.key != "G0 s" && (scheme != "fsfs" || !strings.HasPrefix(c.key, "G")) {
				continue // the figures have it
			}
			rep.Metric(name(scheme, fmt.Sprintf("s1, %g %s", p.along(axis), axis)), "", c.better(r, p, scheme, "s1"))
		}
	}
	if p, ok := inBytes(r.Options, points); ok {
		rep.Metric(name("fsfs", fmt.Sprintf("s1, %g flows/s, paths of 100 MB/s", p.rate)), "", c.better(r, p, "fsfs", "s1")).Paper(c.paper)
	}
}

// along returns where a point is on an axis.
func (f fsfsSetting) along(axis string) float64 {
	if axis == "paths" {
		return float64(f.paths)
	}
	return f.rate
}

func reduceFSFS(r *Results, rep *Report, points []fsfsSetting, axis string, claims []fsfsClaim) {
	for _, c := range claims {
		claimFSFS(r, rep, points, axis, c)
	}
	for _, sizes := range fsfsSizes(r.Options) {
		for _, key := range []string{"G0 s", "G1 s", "G2 s", "long Mb/s", "all Mb/s"} {
			xy := figure.XY{
				Title: "FSFS, " + key + ", sizes " + sizes, Note: fmt.Sprintf("%s profile, %d seeds; 38 bytes a packet of framing; the paper's figures have no numbers", r.Profile, len(r.Seeds)),
				X: figure.Axis{Label: axis}, Y: figure.Axis{Label: key},
			}
			for _, scheme := range fsfsSchemes {
				var x []float64
				var values [][]float64
				for _, p := range points {
					if p = p.of(scheme, sizes); p.runs() {
						x = append(x, p.along(axis))
						values = append(values, r.Values(p.String(), key))
					}
				}
				if len(x) > 0 {
					xy.Lines = append(xy.Lines, LineOf(scheme, x, values))
				}
			}
			rep.Figure(&xy)
		}
	}
}
