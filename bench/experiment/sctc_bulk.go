package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
)

func init() {
	Register(Experiment{
		Name:    "sctc-bulk",
		Summary: "bulk transfer over three similar and three different links, against TCP on the fastest",
		Source:  sctcSource + ", Section 3, Table 1: 250 % and 53 % of TCP",
		Seeds:   2,
		Plan:    planSCTCBulk,
		Reduce:  reduceSCTCBulk,
	})
}

// sctcRates are the network cards of the paper in Mb/s.
var sctcRates = map[string][]float64{"similar": {10, 9, 8}, "different": {10, 5, 1}}

// bulkSchemes are those compared: the paper's three, and two of ours.
var bulkSchemes = []string{"minrtt", "roundrobin", "opportunistic-redundant", "sctc-planned", "default"}

// bulkSetting is a choice of what the paper does not say.
type bulkSetting struct {
	packets int // of each queue; 0 = the bandwidth-delay product
	buffer  int // of the receiver, bytes; 0 = tuned
}

func (b bulkSetting) String() string {
	return fmt.Sprintf("queue %d buffer %d KB", b.packets, b.buffer>>10)
}

func (b bulkSetting) setting() sctcSetting { return sctcSetting{rising, b.packets, "lia"} }

func bulkSettings(o Options) []bulkSetting {
	var all []bulkSetting
	for _, packets := range Pick(o, []int{0, 100}, []int{0, 30, 100, 300}) {
		for _, kb := range Pick(o, []int{128}, []int{32, 64, 128, 512, 4096}) {
			all = append(all, bulkSetting{packets, kb << 10})
		}
	}
	return all
}

func bulkCase(kind, scheme string, b bulkSetting) string {
	return fmt.Sprintf("%s %s %v", kind, scheme, b)
}

func planSCTCBulk(o Options) Plan {
	warm, measure := Pick(o, 2*time.Second, 5*time.Second), Pick(o, 5*time.Second, 25*time.Second)
	p := Plan{Params: sctcParams(map[string]any{
		"rates Mb/s": sctcRates, "queues packets": "0 stands for the bandwidth-delay product", "warm-up s": warm.Seconds(), "measured s": measure.Seconds(),
	})}
	for _, kind := range []string{"similar", "different"} {
		for _, scheme := range append([]string{"tcp"}, bulkSchemes...) {
			for _, b := range bulkSettings(o) {
				p.Cases = append(p.Cases, Case{bulkCase(kind, scheme, b), func(u *Unit) error {
					paths := b.setting().nics(u, sctcRates[kind]...)
					if scheme == "tcp" {
						paths = paths[:1]
					}
					n, err := newSCTCNet(u, paths, b.setting().conn(u, scheme, b.buffer))
					if err != nil {
						return err
					}
					session, err := n.open()
					if err != nil {
						return err
					}
					bulk := workload.Download(session)
					n.RunFor(warm)
					before := bulk.Received()
					n.RunFor(measure)
					u.Set("goodput Mb/s", float64(bulk.Received()-before)*8/measure.Seconds()/1e6)
					return u.Check(n.Sim)
				}})
			}
		}
	}
	return p
}

// reduceSCTCBulk asks whether there are settings at which the headlines hold
// for the schedulers that the paper measured.
func reduceSCTCBulk(r *Results, rep *Report) {
	// One setting at which both hold, for a scheduler of the paper.
	same := [2][]float64{}
	for _, b := range bulkSettings(r.Options) {
		for _, scheme := range bulkSchemes[:3] {
			over := func(kind string) []float64 {
				return Ratios(r.Values(bulkCase(kind, scheme, b), "goodput Mb/s"), r.Values(bulkCase(kind, "tcp", b), "goodput Mb/s"))
			}
			similar, different := over("similar"), over("different")
			if same[0] == nil || Mean(similar)-Mean(different) > Mean(same[0])-Mean(same[1]) {
				same = [2][]float64{similar, different}
			}
		}
	}
	rep.Metric("at one setting, similar", "", same[0]).Paper(2.5)
	rep.Metric("at one setting, different", "", same[1]).Paper(0.53)
	for _, kind := range []string{"similar", "different"} {
		bars := figure.Bars{
			Title: "Bulk transfer over three links, " + kind, Note: fmt.Sprintf("%v Mb/s, against TCP on the first with the same queue and buffer; 38 bytes a packet of framing", sctcRates[kind]),
			Y: figure.Axis{Label: "share of TCP"},
		}
		for _, b := range bulkSettings(r.Options) {
			bars.Groups = append(bars.Groups, b.String())
		}
		least, most := []float64(nil), []float64(nil)
		for _, scheme := range bulkSchemes {
			var groups [][]float64
			for _, b := range bulkSettings(r.Options) {
				v := Ratios(r.Values(bulkCase(kind, scheme, b), "goodput Mb/s"), r.Values(bulkCase(kind, "tcp", b), "goodput Mb/s"))
				groups = append(groups, v)
				if slices.Index(bulkSchemes, scheme) > 2 {
					continue // not in the paper's table
				}
				if least == nil || Mean(v) < Mean(least) {
					least = v
				}
				if most == nil || Mean(v) > Mean(most) {
					most = v
				}
			}
			bars.Series = append(bars.Series, BarsOf(scheme, groups))
			rep.Metric(scheme+" over TCP, "+kind, "", groups[0])
		}
		if kind == "similar" {
			bars.Refs = []figure.Ref{{Y: 2.7, Label: "sum of the links"}, {Y: 2.5, Label: "paper"}}
			rep.Metric("best setting, similar", "", most).Paper(2.5).AtLeast(2.4)
		} else {
			bars.Refs = []figure.Ref{{Y: 1.6, Label: "sum of the links"}, {Y: 0.53, Label: "paper"}}
			rep.Metric("worst setting, different", "", least).Paper(0.53).AtMost(0.6)
		}
		rep.Figure(&bars)
	}
}
