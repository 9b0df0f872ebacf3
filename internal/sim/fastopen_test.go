package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// dataOnSYN matches SYNs with payload.
func dataOnSYN(seg *wire.Segment) bool { return sim.IsSYN(seg) && seg.PayloadLen() > 0 }

// takeSYNData takes the payload off outgoing SYNs.
var takeSYNData = sim.Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	if sim.IsSYN(seg) {
		seg.Payload, seg.Blocks = nil, nil
	}
	forward(seg)
}}

// Every box that may meet a fast open, with MPTCP, with checksums and on plain
// TCP: all bytes arrive, what went along with the SYN is what the box let pass,
// and the next connection knows.
func TestFastOpenMiddleboxes(t *testing.T) {
	hasOption := func(seg *wire.Segment) bool { return seg.Has&wire.OptFastOpen != 0 }
	for name, c := range map[string]struct {
		inside sim.End
		box    sim.Middlebox
		taken  bool // the data on the SYN arrives
		again  bool // and the next connection tries it, too
	}{
		"none":                        {sim.EndA, sim.Middlebox{}, true, true},
		"drops SYNs with the option":  {sim.EndA, sim.Drop(hasOption), false, false},
		"drops SYNs with data":        {sim.EndA, sim.Drop(dataOnSYN), false, false},
		"takes the option off SYNs":   {sim.EndA, sim.Strip(wire.OptFastOpen, sim.IsSYN), false, false},
		"takes the data off SYNs":     {sim.EndA, takeSYNData, false, false},
		"takes it off SYN/ACKs":       {sim.EndB, sim.Strip(wire.OptFastOpen, sim.IsSYN), true, true},
		"takes MPTCP off SYNs":        {sim.EndA, sim.Strip(wire.OptMPTCP, sim.IsSYN), true, true},
		"takes MPTCP off SYN/ACKs":    {sim.EndB, sim.Strip(wire.OptMPTCP, sim.IsSYN), true, true},
		"takes MPTCP off third ACKs":  {sim.EndA, sim.Strip(wire.OptMPTCP, sim.IsThirdACK()), true, true},
		"drops SYNs with any unknown": {sim.EndA, sim.Drop(sim.HasUnknown), false, false},
	} {
		for _, kind := range []string{"mptcp", "checksum", "plain"} {
			t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) {
				cfg := sim.DefaultConn()
				cfg.FastOpen, cfg.Plain, cfg.Checksum = true, kind == "plain", kind == "checksum"
				p := sim.TwoHosts(sim.PairConfig{Seed: 7, Paths: fastAndSlow()})
				visit := func(port uint16) *sim.Transfer {
					tr := p.StartOn(port, sim.TransferConfig{AB: 100_000, BA: 100_000, ConnA: cfg, ConnB: cfg})
					require.True(t, p.RunUntil(5*time.Minute, tr.Ended), "port %d", port)
					require.True(t, tr.Delivered())
					require.Equal(t, reason.CloseDone, tr.ProgramA.Close)
					require.Equal(t, reason.CloseDone, tr.ProgramB.Close)
					require.Equal(t, tr.ConnA.Info().SYNData, tr.ConnB.Info().SYNData)
					return tr
				}
				require.Zero(t, visit(1).ConnA.Info().SYNData)
				p.Links[0].Insert(c.inside, c.box)
				unknown := name == "drops SYNs with any unknown" && kind == "plain"
				second := visit(2)
				require.Equal(t, c.taken || unknown, second.ConnA.Info().SYNData > 0)
				p.B.Close(second.Listener)
				third := visit(2)
				require.Equal(t, c.again || unknown, third.ConnA.FastOpened().Asked)
				require.Equal(t, c.again || unknown, third.ConnA.Info().SYNData > 0)
				require.Empty(t, p.Violations())
			})
		}
	}
}

// The answer to a request that fits on the SYN arrives after one round trip, on a
// link without a rate exactly.
func TestFastOpenZeroRTT(t *testing.T) {
	cfg := sim.DefaultConn()
	cfg.FastOpen = true
	p := sim.TwoHosts(sim.PairConfig{Seed: 1, Paths: []sim.Shape{symmetric(link.Config{Delay: 30 * time.Millisecond})}})
	for i, want := range []time.Duration{120 * time.Millisecond, 60 * time.Millisecond, 60 * time.Millisecond} {
		start := p.Elapsed()
		tr := p.StartOn(uint16(i+1), sim.TransferConfig{AB: 300, BA: 300, ConnA: cfg, ConnB: cfg, StayOpen: true})
		require.True(t, p.RunUntil(time.Minute, tr.Delivered))
		require.Equal(t, want, p.Elapsed()-start)
		require.Equal(t, i > 0, tr.ConnA.Info().SYNData == 300)
	}
}
