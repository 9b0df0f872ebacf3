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
//
// "The sender updates the round trip of a path whenever it receives an ACK": so
// every connection of the sending host counts, those of the background too.

const fsfsSource = "MPTCP-FSFS, flow size based subflow scheduling"

// fsfsSchemes are those of the paper, and ours (a reconstruction): fsfs-placed
// adds to the round trip of a path what a part of the bytes of short flows that
// were placed there and have not arrived will take, lest all flows of a round
// trip choose the same path.
var fsfsSchemes = []string{"fsfs", "fsfs-placed", "mptcp", "tcp"}

// fsfsShare is that part: flows send what they have over several round trips.
const fsfsShare = 0.2

// fsfsSetting is a point of a sweep.
type fsfsSetting struct {
	scheme, sizes string
	paths         int
	rate          float64 // flows/s
	link          float64 // bits/s of each path
}

func (f fsfsSetting) String() string {
	name := fmt.Sprintf("%s %s %d paths %g/s", f.scheme, f.sizes, f.paths, f.rate)
	if f.link != fsfsRate {
		name += fmt.Sprintf(" %g Mb/s", f.link/1e6)
	}
	return name
}

// load returns the offered load without the background.
func (f fsfsSetting) load() float64 {
	s, _ := workload.SizesByName(f.sizes)
	return f.rate * s.Mean() * 8 / (float64(f.paths) * f.link)
}

const (
	fsfsRate = 100e6 // bits/s of each path
	fsfsPort = 80
)

// times are how long a run is: until flows count, while they do, and how long
// they may take after that. Flows arrive from the beginning on. With the 100 s
// a point of the paper a sweep would take hours.
func (f fsfsSetting) times(o Options) (warm, length, drain time.Duration) {
	if o.Quick {
		return 500 * time.Millisecond, 6 * time.Second, 6 * time.Second
	}
	if f.load() >= 1 {
		return 1500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second
	}
	length = time.Duration(fsfsCounted / f.rate * float64(time.Second))
	return 3 * time.Second, min(max(length, 2*time.Second), 12*time.Second), 3 * time.Second
}

// fsfsCounted is how many flows of a run count, about.
const fsfsCounted = 1500

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
	placed  map[netip.Addr]int64 // fsfs-placed: bytes of short flows, by address of B
	link    float64              // bits/s of each path
}

func newFSFSNet(u *Unit, scheme string, link float64, paths []sim.Shape) (*fsfsNet, error) {
	n := &fsfsNet{Pair: sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Fast: true, Paths: paths}), link: link}
	switch scheme {
	case "tcp":
		n.conn = fsfsPlain(u)
	case "mptcp":
		// The model that the paper used has no other scheduler.
		n.conn = u.Conn("roundrobin", "lia", "fullmesh")
	case "fsfs":
		n.conn = u.Conn("minrtt-plain", "lia", "flowsize")
	default:
		n.conn = u.Conn("minrtt-plain", "lia", "flowsize")
		n.placed = make(map[netip.Addr]int64)
		n.conn.PathManager = u.joins(pathmgr.FlowSize(pathmgr.FlowSizeConfig{Backlog: n.backlog}))
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

// backlog returns how long a part of what was placed on a path will take there.
func (n *fsfsNet) backlog(_, remote netip.Addr) time.Duration {
	return time.Duration(fsfsShare * float64(n.placed[remote]) * 8 / n.link * float64(time.Second))
}

// background begins so many long TCP flows on each path.
func (n *fsfsNet) background(u *Unit, flows int) error {
	conn := fsfsPlain(u)
	conn.Measure = true
	for i := range n.servers {
		srv, err := workload.NewServer(n.Sim, n.B, netip.AddrPortFrom(n.AddrB(i), 9), fsfsPlain(u))
		if err != nil {
			return err
		}
		for range flows {
			session, err := srv.Open(n.A, netip.AddrPortFrom(n.AddrA(i), 0), conn)
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
		p, ok := n.A.Host.Path(n.AddrA(i), n.AddrB(i))
		if rtt := p.SRTT + n.backlog(n.AddrA(i), n.AddrB(i)); ok && (least == 0 || rtt < least) {
			best, least = i, rtt
		}
	}
	return best
}

// send begins a flow on a path.
func (n *fsfsNet) send(f *workload.Flow, path int, done func()) {
	conn, remote := n.conn, n.AddrB(path)
	conn.FlowSize = f.Size
	counts := n.placed != nil && fsfsClass(f.Size) < fsfsLong
	if counts {
		n.placed[remote] += f.Size
	}
	n.servers[path].Send(n.A, netip.AddrPortFrom(n.AddrA(path), 0), conn, f, func(*workload.Flow) {
		if counts {
			n.placed[remote] -= f.Size
		}
		done()
	})
}

// fsfsPaths returns paths with round trips evenly spaced from 20 to 200 ms.
func fsfsPaths(u *Unit, n int, rate float64) []sim.Shape {
	var paths []sim.Shape
	for i := range n {
		rtt := 20*time.Millisecond + time.Duration(i)*180*time.Millisecond/time.Duration(max(n-1, 1))
		s := sim.Symmetric("", link.Config{
			Rate: rate, Delay: rtt / 2, QueueBytes: int(rate / 8 * 0.11), Overhead: sim.OverheadEthernet,
		})
		s.MTU = u.Profile.MTU()
		paths = append(paths, s)
	}
	return paths
}
