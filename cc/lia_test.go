package cc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// RFC 6356, equations (1) and (2); increases in segments for an ACK of one.
func TestLIAIncrease(t *testing.T) {
	tests := []struct {
		why   string
		paths []path
		want  []float64
	}{
		{"alpha 0.75", []path{{10, .1}, {20, .2}}, []float64{.025, .025}},
		{"alpha 1.5625; the second is capped", []path{{10, .02}, {30, .1}}, []float64{.0390625, 1. / 30}},
		{"three", []path{{4, .05}, {16, .1}, {9, .03}}, []float64{1e4 / 540 / 540, 1e4 / 540 / 540, 1e4 / 540 / 540}},
		{"equal", []path{{10, .1}, {10, .1}}, []float64{.025, .025}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			cs := coupled(t, "lia", tt.paths)
			cs[i].OnAck(tt.paths[i].sample(mss))
			near(t, want, segments(cs[i])-tt.paths[i].w, tt.why)
			for j, c := range cs {
				if j != i {
					require.Equal(t, tt.paths[j].w, segments(c), "%s: others stay", tt.why)
				}
			}
		}
	}
}

// What changes the coupling takes effect at the next ACK.
func TestLIARecomputesAlpha(t *testing.T) {
	paths := []path{{10, .1}, {10, .1}}
	grow := func(cs []cc.Controller, s *cc.Sample) float64 {
		before := segments(cs[0])
		cs[0].OnAck(s)
		return segments(cs[0]) - before
	}
	alone := path{10, .1}.sample(mss)

	t.Run("loss", func(t *testing.T) {
		cs := coupled(t, "lia", paths)
		grow(cs, alone)
		cs[1].OnLoss(cc.LossFast, flight(10))
		w := segments(cs[0])
		near(t, w/(w+5)/(w+5), grow(cs, alone), "the other has half its window")
	})
	t.Run("round trip", func(t *testing.T) {
		cs := coupled(t, "lia", paths)
		grow(cs, alone)
		s := path{10, .2}.sample(mss)
		s.Round = 1
		w := segments(cs[0])
		// max(w/T^2) / (sum w/T)^2 with T = 0.2 and 0.1.
		near(t, 1000/(w/.2+100)/(w/.2+100), grow(cs, s), "the RTT has doubled")
	})
	t.Run("join", func(t *testing.T) {
		g := group(t, "lia")
		cs := []cc.Controller{g.Add(avoiding(10)), g.Add(avoiding(10))}
		for _, c := range cs {
			c.OnAck(paths[0].sample(0))
		}
		near(t, .025, grow(cs, alone), "two")
		c := g.Add(avoiding(20))
		c.OnAck(path{20, .1}.sample(0))
		w := segments(cs[0])
		near(t, 20/(w+30)/(w+30), grow(cs, alone), "three")
	})
	t.Run("timeout", func(t *testing.T) {
		cs := coupled(t, "lia", paths)
		cs[1].OnLoss(cc.LossTimeout, flight(10))
		cs[0].OnAck(path{10, .1}.sample(10 * mss))
		near(t, 11, segments(cs[0]), "with the other failed this one is Reno")
	})
}

// RFC 6356, Section 3: an application-limited subflow counts by what it has
// in flight.
func TestLIACountsFlightOfIdleSubflow(t *testing.T) {
	paths := []path{{10, .1}, {100, .1}}
	cs := coupled(t, "lia", paths)
	idle := path{100, .1}.sample(mss)
	idle.CwndLimited, idle.InFlight = false, 9*mss
	cs[1].OnAck(idle)
	cs[0].OnAck(paths[0].sample(mss))
	near(t, 10.025, segments(cs[0]), "as two windows of ten")
}
