package experiment

import (
	"maps"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
)

func init() {
	Register(Experiment{
		Name:    "slides-failover",
		Summary: "addresses and cables that go away and come back under a download",
		Source:  "slides on multipath TCP: after ifconfig down and up of the client's first link nothing goes on",
		Seeds:   5,
		Plan:    planFailover,
		Reduce:  reduceFailover,
	})
}

// What goes away after failAt and comes back after backAt. The first link is
// that of the first subflow.
const (
	failAt = 10 * time.Second
	backAt = 20 * time.Second
	failTo = 30 * time.Second // end of the run
)

// failures are the cases by name: what happens, and which of the three links
// are left meanwhile.
var failures = []struct {
	name  string
	set   func(t *threeLinks, up bool)
	links float64
}{
	{"address", func(t *threeLinks, up bool) { t.B.SetAddrs(t.Links[0], up) }, 2},
	{"carrier", func(t *threeLinks, up bool) { t.Links[0].SetUp(up) }, 2},
	{"all carriers", func(t *threeLinks, up bool) {
		for _, l := range t.Links {
			l.SetUp(up)
		}
	}, 0},
}

func planFailover(Options) Plan {
	p := Plan{Params: map[string]any{"down at s": failAt.Seconds(), "up at s": backAt.Seconds(), "window s": 1}}
	maps.Copy(p.Params, threeLinks{}.params())
	for _, f := range failures {
		p.Cases = append(p.Cases, Case{f.name, func(u *Unit) error { return runFailover(u, f.set, f.links) }})
	}
	return p
}

func runFailover(u *Unit, set func(*threeLinks, bool), left float64) error {
	net := newThreeLinks(u.Seed, host.Config{}, host.Config{})
	conn := u.Conn("", "", "fullmesh")
	srv, err := workload.NewServer(net.Sim, net.A, netip.AddrPortFrom(net.addrA(0), 80), conn)
	if err != nil {
		return err
	}
	session, err := srv.Open(net.B, netip.AddrPortFrom(net.addrB(0), 0), conn)
	if err != nil {
		return err
	}
	down := workload.Download(session)
	// Failures do not wait for a convenient moment.
	jitter := time.Duration(u.Rand("moment").Int64N(int64(time.Second)))
	const step = 50 * time.Millisecond
	rates := ProbeRates(net.Sim, step, func() uint64 { return uint64(down.Received()) },
		Payload(net.Links[0].BA), Payload(net.Links[1].BA), Payload(net.Links[2].BA))
	net.After(failAt+jitter, func() { set(net, false) })
	net.After(backAt+jitter, func() { set(net, true) })
	net.RunFor(failTo + jitter)
	if left > 0 {
		u.Set("after loss s", recovery(rates.Rates[0], step, failAt+jitter, 0.95*left*10*mptcpShare))
	}
	u.Set("after return s", recovery(rates.Rates[0], step, backAt+jitter, 0.95*30*mptcpShare))
	for i, name := range []string{"eth0", "eth1", "eth2"} {
		u.AddSeries(name, rates.Seconds, rates.Rates[1+i])
	}
	return u.Check(net.Sim)
}

// recovery returns the seconds from an event until the first second in which
// the mean of rates reaches a target begins; the rest of the run if there is
// none.
func recovery(rates []float64, step, event time.Duration, target float64) float64 {
	first, window := int((event+step-1)/step), int(time.Second/step)
	for i := first; i+window <= len(rates); i++ {
		if Mean(rates[i:i+window]) >= target {
			return (time.Duration(i)*step - event).Seconds()
		}
	}
	return (time.Duration(len(rates))*step - event).Seconds()
}

func reduceFailover(r *Results, rep *Report) {
	const most = 3 // seconds until 95 % of what the links allow
	rep.Metric("address removed", "s", r.Values("address", "after loss s")).AtMost(most)
	rep.Metric("address back", "s", r.Values("address", "after return s")).AtMost(most)
	rep.Metric("carrier lost", "s", r.Values("carrier", "after loss s")).AtMost(most)
	rep.Metric("carrier back", "s", r.Values("carrier", "after return s")).AtMost(most)
	rep.Metric("all carriers back", "s", r.Values("all carriers", "after return s")).AtMost(most)
	for _, c := range r.Plan.Cases {
		xy := figure.XY{
			Title: "Rate per path: " + c.Name, Note: "Payload arriving in each 200 ms over three links of 10 Mb/s, 38 bytes a packet of framing, seed 1",
			X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "Mb/s"}, Height: 160,
		}
		for _, name := range []string{"eth0", "eth1", "eth2"} {
			s := r.Series(c.Name, name)[0]
			x, y := coarser(s, 4)
			xy.Stacks = append(xy.Stacks, figure.Line{Name: name, X: x, Y: y, Step: true})
		}
		xy.Lines = []figure.Line{{Name: "framing ceiling", Ref: true, X: []float64{0, failTo.Seconds()}, Y: []float64{30 * mptcpShare, 30 * mptcpShare}}}
		xy.Shades = []figure.Shade{{From: failAt.Seconds() + 0.5, To: backAt.Seconds() + 0.5, Label: c.Name + " down"}}
		rep.Figure(&xy)
	}
}

// coarser returns a series of rates with n of its periods in each, and as X
// where each begins.
func coarser(s Series, n int) (x, y []float64) {
	for i := n; i <= len(s.Y); i += n {
		x, y = append(x, 2*s.X[i-n]-s.X[i-n+1]), append(y, Mean(s.Y[i-n:i]))
	}
	return x, y
}
