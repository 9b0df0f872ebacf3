package experiment

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
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
