package sim_test

import (
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
