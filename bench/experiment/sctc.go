package experiment

import (
	"fmt"
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

// sctcSetting is a choice of what the paper does not say and what the results
// depend on.
type sctcSetting struct {
	rtts       sctcTrips
	packets    int    // of each queue; 0 = the bandwidth-delay product, at least 16
	congestion string // control
}

// sctcTrips are the round trips of links from the fastest to the slowest.
type sctcTrips struct {
	name   string
	first  time.Duration
	factor int // from one link to the next slower one
}

var (
	// What virtual network cards of one machine have if nothing but the rate is
	// set; with it go Linux's own queue of 1000 packets and cubic.
	near   = sctcTrips{"1 ms each", time.Millisecond, 1}
	rising = sctcTrips{"20, 40, 80 ms", 20 * time.Millisecond, 2}
	equal  = sctcTrips{"20 ms each", 20 * time.Millisecond, 1}
	far    = sctcTrips{"200 ms each", 200 * time.Millisecond, 1}
)

func (s sctcSetting) String() string {
	queue := "bdp"
	if s.packets > 0 {
		queue = fmt.Sprint(s.packets)
	}
	return fmt.Sprintf("%s, queue %s, %s", s.rtts.name, queue, s.congestion)
}

// nics returns links of some rates in Mb/s, in their order.
func (s sctcSetting) nics(u *Unit, rates ...float64) []sim.Shape {
	var paths []sim.Shape
	for _, mbps := range rates {
		rtt := s.rtts.first
		for _, other := range rates {
			if other > mbps {
				rtt *= time.Duration(s.rtts.factor)
			}
		}
		l := link.Config{Rate: mbps * 1e6, Delay: rtt / 2, Overhead: sim.OverheadEthernet}
		l.QueueBytes = max(int(l.Rate/8*rtt.Seconds()), 16*1538)
		if s.packets > 0 {
			l.QueueBytes = s.packets * 1538
		}
		shape := sim.Symmetric("", l)
		shape.MTU = u.Profile.MTU()
		paths = append(paths, shape)
	}
	return paths
}

// conn returns the configuration of both ends for a scheme, "tcp" among them.
func (s sctcSetting) conn(u *Unit, scheme string, buffer int) host.ConnConfig {
	single := s.congestion
	if single == "lia" {
		single = "reno" // what it is on one path
	}
	conn := u.Plain(single)
	if scheme != "tcp" {
		conn = u.Conn(scheme, s.congestion, "")
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
		"settings": "round trips from the fastest link to the slowest, queues (packets or bandwidth-delay product), congestion control", "tcp": "on the fastest link, reno where the others have lia",
		"overhead bytes": sim.OverheadEthernet, "not given by the paper": "round trips, queues, buffers, congestion control, object sizes",
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}
