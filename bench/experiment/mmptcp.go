package experiment

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "mmptcp",
		Summary: "a fat tree with short and long flows: packet scatter that becomes MPTCP, against MPTCP and TCP",
		Source:  "Kheirkhah, Wakeman and Parisis, MMPTCP, INFOCOM 2016, abstract: short flows complete sooner than with MPTCP, long ones are as fast",
		Plan:    planMMPTCP,
		Reduce:  reduceMMPTCP,
	})
}

var mmptcpSchemes = []string{"tcp", "mptcp", "mmptcp"}

// mmptcpSetting is what the abstract does not say.
type mmptcpSetting struct {
	k               int
	short           int64   // bytes
	rate            float64 // short flows a second from each host that has no long one
	measure, settle time.Duration
}

func planMMPTCP(o Options) Plan {
	s := mmptcpSetting{k: 4, short: 70_000, rate: 40, settle: time.Second, measure: Pick(o, time.Second, 4*time.Second)}
	p := Plan{Params: map[string]any{
		"k": s.k, "links Mb/s": 100, "queue packets": 100, "subflows": 8, "short flows KB": s.short / 1000, "short flows a second and host": s.rate,
		"hosts with a long flow": "every third", "scheduler": "roundrobin, the only one of the model that the paper used", "congestion control": "lia, reno for tcp", "duplicate ACKs that mmptcp waits for": "as many as there are paths, 4",
		"overhead bytes": sim.OverheadEthernet, "warm-up s": s.settle.Seconds(), "measured s": s.measure.Seconds(),
	}}
	for _, scheme := range mmptcpSchemes {
		p.Cases = append(p.Cases, Case{scheme, func(u *Unit) error { return runMMPTCP(u, scheme, s) }})
	}
	return p
}

// mmptcpConn returns what connections are like under a scheme.
func mmptcpConn(u *Unit, scheme string, paths int) host.ConnConfig {
	switch scheme {
	case "tcp":
		return u.Plain("reno")
	case "mptcp":
		conn := u.Conn("roundrobin", "lia", "")
		conn.PathManager = pathmgr.NDiffPorts(8)
		return conn
	}
	return sim.Scatter{Paths: paths}.Conn(u.Conn("roundrobin", "lia", ""))
}

func runMMPTCP(u *Unit, scheme string, s mmptcpSetting) error {
	net := sim.NewFatTree(sim.FatTreeConfig{Seed: u.Seed, Fast: true, K: s.k, Link: sim.Symmetric("", fatLink)})
	scattered := sim.FirstSubflows{}
	for _, r := range append(net.Edge, net.Aggregation...) {
		if scheme == "mmptcp" {
			r.Spray(scattered.Has)
		}
	}
	conn := mmptcpConn(u, scheme, s.k*s.k/4)
	var long []*workload.Bulk
	var short []*workload.Flows
	for from, to := range net.Permutation() {
		srv, err := workload.NewServer(net.Sim, net.Hosts[to], netip.AddrPortFrom(net.Addr(to), 80), conn)
		if err != nil {
			return err
		}
		if from%3 == 0 {
			session, err := srv.Open(net.Hosts[from], netip.AddrPort{}, conn)
			if err != nil {
				return err
			}
			scattered.Add(session.Client)
			long = append(long, workload.Upload(session))
			continue
		}
		flows := &workload.Flows{Rate: s.rate, Sizes: workload.Fixed(s.short), Rand: u.Rand(fmt.Sprint("arrivals ", from))}
		flows.Start(net.Sim, s.settle+s.measure, func(f *workload.Flow) {
			srv.Send(net.Hosts[from], netip.AddrPort{}, conn, f, nil)
			if f.Err == nil {
				scattered.Add(f.Session.Client)
			}
		})
		short = append(short, flows)
	}
	net.RunFor(s.settle)
	before := int64(0)
	for _, b := range long {
		before -= b.Received()
	}
	net.RunFor(s.measure)
	for _, b := range long {
		before += b.Received()
	}
	net.RunFor(5 * time.Second)
	times, open := []float64(nil), 0
	for _, f := range short {
		done, left := f.Complete(s.settle, s.settle+s.measure)
		open += left
		for _, d := range done {
			times = append(times, d.FCT().Seconds()*1e3)
		}
	}
	if len(times) == 0 {
		return errors.New("no short flow is complete")
	}
	square := 0.0
	for _, t := range times {
		square += (t - Mean(times)) * (t - Mean(times))
	}
	u.Set("long Mb/s", float64(before)*8/s.measure.Seconds()/1e6/float64(len(long)))
	u.Set("short ms", Mean(times))
	u.Set("deviation ms", math.Sqrt(square/float64(len(times))))
	u.Set("open", float64(open))
	q := Quantiles(times, 100)
	u.Set("p99 ms", q[99])
	u.AddSeries("short", nil, q)
	return u.Check(net.Sim)
}

func reduceMMPTCP(r *Results, rep *Report) {
	xy := figure.XY{
		Title: "Completion of short flows in a fat tree", Note: "70 KB, beside long flows from every third host; links of 100 Mb/s, queues of 100 packets, 38 bytes a packet of framing",
		X: figure.Axis{Label: "ms"}, Y: figure.Axis{Label: "share of flows"},
	}
	for _, scheme := range mmptcpSchemes {
		for _, key := range []string{"short ms", "deviation ms", "p99 ms", "long Mb/s"} {
			rep.Metric(key+" "+scheme, "", r.Values(scheme, key))
		}
		xy.Lines = append(xy.Lines, figure.Distribution(scheme, Quantiles(r.Samples(scheme, "short"), 100)))
	}
	over := func(key string) []float64 { return Ratios(r.Values("mmptcp", key), r.Values("mptcp", key)) }
	rep.Metric("mean time over mptcp", "", over("short ms")).AtMost(1)
	rep.Metric("deviation over mptcp", "", over("deviation ms")).AtMost(1)
	rep.Metric("long throughput over mptcp", "", over("long Mb/s")).AtLeast(0.95)
	rep.Figure(&xy)
}
