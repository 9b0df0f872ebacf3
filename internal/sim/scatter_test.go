package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Of segments of 1460 bytes 68 lie within the first 100,000 bytes, 99,280 in
// all; the 69th crosses them, and the 70th is the first one of a later subflow.
func TestScatterPhases(t *testing.T) {
	const mss = 1460
	conn := sim.Scatter{Paths: 16}.Conn(sim.DefaultConn())
	require.Equal(t, 16, conn.Subflow.DupThresh)
	s := conn.Scheduler()
	v := scheduler.View{Ask: scheduler.Fresh, Run: 1 << 20, Unsent: 1 << 20, SendWindow: 1 << 20, SendBuffer: 1 << 20}
	for id := range 9 {
		v.Subflows = append(v.Subflows, scheduler.Subflow{ID: id, MSS: mss, Room: 1 << 20, Cwnd: 1 << 20, SRTT: time.Duration(9-id) * time.Millisecond})
	}
	for segment := int64(1); segment <= 80; segment++ {
		v.First = (segment - 1) * mss
		d := s.Pick(&v)
		if segment <= 69 {
			require.Equal(t, uint64(1), d.Send, "segment %d", segment)
			require.Equal(t, (70-segment)*mss, int64(d.Bytes), "up to the 69th")
			continue
		}
		require.Equal(t, uint64(1)<<8, d.Send, "segment %d", segment)
	}
	require.Equal(t, 99_280, 68*mss)
	require.Less(t, 68*mss, sim.ScatterBytes)
	require.Greater(t, 69*mss, sim.ScatterBytes)

	// Nobody but the first to send on: it goes on.
	v.Subflows = v.Subflows[:1]
	require.Equal(t, uint64(1), s.Pick(&v).Send)
	// The first one full in the first phase: wait for it, whoever has room.
	v.First, v.Subflows = 0, v.Subflows[:9]
	v.Subflows[0].Room = 0
	require.True(t, s.Pick(&v).Wait)
}

// In a fat tree the packets of the first phase take every way, and a long flow
// goes on over eight more subflows; nothing is taken as lost for having been
// reordered.
func TestScatterInAFatTree(t *testing.T) {
	shape := sim.Symmetric("", link.Config{Rate: 100e6, Delay: 20 * time.Microsecond, QueueBytes: 4 << 20, Overhead: sim.OverheadEthernet})
	for _, size := range []int64{70_000, 4 << 20} {
		net := sim.NewFatTree(sim.FatTreeConfig{Seed: 7, K: 4, Link: shape, Host: host.Config{}})
		scattered := sim.FirstSubflows{}
		for _, r := range append(net.Edge, net.Aggregation...) {
			r.Spray(scattered.Has)
		}
		conn := sim.Scatter{Paths: 4}.Conn(sim.DefaultConn())
		tr := net.StartTransfer(net.Hosts[0], net.Hosts[15], sim.TransferConfig{
			AB: size, ConnA: conn, ConnB: conn, To: netip.AddrPortFrom(net.Addr(15), 80),
		})
		scattered.Add(tr.ConnA)
		require.True(t, net.RunUntil(time.Minute, tr.Delivered))
		require.Empty(t, net.Violations())
		for _, f := range tr.ConnA.AppendSubflows(nil) {
			require.Zero(t, f.TCP.Recoveries)
			require.Zero(t, f.TCP.Timeouts)
			require.LessOrEqual(t, f.TCP.SegsRetransmitted, f.TCP.Probes, "but for probes of the tail")
		}
		used := 0
		for _, l := range net.FabricLinks {
			if l.AB.Stats().ArrivedBytes > 10_000 {
				used++
			}
		}
		// Up from the edge by both links, and from both aggregations by two.
		require.Equal(t, 6, used, "%d", size)
		flows := tr.ConnA.AppendSubflows(nil)
		if size <= sim.ScatterBytes {
			require.Len(t, flows, 1)
			continue
		}
		require.Len(t, flows, 9)
		require.Less(t, flows[0].TCP.BytesSent, uint64(sim.ScatterBytes+4*1460), "no new data in the second phase")
	}
}
