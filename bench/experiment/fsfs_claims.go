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

// fsfsBetter returns by how much FSFS is better than a rival, on average over
// the points whose load is below 1, one value a seed.
func fsfsBetter(r *Results, points []fsfsSetting, sizes string, c fsfsClaim) []float64 {
	better, n := make([]float64, len(r.Seeds)), 0
	for _, p := range points {
		if p.sizes = sizes; p.load() >= 1 {
			continue
		}
		n++
		for i, ratio := range Ratios(r.Values(p.of("fsfs", sizes), c.key), r.Values(p.of(c.rival, sizes), c.key)) {
			if strings.HasSuffix(c.key, " s") {
				ratio = 2 - ratio // of a time: less is better
			}
			better[i] += ratio - 1
		}
	}
	for i := range better {
		better[i] /= float64(n)
	}
	return better
}

func reduceFSFS(r *Results, rep *Report, points []fsfsSetting, axis string, claims []fsfsClaim) {
	for _, sizes := range fsfsSizes(r.Options) {
		for _, c := range claims {
			m := rep.Metric(fmt.Sprintf("%s than %s, %s", c.what, c.rival, sizes), "", fsfsBetter(r, points, sizes, c)).Paper(c.paper)
			if sizes == "s1" {
				m.Between(c.lo, c.hi)
			}
		}
		for _, key := range []string{"G0 s", "G1 s", "G2 s", "long Mb/s", "all Mb/s"} {
			xy := figure.XY{
				Title: "FSFS, " + key + ", sizes " + sizes, Note: fmt.Sprintf("%s profile, %d seeds; 38 bytes a packet of framing; the paper's figures have no numbers", r.Profile, len(r.Seeds)),
				X: figure.Axis{Label: axis}, Y: figure.Axis{Label: key},
			}
			for _, scheme := range fsfsSchemes {
				var x []float64
				var values [][]float64
				for _, p := range points {
					x = append(x, Pick(Options{Quick: axis == "paths"}, float64(p.paths), p.rate))
					values = append(values, r.Values(p.of(scheme, sizes), key))
				}
				xy.Lines = append(xy.Lines, LineOf(scheme, x, values))
			}
			rep.Figure(&xy)
		}
	}
}
