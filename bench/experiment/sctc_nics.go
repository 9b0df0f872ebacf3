package experiment

import (
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
)

func init() {
	Register(Experiment{
		Name:    "sctc-nics",
		Summary: "bulk transfer while links are added one by one",
		Source:  sctcSource + ", Section 3, Figure 1: linear growth with similar links; with different ones little gain, then a fall",
		Plan:    planSCTCNICs,
		Reduce:  reduceSCTCNICs,
	})
}

var nicsSchemes = []string{"minrtt", "roundrobin", "opportunistic-redundant", "sctc-planned", "default"}

var nicsSetting = sctcSetting{rising, 100, "lia"}

func planSCTCNICs(o Options) Plan {
	phase := Pick(o, 4*time.Second, 10*time.Second)
	p := Plan{Params: sctcParams(map[string]any{
		"rates Mb/s": sctcRates, "a link every s": phase.Seconds(), "setting": nicsSetting.String(), "receive buffer": "tuned",
	})}
	for _, kind := range []string{"similar", "different"} {
		for _, scheme := range nicsSchemes {
			p.Cases = append(p.Cases, Case{kind + " " + scheme, func(u *Unit) error {
				return runSCTCNICs(u, kind, scheme, phase)
			}})
		}
	}
	return p
}

func runSCTCNICs(u *Unit, kind, scheme string, phase time.Duration) error {
	n, err := newSCTCNet(u, nicsSetting.nics(u, sctcRates[kind]...), nicsSetting.conn(u, scheme, 0))
	if err != nil {
		return err
	}
	for i := 1; i < len(n.Links); i++ {
		n.A.SetAddrs(n.Links[i], false)
		n.After(time.Duration(i)*phase, func() { n.A.SetAddrs(n.Links[i], true) })
	}
	session, err := n.open()
	if err != nil {
		return err
	}
	bulk := workload.Download(session)
	var seconds, rates []float64
	last, begin := int64(0), n.Now()
	for i := range n.Links {
		sum := int64(0)
		for range int(phase / time.Second) {
			n.RunFor(time.Second)
			got := bulk.Received() - last
			last, sum = last+got, sum+got
			seconds, rates = append(seconds, n.Now().Sub(begin).Seconds()), append(rates, float64(got)*8/1e6)
		}
		u.Set(fmt.Sprintf("%d links Mb/s", i+1), float64(sum)*8/phase.Seconds()/1e6)
	}
	u.AddSeries("goodput", seconds, rates)
	return u.Check(n.Sim)
}

func reduceSCTCNICs(r *Results, rep *Report) {
	for _, kind := range []string{"similar", "different"} {
		xy := figure.XY{
			Title: "Links added one by one, " + kind, Note: fmt.Sprintf("%v Mb/s; queues of 100 packets; seed 1; 38 bytes a packet of framing", sctcRates[kind]),
			X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Mb/s"},
		}
		for _, scheme := range nicsSchemes {
			name := kind + " " + scheme
			s := r.Series(name, "goodput")[0]
			xy.Lines = append(xy.Lines, figure.Line{Name: scheme, X: s.X, Y: s.Y, Step: true})
			two := rep.Metric("2 links over 1, "+scheme+", "+kind, "", Ratios(r.Values(name, "2 links Mb/s"), r.Values(name, "1 links Mb/s")))
			three := rep.Metric("3 links over 1, "+scheme+", "+kind, "", Ratios(r.Values(name, "3 links Mb/s"), r.Values(name, "1 links Mb/s")))
			fall := rep.Metric("3 links over 2, "+scheme+", "+kind, "", Ratios(r.Values(name, "3 links Mb/s"), r.Values(name, "2 links Mb/s")))
			switch {
			case scheme != "minrtt":
			case kind == "similar": // linear growth: 1, 1.9, 2.7
				two.Between(1.6, 2)
				three.Between(2.2, 2.9)
			default:
				fall.AtMost(1)
			}
		}
		rep.Figure(&xy)
	}
}
