package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/sim"
)

// Overheads of Ethernet in bytes a packet, and what full segments of 1500
// bytes then carry of a link's rate: 1448 bytes with timestamps, 1428 with
// timestamps and a DSS option of 20 bytes.
const (
	tcpShare   = 1448.0 / (1500 + sim.OverheadEthernet)
	mptcpShare = 1428.0 / (1500 + sim.OverheadEthernet)
)

// unbounded is more than any simulation transfers, in bytes.
const unbounded = 1 << 50

// Goodput runs a simulation for a time to warm up and another to measure, and
// returns the rate of received in the latter, in Mb/s.
func Goodput(s *sim.Sim, received func() int64, warm, measure time.Duration) float64 {
	s.RunFor(warm)
	before := received()
	s.RunFor(measure)
	return float64(received()-before) * 8 / measure.Seconds() / 1e6
}
