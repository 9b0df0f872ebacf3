package experiment

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/bench/workload"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// What the experiments of the MPTCP-FSFS paper have in common. Of its open
// parameters, round trips are evenly spaced, queues hold the bandwidth-delay
// product of the mean round trip, TCP and MPTCP begin on a random path, and
// "100 MB/s" is read as 100 Mb/s. If bytes were meant, the loads of the paper are
// those of an eighth of its arrival rates here: 50 to 2000 flows/s are 6 to 250.
// The rest are "defaults of ns-3": in its profile TCP has receive buffers of
// 131,072 bytes, which bound the background to 52 Mb/s a flow over 20 ms and to 5
// over 200, while modern hosts fill all queues.

const fsfsSource = "MPTCP-FSFS, flow size based subflow scheduling"

var fsfsSchemes = []string{"fsfs", "mptcp", "tcp"}

// fsfsSetting is a point of a sweep.
type fsfsSetting struct {
	scheme, sizes string
	paths         int
	rate          float64 // flows/s
}

func (f fsfsSetting) String() string {
	return fmt.Sprintf("%s %s %d paths %g/s", f.scheme, f.sizes, f.paths, f.rate)
}

// load returns the offered load without the background.
func (f fsfsSetting) load() float64 {
	s, _ := workload.SizesByName(f.sizes)
	return f.rate * s.Mean() * 8 / (float64(f.paths) * fsfsRate)
}

const (
	fsfsRate = 100e6 // bits/s of each path
	fsfsPort = 80
)

// fsfsTimes are how long a run is: until flows arrive, while they do, and how
// long they may take after that.
func fsfsTimes(o Options) (warm, length, drain time.Duration) {
	return Pick(o, 500*time.Millisecond, 5*time.Second), Pick(o, 6*time.Second, 100*time.Second), Pick(o, 6*time.Second, 20*time.Second)
}

// fsfsPlain returns what TCP is like.
func fsfsPlain(u *Unit) host.ConnConfig {
	conn := u.Plain("reno")
	if u.Profile == NS32015 {
		conn.ReadBuffer = 131_072
	}
	return conn
}

// fsfsNet is a sender, A, and a receiver, B, joined by parallel paths.
type fsfsNet struct {
	*sim.Pair
	servers []*workload.Server // at each address of B
	conn    host.ConnConfig
}

func newFSFSNet(u *Unit, scheme string, paths []sim.Shape) (*fsfsNet, error) {
	n := &fsfsNet{Pair: sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths})}
	switch scheme {
	case "tcp":
		n.conn = fsfsPlain(u)
	case "mptcp":
		// The model that the paper used has no other scheduler.
		n.conn = u.Conn("roundrobin", "lia", "fullmesh")
	default:
		n.conn = u.Conn("minrtt-plain", "lia", "flowsize")
	}
	n.conn.Limits = pathmgr.Limits{Subflows: len(paths), Accepted: len(paths)}
	for i := range paths {
		srv, err := workload.NewServer(n.Sim, n.B, netip.AddrPortFrom(n.AddrB(i), fsfsPort), n.conn)
		if err != nil {
			return nil, err
		}
		n.servers = append(n.servers, srv)
	}
	return n, nil
}

// background begins so many long TCP flows on each path.
func (n *fsfsNet) background(u *Unit, flows int) error {
	for i := range n.servers {
		srv, err := workload.NewServer(n.Sim, n.B, netip.AddrPortFrom(n.AddrB(i), 9), fsfsPlain(u))
		if err != nil {
			return err
		}
		for range flows {
			session, err := srv.Open(n.A, netip.AddrPortFrom(n.AddrA(i), 0), fsfsPlain(u))
			if err != nil {
				return err
			}
			workload.Upload(session)
		}
	}
	return nil
}

// probe sends a byte over each path, so that the host knows its round trip.
func (n *fsfsNet) probe() {
	for i, srv := range n.servers {
		srv.Send(n.A, netip.AddrPortFrom(n.AddrA(i), 0), n.conn, &workload.Flow{Size: 1}, nil)
	}
}

// fastest returns the path with the least round trip that the host knows.
func (n *fsfsNet) fastest() int {
	best, least := 0, time.Duration(0)
	for i := range n.servers {
		if p, ok := n.A.Host.Path(n.AddrA(i), n.AddrB(i)); ok && (least == 0 || p.SRTT < least) {
			best, least = i, p.SRTT
		}
	}
	return best
}

// send begins a flow on a path. done may be nil.
func (n *fsfsNet) send(f *workload.Flow, path int, done func(*workload.Flow)) {
	conn := n.conn
	conn.FlowSize = f.Size
	n.servers[path].Send(n.A, netip.AddrPortFrom(n.AddrA(path), 0), conn, f, done)
}

// fsfsPaths returns paths with round trips evenly spaced from 20 to 200 ms.
func fsfsPaths(u *Unit, n int) []sim.Shape {
	var paths []sim.Shape
	for i := range n {
		rtt := 20*time.Millisecond + time.Duration(i)*180*time.Millisecond/time.Duration(max(n-1, 1))
		s := sim.Symmetric("", link.Config{
			Rate: fsfsRate, Delay: rtt / 2, QueueBytes: int(fsfsRate / 8 * 0.11), Overhead: sim.OverheadEthernet,
		})
		s.MTU = u.Profile.MTU()
		paths = append(paths, s)
	}
	return paths
}
