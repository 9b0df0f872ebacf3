package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// ECN end to end over two paths whose queues mark beyond 20 packets: both ends
// use it because the congestion control asks for it, what is marked is what the
// receiver sees and, to the bytes of a delayed ACK, what the sender hears, and
// nothing is lost.
func TestQueuesThatMark(t *testing.T) {
	for _, name := range []string{"dctcp", "xmp", "mdtcp", "lia-dctcp", "mptcpd"}[:few(5)] {
		l := link.Config{Rate: 100e6, Delay: time.Millisecond, QueueBytes: 250 * 1500, MarkBytes: 20 * 1500}
		p := sim.TwoHosts(sim.PairConfig{Seed: 1, Paths: []sim.Shape{{AB: l, BA: l}, {AB: l, BA: l}}})
		conn := sim.ConnWith("", name, "")
		tr := p.Start(sim.TransferConfig{AB: 8 << 20, ConnA: conn, ConnB: conn, StayOpen: true})
		p.RunFor(2 * time.Second)
		require.True(t, tr.Delivered(), name)
		require.Empty(t, p.Violations(), name)
		marked := uint64(0)
		for _, l := range p.Links {
			st := l.AB.Stats()
			require.Zero(t, st.Drops[link.DropQueue], name)
			require.Positive(t, st.Marked, name)
			marked += st.Marked
		}
		seen, bytes, heard := uint64(0), uint64(0), uint64(0)
		for _, s := range tr.ConnB.AppendSubflows(nil) {
			seen += s.TCP.CEPackets
			bytes += s.TCP.CEBytes
		}
		for _, s := range tr.ConnA.AppendSubflows(nil) {
			heard += s.TCP.BytesMarked
			require.Zero(t, s.TCP.Recoveries+s.TCP.Timeouts, name)
		}
		require.InDelta(t, float64(marked), float64(seen), 8, "%s: a SYN or FIN may be marked, too", name)
		require.InEpsilon(t, float64(bytes), float64(heard), .1, name)
	}
}
