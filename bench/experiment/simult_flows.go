package experiment

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

func init() {
	Register(Experiment{
		Name:    "simult-flows",
		Summary: "the transfers of Linux's own test of simultaneous subflows, against its own time limit",
		Source:  "Linux, tools/testing/selftests/net/mptcp/simult_flows.sh: sets and limits",
		Seeds:   3,
		Plan:    planSimult,
		Reduce:  reduceSimult,
	})
}

// simultSet is a set of the test: two links by rate and delay each way.
type simultSet struct{ rate1, rate2, delay1, delay2 int }

func (s simultSet) String() string {
	return fmt.Sprintf("%d+%d Mb/s %d+%d ms", s.rate1, s.rate2, s.delay1, s.delay2)
}

// simultSets are those of the kernel now, and two of earlier versions.
var simultSets = []simultSet{
	{10, 10, 0, 0}, {10, 10, 1, 25}, {15, 5, 0, 0}, {15, 5, 1, 25}, {15, 5, 25, 1}, {10, 3, 1, 25}, {30, 10, 0, 0},
}

// Bytes of the test: a large file one way and a small one the other.
const (
	simultLarge = 2 * 2048 * 4096
	simultSmall = 20 * 4096
)

// limit is the test's: nine tenths of the sum of rates, and 450 ms.
func (s simultSet) limit() time.Duration {
	return time.Duration(1000*simultLarge*8*10/((s.rate1+s.rate2)*1000*1000*9)+450) * time.Millisecond
}

func planSimult(o Options) Plan {
	p := Plan{Params: map[string]any{
		"bytes": simultLarge, "bytes back": simultSmall, "queue packets": 1000, "overhead bytes": sim.OverheadMAC,
	}}
	for _, set := range Pick(o, simultSets[:5], simultSets) {
		for _, reverse := range Pick(o, []bool{false}, []bool{false, true}) {
			p.Cases = append(p.Cases, Case{simultCase(set, reverse), func(u *Unit) error { return runSimult(u, set, reverse) }})
		}
	}
	return p
}

func simultCase(s simultSet, reverse bool) string {
	if reverse {
		return s.String() + " up"
	}
	return s.String() + " down"
}

// runSimult lets a client with two links fetch the large file, or send it if
// reverse, from a server behind a router.
func runSimult(u *Unit, set simultSet, reverse bool) error {
	s := sim.NewFast(u.Seed)
	client, server, r := s.NewNode("client", host.Config{}), s.NewNode("server", host.Config{}), s.NewRouter("router")
	// netem counts Ethernet headers and holds a thousand packets.
	shape := func(name string, rate, delay int) sim.Shape {
		return sim.Symmetric(name, link.Config{
			Rate: float64(rate) * 1e6, Delay: time.Duration(delay) * time.Millisecond,
			QueueBytes: 1000 * (1500 + sim.OverheadMAC), Overhead: sim.OverheadMAC,
		})
	}
	to := netip.MustParseAddrPort("10.0.3.3:10000")
	for _, end := range []struct {
		node  *sim.Node
		addr  string
		shape sim.Shape
	}{
		{client, "10.0.1.1", shape("link1", set.rate1, set.delay1)},
		{client, "10.0.2.1", shape("link2", set.rate2, set.delay2)},
		{server, to.Addr().String(), sim.Shape{Name: "server"}},
	} {
		s.Connect("", sim.IfaceConfig{Node: end.node, Addrs: []netip.Addr{netip.MustParseAddr(end.addr)}}, sim.IfaceConfig{Router: r}, end.shape)
	}
	s.ComputeRoutes()
	conn := u.Conn("", "", "fullmesh")
	cfg := sim.TransferConfig{AB: simultSmall, BA: simultLarge, To: to, ConnA: conn, ConnB: conn}
	if reverse {
		cfg.AB, cfg.BA = cfg.BA, cfg.AB
	}
	t := s.StartTransfer(client, server, cfg)
	if !s.RunUntil(time.Minute, t.Delivered) {
		return fmt.Errorf("not done after a minute: %d and %d bytes", t.ProgramA.Received, t.ProgramB.Received)
	}
	took := s.Elapsed()
	u.Set("time s", took.Seconds())
	u.Set("share of limit", took.Seconds()/set.limit().Seconds())
	return u.Check(s)
}

func reduceSimult(r *Results, rep *Report) {
	bars := figure.Bars{
		Title: "Time of a transfer of 16 MiB, as a share of Linux's limit",
		Note:  "Limit: nine tenths of the sum of rates, and 450 ms; 14 bytes a packet of overhead, queues of 1000 packets",
		Y:     figure.Axis{Label: "share of the limit"}, Refs: []figure.Ref{{Y: 1, Label: "limit"}},
	}
	var values [][]float64
	for _, c := range r.Plan.Cases {
		v := r.Values(c.Name, "share of limit")
		rep.Metric(c.Name, "of limit", v).AtMost(1)
		bars.Groups, values = append(bars.Groups, c.Name), append(values, v)
	}
	bars.Series = []figure.Bar{BarsOf("mptcp", values)}
	rep.Figure(&bars)
}
