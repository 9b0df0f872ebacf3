package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

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
