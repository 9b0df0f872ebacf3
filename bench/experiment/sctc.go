package experiment

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// What the experiments of the SCTC paper have in common. The paper gives the
// rates of its network cards and nothing else: neither delays, nor queues, nor
// buffers, nor the congestion control. Those below are ours.

const sctcSource = "Feng and Chen, a multipath transmission scheduling algorithm for delay-sensitive services (SCTC)"

// sctcSchemes are those compared; the paper has the first three and one SCTC.
var sctcSchemes = []string{
	"minrtt", "roundrobin", "opportunistic-redundant", "sctc-literal", "sctc-planned", "sctc-optimal", "default",
}

// nics returns links of some rates in Mb/s with round trips of 20, 40 and 80 ms
// from the fastest to the slowest, in the order of the rates. Their queues hold
// the bandwidth-delay product, at least 16 packets, or packets if that is not 0.
func nics(u *Unit, packets int, rates ...float64) []sim.Shape {
	var paths []sim.Shape
	for _, mbps := range rates {
		rtt := 20 * time.Millisecond
		for _, other := range rates {
			if other > mbps {
				rtt *= 2
			}
		}
		l := link.Config{Rate: mbps * 1e6, Delay: rtt / 2, Overhead: sim.OverheadEthernet}
		l.QueueBytes = max(int(l.Rate/8*rtt.Seconds()), 16*1538)
		if packets > 0 {
			l.QueueBytes = packets * 1538
		}
		s := sim.Symmetric("", l)
		s.MTU = u.Profile.MTU()
		paths = append(paths, s)
	}
	return paths
}

// sctcConn returns the configuration of both ends for a scheme, "tcp" among
// them.
func sctcConn(u *Unit, scheme string, buffer int) host.ConnConfig {
	conn := u.Plain("reno")
	if scheme != "tcp" {
		conn = u.Conn(scheme, "lia", "")
	}
	conn.ReadBuffer = buffer
	return conn
}

// sctcNet is a client, A, and a server, B, joined by the links of nics.
type sctcNet struct {
	*sim.Pair
	server *workload.Server
	conn   host.ConnConfig
}

func newSCTCNet(u *Unit, paths []sim.Shape, conn host.ConnConfig) (*sctcNet, error) {
	n := &sctcNet{Pair: sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths}), conn: conn}
	n.RunFor(time.Duration(u.Rand("start").Int64N(int64(time.Second))))
	var err error
	n.server, err = workload.NewServer(n.Sim, n.B, netip.AddrPortFrom(n.AddrB(0), 80), conn)
	return n, err
}

func (n *sctcNet) open() (*workload.Session, error) {
	return n.server.Open(n.A, netip.AddrPort{}, n.conn)
}

// sctcGain returns how much less time, or more rate, a scheme has than minrtt.
func sctcGain(r *Results, scheme, key string, cases func(scheme string) []string) (gain []float64) {
	mine, theirs := cases(scheme), cases("minrtt")
	for i := range r.Seeds {
		sum := 0.0
		for k := range mine {
			sum += r.Values(mine[k], key)[i] / r.Values(theirs[k], key)[i]
		}
		gain = append(gain, 1-sum/float64(len(mine)))
	}
	return gain
}

func sctcParams(more map[string]any) map[string]any {
	p := map[string]any{
		"round trips ms": "20, 40, 80 from the fastest to the slowest", "congestion control": "lia, reno for tcp",
		"overhead bytes": sim.OverheadEthernet, "not given by the paper": "round trips, queues, buffers, congestion control, object sizes",
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}
