package experiment

import (
	"maps"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func init() {
	Register(Experiment{
		Name:    "slides-fullmesh",
		Summary: "three by three addresses of which only those of one subnet reach each other",
		Source:  "slides on multipath TCP: nine subflows tried, three established",
		Seeds:   3,
		Plan:    planFullMesh,
		Reduce:  reduceFullMesh,
	})
}

func planFullMesh(Options) Plan {
	p := Plan{Params: map[string]any{"path manager": "fullmesh", "subflows at most": 9}}
	maps.Copy(p.Params, threeLinks{}.params())
	p.Cases = []Case{{"fullmesh", runFullMesh}}
	return p
}

type pair struct{ src, dst netip.AddrPort }

// meshBox lets only packets within a subnet through and counts SYNs.
type meshBox struct {
	attempts map[pair]bool // SYNs, by addresses and ports
	minute   int           // SYNs in the first minute, repetitions included
}

func (m *meshBox) pass(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	if seg.Flags&(wire.SYN|wire.ACK) == wire.SYN {
		m.attempts[pair{seg.Src, seg.Dst}] = true
		if now <= mono.Time(61*time.Second) {
			m.minute++
		}
	}
	if seg.Src.Addr().As4()[2] == seg.Dst.Addr().As4()[2] {
		forward(seg)
	}
}

func runFullMesh(u *Unit) error {
	lost := 0
	observe := func(_ mono.Time, _ *host.Conn, e mpconn.Event) {
		if e.Kind == mpconn.EventSubflowLost {
			lost++
		}
	}
	net := newThreeLinks(u.Seed, host.Config{}, host.Config{Observe: observe})
	box := meshBox{attempts: make(map[pair]bool)}
	for _, l := range net.Links {
		l.Insert(sim.EndA, sim.Middlebox{Out: box.pass})
	}
	conn := u.Conn("", "", "fullmesh")
	conn.Limits = pathmgr.Limits{Subflows: 9, Accepted: 8}
	srv, err := workload.NewServer(net.Sim, net.A, netip.AddrPortFrom(net.addrA(0), 5001), conn)
	if err != nil {
		return err
	}
	session, err := srv.Open(net.B, netip.AddrPortFrom(net.addrB(0), 0), conn)
	if err != nil {
		return err
	}
	session.Do(1<<20, 0, nil)
	// Until every SYN that is not answered was given up.
	net.RunUntil(10*time.Minute, func() bool { return lost >= 6 })
	diagonal, others := 0, 0
	for _, sf := range session.Client.AppendSubflows(nil) {
		switch {
		case !sf.Up || sf.Close != reason.CloseNone:
		case sf.Local.Addr().As4()[2] == sf.Remote.Addr().As4()[2]:
			diagonal++
		default:
			others++
		}
	}
	u.Set("attempts", float64(len(box.attempts)))
	u.Set("subflows", float64(diagonal))
	u.Set("across subnets", float64(others))
	u.Set("timeouts", float64(lost))
	u.Set("given up after s", net.Elapsed().Seconds())
	u.Set("SYNs in a minute", float64(box.minute))
	return u.Check(net.Sim)
}

func reduceFullMesh(r *Results, rep *Report) {
	v := func(key string) []float64 { return r.Values("fullmesh", key) }
	rep.Metric("attempts", "", v("attempts")).Paper(9).Between(9, 9)
	rep.Metric("subflows", "", v("subflows")).Paper(3).Between(3, 3)
	rep.Metric("subflows across subnets", "", v("across subnets")).Between(0, 0)
	rep.Metric("timeouts", "", v("timeouts")).Paper(6).Between(6, 6)
	// Three SYNs that are answered, and six that are repeated after 1, 3, 7, 15
	// and 31 s (RFC 6298).
	rep.Metric("SYNs in the first minute", "", v("SYNs in a minute")).AtMost(3 + 6*6)
	rep.Metric("given up after", "s", v("given up after s"))
	rep.Figure(&figure.Bars{
		Title: "Subflows of a full mesh", Note: "Three addresses on each side, packets pass within a subnet only; 38 bytes a packet of framing",
		Y: figure.Axis{Label: "subflows"}, Groups: []string{"tried", "established", "timed out"},
		Series: []figure.Bar{BarsOf("fullmesh", [][]float64{v("attempts"), v("subflows"), v("timeouts")})},
	})
}
