package experiment

import (
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "mptcpd-long",
		Summary: "long flows of MPTCP-D over disjoint paths, shaped interfaces, and eight subflows on four links",
		Source:  "Zhao et al., INFOCOM 2017, abstract: up to 72 % less energy for long flows than DCTCP; the control is our reconstruction",
		Plan:    planMPTCPDLong,
		Reduce:  reduceMPTCPDLong,
	})
}

var (
	mptcpdSchemes = []string{"mptcpd", "lia", "mdtcp", "xmp"}
	mptcpdPaths   = []int{1, 2, 4, 8}
)

func planMPTCPDLong(o Options) Plan {
	size := Pick[int64](o, 8, 256) << 20
	p := Plan{Params: map[string]any{
		"bytes": size, "scale": float64(size) / 1e9, "link Mb/s": 1000, "round trip us": 200, "K packets": 20, "queue packets": 250,
		"power a subflow": energySubflow, "related work, not built": []string{"DTS (ICDCS 2017)", "eMPTCP (CoNEXT 2015)", "AMP (2017)"},
	}}
	p.Cases = append(p.Cases, Case{"dctcp", func(u *Unit) error { return runLong(u, 1, u.Plain("dctcp"), size) }})
	for _, scheme := range mptcpdSchemes {
		for _, m := range mptcpdPaths {
			if o.Quick && (m == 2 || m == 8) {
				continue
			}
			p.Cases = append(p.Cases, Case{longCase(scheme, m), func(u *Unit) error { return runLong(u, m, u.Conn("", scheme, ""), size) }})
		}
		p.Cases = append(p.Cases, Case{"shaped " + scheme, func(u *Unit) error { return runShaped(u, scheme, Pick[time.Duration](o, 20, 200)*time.Millisecond) }})
	}
	for _, known := range []string{"", "path", "marks"} {
		p.Cases = append(p.Cases, Case{"eight " + known, func(u *Unit) error {
			return runEight(u, known, Pick[time.Duration](o, 50, 1000)*time.Millisecond)
		}})
	}
	return p
}

func longCase(scheme string, m int) string { return fmt.Sprintf("%s m=%d", scheme, m) }

// runLong sends size bytes over m disjoint paths.
func runLong(u *Unit, m int, conn host.ConnConfig, size int64) error {
	cfg := sim.PairConfig{Seed: u.Seed, Fast: true}
	for range m {
		cfg.Paths = append(cfg.Paths, sim.Shape{AB: dcLink(1e9), BA: dcLink(1e9), MTU: u.Profile.MTU()})
	}
	n := sim.TwoHosts(cfg)
	cpu := ThreadCPU()
	t := n.Start(sim.TransferConfig{AB: size, ConnA: conn, ConnB: conn})
	for !t.ProgramB.Delivered() && n.Elapsed() < time.Minute {
		n.RunFor(time.Millisecond)
	}
	u.Set("seconds", t.ProgramB.LastByte.Sub(t.ProgramA.Begun).Seconds())
	u.SetHost("CPU ns a byte, both ends and the simulator", float64(ThreadCPU()-cpu)/float64(size))
	return u.Check(n.Sim)
}

// runShaped fills five interfaces of 1 to 5 Gb/s with plain queues, as a cloud
// shapes them.
func runShaped(u *Unit, scheme string, d time.Duration) error {
	cfg := sim.PairConfig{Seed: u.Seed, Fast: true}
	for i := range 5 {
		l := link.Config{Rate: float64(i+1) * 1e9, Delay: 100 * time.Microsecond, Overhead: ethernet, QueueBytes: 250 * (1500 + ethernet)}
		cfg.Paths = append(cfg.Paths, sim.Shape{AB: l, BA: l, MTU: u.Profile.MTU()})
	}
	n := sim.TwoHosts(cfg)
	c := u.Conn("", scheme, "")
	t := n.Start(sim.TransferConfig{AB: 1 << 40, ConnA: c, ConnB: c, StayOpen: true})
	n.RunFor(d / 2)
	before := t.ProgramB.Received
	n.RunFor(d / 2)
	u.Set("shaped", float64(t.ProgramB.Received-before)*8/1e6/(d/2).Seconds()/ccGoodput(15000))
	return u.Check(n.Sim)
}

// runEight runs eight subflows on four links.
func runEight(u *Unit, known string, d time.Duration) error {
	h := newHashed(u, 4)
	t := h.start(h.conn(u, known), sim.Port, 1<<40, true)
	h.RunFor(d)
	subflows, links := h.active(t)
	u.Set("subflows a link", float64(subflows)/float64(max(links, 1)))
	before := t.ProgramB.Received
	h.RunFor(d / 2)
	u.Set("eight Mb/s", float64(t.ProgramB.Received-before)*8/1e6/(d/2).Seconds())
	return u.Check(h.Sim)
}

func reduceMPTCPDLong(r *Results, rep *Report) {
	single := r.Values("dctcp", "seconds")
	rep.Metric("seconds dctcp", "s", single)
	xy := figure.XY{
		Title: "Completion time of a long flow", Note: "Relative to DCTCP on one path; the mean over the seeds",
		X: figure.Axis{Label: "disjoint paths"}, Y: figure.Axis{Label: "of DCTCP's time"},
	}
	for _, scheme := range mptcpdSchemes {
		var xs []float64
		var ys [][]float64
		for _, m := range mptcpdPaths {
			if r.Quick && (m == 2 || m == 8) {
				continue
			}
			ratio := Ratios(r.Values(longCase(scheme, m), "seconds"), single)
			xs, ys = append(xs, float64(m)), append(ys, ratio)
			scaled := make([]float64, len(ratio))
			saving := make([]float64, len(ratio))
			for i, v := range ratio {
				scaled[i] = v * float64(m)
				saving[i] = 1 - v*energyPower(float64(m))
			}
			time := rep.Metric(fmt.Sprintf("time times paths %s m=%d", scheme, m), "", scaled)
			if scheme == "mptcpd" {
				time.AtMost(1.1)
				saved := rep.Metric(fmt.Sprintf("model energy saved m=%d", m), "", saving)
				if m == 4 {
					saved.Paper(.72)
				}
			}
		}
		rep.Metric("shaped "+scheme, "of the sum", r.Values("shaped "+scheme, "shaped"))
		xy.Lines = append(xy.Lines, LineOf(scheme, xs, ys))
	}
	rep.Figure(&xy)
	all := r.Values("eight ", "eight Mb/s")
	rep.Metric("subflows a link, all", "", r.Values("eight ", "subflows a link"))
	for _, known := range []string{"path", "marks"} {
		rep.Metric("subflows a link, by "+known, "", r.Values("eight "+known, "subflows a link")).AtMost(1)
		rep.Metric("throughput, by "+known, "of that of all", Ratios(r.Values("eight "+known, "eight Mb/s"), all)).AtLeast(.99)
	}
}
