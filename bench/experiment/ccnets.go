package experiment

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// ccNet is a network on which congestion controls are compared: a connection
// from the first host, and if there is a second one a plain TCP from there over
// the first path.
type ccNet struct {
	*sim.Bottlenecks
	flows []*sim.Transfer
}

// newCCNet makes the network with its links, and starts the flows.
func newCCNet(u *Unit, links []link.Config, conns ...host.ConnConfig) *ccNet {
	cfg := sim.BottlenecksConfig{
		Seed: u.Seed, Fast: true, Left: len(conns), Right: len(conns),
		Uses: func(_ sim.End, host, path int) bool { return host == 0 || path == 0 },
	}
	for _, l := range links {
		back := link.Config{Rate: l.Rate, Delay: l.Delay, Overhead: l.Overhead}
		cfg.Paths = append(cfg.Paths, sim.Shape{AB: l, BA: back, MTU: u.Profile.MTU()})
	}
	n := &ccNet{Bottlenecks: sim.NewBottlenecks(cfg)}
	start := u.Rand("start")
	for i, c := range conns {
		n.flows = append(n.flows, nil)
		n.After(time.Duration(start.Int64N(int64(20*time.Millisecond))), func() {
			n.flows[i] = n.StartTransfer(n.Left[i], n.Right[i], sim.TransferConfig{
				AB: 1 << 40, ConnA: c, ConnB: c, StayOpen: true, To: netip.AddrPortFrom(n.Addr(sim.EndB, i, 0), sim.Port),
			})
		})
	}
	return n
}

// rates runs for a while and returns the goodput of each flow in Mb/s.
func (n *ccNet) rates(d time.Duration) []float64 {
	got := func() (out []float64) {
		for _, f := range n.flows {
			out = append(out, float64(f.ProgramB.Received)*8/1e6/d.Seconds())
		}
		return out
	}
	before := got()
	n.RunFor(d)
	rates := got()
	for i := range rates {
		rates[i] -= before[i]
	}
	return rates
}

// ccLink is a link with framing, half the round trip each way, and a queue of
// one bandwidth-delay product.
func ccLink(rate float64, rtt time.Duration) link.Config {
	return link.Config{Rate: rate, Delay: rtt / 2, QueueBytes: int(rate / 8 * rtt.Seconds()), Overhead: ethernet}
}

// ccGoodput is what framing leaves of a rate in Mb/s.
func ccGoodput(mbps float64) float64 { return mbps * 1428 / (1500 + ethernet) }

// ccFair: two subflows through one queue of 10 Mb/s, 40 ms, beside one TCP.
func ccFair(u *Unit, name string, warm, d time.Duration) error {
	n := newCCNet(u, []link.Config{ccLink(10e6, 40*time.Millisecond)}, u.Conn("", name, "ndiffports"), u.Plain("reno"))
	n.RunFor(warm)
	r := n.rates(d)
	u.Set("fairness", r[0]/max(r[1], 1e-3))
	return u.Check(n.Sim)
}

// ccPool: two links of 10 Mb/s, 40 ms, one of them shared with a TCP.
func ccPool(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(10e6, 40*time.Millisecond)
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""), u.Plain("reno"))
	n.RunFor(warm)
	r := n.rates(d)
	u.Set("pooling", (r[0]+r[1])/ccGoodput(20))
	u.Set("pooling tcp", r[1]/ccGoodput(10))
	return u.Check(n.Sim)
}

// ccLossy: two links of 100 Mb/s, 20 ms, 0.1 % random loss.
func ccLossy(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(100e6, 20*time.Millisecond)
	l.Loss = 1e-3
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""))
	n.RunFor(warm)
	u.Set("lossy", n.rates(d)[0]/ccGoodput(200))
	return u.Check(n.Sim)
}

// ccHalf: of two links of 20 Mb/s, 40 ms, one becomes half as fast.
func ccHalf(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(20e6, 40*time.Millisecond)
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""))
	n.RunFor(warm)
	slow := l
	slow.Rate /= 2
	n.Paths[0].AB.SetShape(slow)
	u.Set("after halving", n.rates(d)[0]/ccGoodput(30))
	return u.Check(n.Sim)
}

// ccMarks: two subflows through one queue of 1 Gb/s, 200 us, that marks beyond
// 20 packets.
func ccMarks(u *Unit, name string, warm, d time.Duration) error {
	l := link.Config{Rate: 1e9, Delay: 100 * time.Microsecond, QueueBytes: 250 * (1500 + ethernet), MarkBytes: 20 * (1500 + ethernet), Overhead: ethernet}
	n := newCCNet(u, []link.Config{l}, u.Conn("", name, "ndiffports"))
	n.RunFor(warm)
	var queue []float64
	var look func()
	look = func() {
		queue = append(queue, float64(n.Paths[0].AB.Backlog())/(1500+ethernet))
		n.After(50*time.Microsecond, look)
	}
	n.After(0, look)
	u.Set("utilisation", n.rates(d)[0]/ccGoodput(1000))
	slices.Sort(queue)
	u.Set("queue", Quantile(queue, .5))
	return u.Check(n.Sim)
}

// ccSaw: one Reno over 100 ms that loses every 1000th packet, or one in 1000
// at random; the mean window in segments by its goodput.
func ccSaw(u *Unit, loss float64, warm, d time.Duration) error {
	l := link.Config{Rate: 1e9, Delay: 50 * time.Millisecond, QueueBytes: 1 << 24, Loss: loss}
	n := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: []sim.Shape{{AB: l, BA: link.Config{Rate: 1e9, Delay: l.Delay}}}})
	if loss == 0 {
		count := u.Rand("first").IntN(1000)
		n.Links[0].AB.SetBox(func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
			if count++; count%1000 != 0 || seg.PayloadLen() == 0 {
				forward(seg)
			}
		})
	}
	t := n.Start(sim.TransferConfig{AB: 1 << 40, ConnA: u.Plain("reno"), ConnB: u.Plain("reno"), StayOpen: true})
	n.RunFor(warm)
	before := t.ProgramB.Received
	n.RunFor(d)
	u.Set("window", float64(t.ProgramB.Received-before)/d.Seconds()*.1/1448)
	return u.Check(n.Sim)
}

// ccShared: how often two subflows of the default control, with a TCP beside
// them, are found to share a bottleneck after 25 s: through one queue, or two.
func ccShared(u *Unit, queues int, d time.Duration) error {
	links := []link.Config{ccLink(10e6, 40*time.Millisecond), ccLink(8e6, 60*time.Millisecond)}[:queues]
	conn := u.Conn("", "default", []string{"ndiffports", ""}[queues-1])
	inner := conn.Congestion
	var groups []cc.Group
	conn.Congestion = func() cc.Group {
		groups = append(groups, inner())
		return groups[len(groups)-1]
	}
	n := newCCNet(u, links, conn, u.Plain("reno"))
	n.RunFor(25 * time.Second)
	together, all := 0.0, 0.0
	for range d / (350 * time.Millisecond) {
		n.RunFor(350 * time.Millisecond)
		all++
		for _, g := range groups {
			if sets, _ := g.(cc.BottleneckObserver).Shared(); len(sets) > 0 {
				together++
				break
			}
		}
	}
	u.Set("grouped", together/all)
	if len(groups) != 2 {
		return fmt.Errorf("%d groups for both ends", len(groups))
	}
	return u.Check(n.Sim)
}
