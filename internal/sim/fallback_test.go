package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// strip is a middlebox that removes options from the segments that match.
func strip(opts wire.OptionSet, match func(*wire.Segment) bool) sim.Box {
	return func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if match(seg) {
			seg.Has &^= opts
		}
		forward(seg)
	}
}

func isSYN(seg *wire.Segment) bool { return seg.Flags.Has(wire.SYN) }

func isAny(*wire.Segment) bool { return true }

func TestFallback(t *testing.T) {
	notSYN := func(seg *wire.Segment) bool { return !isSYN(seg) }
	for _, tt := range []struct {
		name           string
		plainA, plainB bool
		boxAB, boxBA   sim.Box
		wantA, wantB   reason.Fallback
	}{
		{name: "plain client", plainA: true, wantA: reason.FallbackRequested, wantB: reason.FallbackPeerSYN},
		{name: "plain server", plainB: true, wantA: reason.FallbackPeerSYNACK, wantB: reason.FallbackRequested},
		{name: "plain peers", plainA: true, plainB: true, wantA: reason.FallbackRequested, wantB: reason.FallbackRequested},
		{
			name: "syn stripped", boxAB: strip(wire.OptMPTCP, isSYN),
			wantA: reason.FallbackPeerSYNACK, wantB: reason.FallbackPeerSYN,
		},
		{
			name: "syn/ack stripped", boxBA: strip(wire.OptMPTCP, isSYN),
			wantA: reason.FallbackPeerSYNACK, wantB: reason.FallbackThirdACK,
		},
		{
			name: "all but syn stripped from A", boxAB: strip(wire.OptMPTCP, notSYN),
			// The first that A hears of it is B's data, without mapping.
			wantA: reason.FallbackNoMapping, wantB: reason.FallbackThirdACK,
		},
		{
			name: "all stripped", boxAB: strip(wire.OptMPTCP, isAny), boxBA: strip(wire.OptMPTCP, isAny),
			wantA: reason.FallbackPeerSYNACK, wantB: reason.FallbackPeerSYN,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sim.TwoHosts(sim.PairConfig{Seed: 21, Paths: fastAndSlow()})
			p.Links[0].AB.SetBox(tt.boxAB)
			p.Links[0].BA.SetBox(tt.boxBA)
			a, b := sim.DefaultConn(), sim.DefaultConn()
			a.Plain, b.Plain = tt.plainA, tt.plainB
			tr := p.Start(sim.TransferConfig{AB: 2 * mib, BA: mib, ConnA: a, ConnB: b})
			finish(t, p, tr, time.Minute)
			require.Equal(t, tt.wantA, tr.ConnA.Fallback())
			require.Equal(t, tt.wantB, tr.ConnB.Fallback())
			require.Equal(t, reason.CloseDone, tr.ConnA.Err())
			require.Equal(t, reason.CloseDone, tr.ConnB.Err())
			require.Zero(t, p.Links[1].AB.Stats().Packets, "plain TCP has one path")
		})
	}
}

// A path that loses SYNs with MP_CAPABLE is used with plain TCP in the end.
func TestSYNsWithMPTCPAreLost(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 22, Paths: fastAndSlow()})
	p.Links[0].AB.SetBox(func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if !isSYN(seg) || seg.Has&wire.OptMPCapable == 0 {
			forward(seg)
		}
	})
	tr := p.Start(sim.TransferConfig{AB: mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, time.Minute)
	require.Equal(t, reason.FallbackSYNTimeout, tr.ConnA.Fallback())
}

// Options that do not pass a second path keep it from being used, no more.
func TestJoinIsStripped(t *testing.T) {
	for _, dir := range []int{0, 1} {
		p := sim.TwoHosts(sim.PairConfig{Seed: 23, Paths: fastAndSlow()})
		box := strip(wire.OptMPTCP, isAny)
		if dir == 0 {
			p.Links[1].AB.SetBox(box)
		} else {
			p.Links[1].BA.SetBox(box)
		}
		tr := p.Start(sim.TransferConfig{AB: 2 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		finish(t, p, tr, time.Minute)
		require.True(t, tr.ConnA.IsMPTCP())
		require.Zero(t, p.Links[1].AB.Stats().ArrivedBytes)
	}
}

// vanish runs a transfer whose options are taken away from a time on, but for
// those of SYNs, in the directions given by name.
func vanish(seed uint64, dir string, from time.Duration, loss float64, cfg sim.TransferConfig) (*sim.Pair, *sim.Transfer) {
	shapes := fastAndSlow()[:1]
	shapes[0].AB.Loss, shapes[0].BA.Loss = loss, loss
	p := sim.TwoHosts(sim.PairConfig{Seed: seed, Paths: shapes})
	box := strip(wire.OptMPTCP, func(seg *wire.Segment) bool { return !isSYN(seg) && p.Elapsed() >= from })
	if dir != "BA" {
		p.Links[0].AB.SetBox(box)
	}
	if dir != "AB" {
		p.Links[0].BA.SetBox(box)
	}
	cfg.ConnA, cfg.ConnB = sim.DefaultConn(), sim.DefaultConn()
	return p, p.Start(cfg)
}

// RFC 8684, Section 3.7: "These rules should cover all cases where such a
// failure could happen -- whether it's on the forward or reverse path and
// whether the server or the client first sends data."
func TestOptionsPassOnSYNsOnly(t *testing.T) {
	for _, dir := range []string{"AB", "BA", "AB and BA"} {
		for _, size := range []sim.TransferConfig{
			{AB: 3000}, {BA: 3000}, {AB: 3000, BA: 3000}, {AB: mib}, {BA: mib}, {AB: mib, BA: mib},
		} {
			t.Run(fmt.Sprintf("%s %d %d", dir, size.AB, size.BA), func(t *testing.T) {
				p, tr := vanish(24, dir, 0, 0, size)
				finish(t, p, tr, time.Minute)
				require.NotEqual(t, reason.FallbackNone, tr.ConnA.Fallback())
				require.NotEqual(t, reason.FallbackNone, tr.ConnB.Fallback())
			})
		}
	}
}

// A path that begins to lose options in the middle may cost the connection,
// but never a wrong byte, and it never hangs.
func TestOptionsStopPassing(t *testing.T) {
	for _, dir := range []string{"AB", "BA", "AB and BA"} {
		for _, size := range []sim.TransferConfig{
			{AB: 40_000}, {BA: 40_000}, {AB: 40_000, BA: 40_000}, {AB: mib}, {BA: mib}, {AB: mib, BA: mib},
		} {
			t.Run(fmt.Sprintf("%s %d %d", dir, size.AB, size.BA), func(t *testing.T) {
				for seed := uint64(1); seed <= 5; seed++ {
					for _, from := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond} {
						p, tr := vanish(seed, dir, from, 0.02*float64(seed%2), size)
						ended := p.RunUntil(20*time.Minute, tr.Ended)
						require.Empty(t, p.Violations())
						require.True(t, ended, "seed %d, from %v: A %+v, B %+v", seed, from, tr.ConnA.Info(), tr.ConnB.Info())
					}
				}
			})
		}
	}
}
