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
		Name:    "slides-wifi3g",
		Summary: "throughput over WiFi and 3G by the size of the send and receive buffers",
		Source:  "slides on multipath TCP, from Raiciu et al., NSDI 2012: 8 Mb/s with 20 ms and 2 Mb/s with 150 ms",
		Seeds:   3,
		Plan:    planWiFi3G,
		Reduce:  reduceWiFi3G,
	})
}

// The paths. Queues hold 80 ms of WiFi and 2 s of 3G. The rates are those of IP
// packets: no framing comes on top.
var (
	wifi = link.Config{Rate: 8e6, Delay: 10 * time.Millisecond, QueueBytes: 80_000}
	umts = link.Config{Rate: 2e6, Delay: 75 * time.Millisecond, QueueBytes: 500_000}
)

// buffersKB are the sizes of both buffers, in 1000 bytes.
func buffersKB(o Options) []float64 {
	return Pick(o, []float64{50, 100, 200, 1000}, []float64{25, 50, 100, 150, 200, 300, 400, 500, 700, 1000})
}

// wifi3GSchemes are TCP over each path, and MPTCP without and with what NSDI
// 2012 calls M1 and M2, opportunistic retransmission and penalisation, and the
// default scheduler.
var wifi3GSchemes = []string{"tcp wifi", "tcp 3g", "minrtt-plain", "minrtt", "default"}

func planWiFi3G(o Options) Plan {
	warm, measure := 10*time.Second, Pick(o, 20*time.Second, 60*time.Second)
	p := Plan{Params: map[string]any{
		"rates Mb/s": []int{8, 2}, "round trips ms": []int{20, 150}, "queues bytes": []int{80_000, 500_000}, "buffers KB": buffersKB(o),
		"congestion control": "lia", "overhead bytes": 0, "warm-up s": warm.Seconds(), "measured s": measure.Seconds(),
	}}
	for _, scheme := range wifi3GSchemes {
		for _, kb := range buffersKB(o) {
			p.Cases = append(p.Cases, Case{wifi3GCase(scheme, kb), func(u *Unit) error {
				return runWiFi3G(u, scheme, int(kb*1000), warm, measure)
			}})
		}
	}
	return p
}

func wifi3GCase(scheme string, kb float64) string { return fmt.Sprintf("%s %g KB", scheme, kb) }

func runWiFi3G(u *Unit, scheme string, buffer int, warm, measure time.Duration) error {
	paths := []sim.Shape{sim.Symmetric("wifi", wifi), sim.Symmetric("3g", umts)}
	var conn host.ConnConfig
	switch scheme {
	case "tcp wifi":
		conn, paths = u.Plain("reno"), paths[:1]
	case "tcp 3g":
		conn, paths = u.Plain("reno"), paths[1:]
	default:
		conn = u.Conn(scheme, "lia", "fullmesh")
	}
	conn.ReadBuffer, conn.WriteBuffer = buffer, buffer
	net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths})
	// The moment of the start is all that seeds change here.
	net.RunFor(time.Duration(u.Rand("start").Int64N(int64(time.Second))))
	t := net.Start(sim.TransferConfig{AB: unbounded, ConnA: conn, ConnB: conn})
	u.Set("goodput Mb/s", Goodput(net.Sim, func() int64 { return t.ProgramB.Received }, warm, measure))
	return u.Check(net.Sim)
}

func reduceWiFi3G(r *Results, rep *Report) {
	const key = "goodput Mb/s"
	xy := figure.XY{
		Title: "Goodput over WiFi and 3G by buffer", Note: "WiFi 8 Mb/s, 20 ms, 3G 2 Mb/s, 150 ms; queues of 80 ms and 2 s; no framing; mean and 95 % interval over the seeds",
		X: figure.Axis{Label: "send and receive buffer, KB", Log: true}, Y: figure.Axis{Label: "Mb/s"},
	}
	for _, scheme := range wifi3GSchemes {
		var values [][]float64
		for _, kb := range buffersKB(r.Options) {
			v := r.Values(wifi3GCase(scheme, kb), key)
			m := rep.Metric("goodput "+wifi3GCase(scheme, kb), "Mb/s", v)
			switch {
			case scheme == "minrtt-plain" && kb >= 100 && kb <= 200:
				// Without mechanisms against it a small buffer is filled by what
				// the slow path holds up, and WiFi alone would be faster.
				m.AtMost(0.95 * 8)
			case (scheme == "minrtt" || scheme == "default") && kb == 1000:
				m.AtLeast(9.2) // nearly the sum
			case (scheme == "minrtt" || scheme == "default") && kb >= 50:
				// With them, or by the default, it is never worse than WiFi alone.
				m.AtLeast(0.95 * Mean(r.Values(wifi3GCase("tcp wifi", kb), key)))
			case scheme == "tcp wifi" && kb >= 100:
				m.Paper(8).AtLeast(0.95 * 8 * 1448 / 1500)
			}
			values = append(values, v)
		}
		xy.Lines = append(xy.Lines, LineOf(scheme, buffersKB(r.Options), values))
	}
	rep.Figure(&xy)
}
