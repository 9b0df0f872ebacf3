package bench

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// tenPaths are ten paths of 100 Mb/s with round trips of 20 to 200 ms.
func tenPaths() []sim.Shape {
	var paths []sim.Shape
	for i := range 10 {
		rtt := time.Duration(20+20*i) * time.Millisecond
		paths = append(paths, sim.Symmetric("", link.Config{Rate: 100e6, Delay: rtt / 2, Overhead: sim.OverheadEthernet}))
	}
	return paths
}

// forever is more than any benchmark sends.
const forever = 1 << 50

// BenchmarkSimulatorOneConnection saturates ten paths of 100 Mb/s by one connection.
func BenchmarkSimulatorOneConnection(b *testing.B) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 1, Fast: true, Paths: tenPaths()})
	conn := sim.DefaultConn()
	conn.Limits = pathmgr.Limits{Subflows: 10, Accepted: 10}
	t := p.Start(sim.TransferConfig{AB: forever, ConnA: conn, ConnB: conn})
	measureEvents(b, p.Sim, func() int64 { return t.ProgramB.Received })
}

// BenchmarkSimulatorThousands saturates ten paths of 100 Mb/s by two thousand
// connections, each a plain one on one path or a multipath one on all.
func BenchmarkSimulatorThousands(b *testing.B) {
	const plain, multi = 1900, 100
	p := sim.TwoHosts(sim.PairConfig{Seed: 1, Fast: true, Paths: tenPaths()})
	var all []*sim.Transfer
	for i := range plain + multi {
		conn, to := sim.DefaultConn(), netip.AddrPortFrom(p.AddrB(i%10), uint16(1000+i))
		if i < plain {
			conn.Plain = true
		} else {
			conn.Limits = pathmgr.Limits{Subflows: 10, Accepted: 10}
		}
		all = append(all, p.StartTransfer(p.A, p.B, sim.TransferConfig{AB: forever, To: to, ConnA: conn, ConnB: conn}))
	}
	measureEvents(b, p.Sim, func() (n int64) {
		for _, t := range all {
			n += t.ProgramB.Received
		}
		return n
	})
}

// measureEvents runs the simulation for a second of virtual time an iteration,
// after ten to warm up. Events are counted as Sim.Events says, and divided by
// the processor time of the whole process, the garbage collector included.
func measureEvents(b *testing.B, s *sim.Sim, received func() int64) {
	s.RunFor(10 * time.Second)
	before, bytes, from := s.Events(), received(), s.Elapsed()
	b.ReportAllocs()
	cpu := cpuTime()
	for b.Loop() {
		s.RunFor(time.Second)
	}
	b.ReportMetric(float64(s.Events()-before)/(cpuTime()-cpu).Seconds(), "events/cpu-s")
	b.ReportMetric(float64(received()-bytes)*8/1e6/(s.Elapsed()-from).Seconds(), "Mb/s")
	if len(s.Violations()) > 0 {
		b.Fatal(s.Violations())
	}
}
