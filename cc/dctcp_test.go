package cc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// window gives a controller one window of data, of which a share was marked,
// and begins the next one.
func window(c cc.Controller, round uint64, share float64) {
	for i := range 10 {
		s := ack(mss)
		s.Round, s.CwndLimited = round, false
		if i == 9 {
			s.Round++
		}
		s.InFlight, s.ECN = 100*mss, true
		if float64(i) < share*10 {
			s.Marked = mss
		}
		c.OnAck(s)
	}
}

// RFC 8257, Section 3.3, with g = 1/16: shares of 0, 0 and 0.5 take alpha from
// 1 to 0.9375, 0.87890625 and 0.855224609375. A mark shows it.
func TestDCTCPAlpha(t *testing.T) {
	marked := func(shares ...float64) float64 {
		c := group(t, "dctcp").Add(avoiding(100))
		for i, share := range shares {
			window(c, uint64(i), share)
		}
		c.OnLoss(cc.LossECN, flight(100))
		return segments(c)
	}
	for _, tt := range []struct {
		alpha  float64
		shares []float64
	}{
		{1, nil},
		{.9375, []float64{0}},
		{.87890625, []float64{0, 0}},
		{.855224609375, []float64{0, 0, .5}},
	} {
		near(t, 100*(1-tt.alpha/2), marked(tt.shares...), "alpha shows in the cut")
	}
	none := make([]float64, 2000)
	require.InDelta(t, 100, marked(none...), 1e-9, "it decays to nothing")
}

// "cwnd = cwnd * (1 - DCTCP.Alpha / 2)": alpha 0.2, a window of 100, 90 left.
// The gain is a parameter.
func TestDCTCPCut(t *testing.T) {
	c := cc.DCTCP{G: 1}.Group().Add(avoiding(100))
	window(c, 0, .2)
	c.OnLoss(cc.LossECN, flight(50))
	near(t, 90, segments(c), "of cwnd, whatever is in flight")
	near(t, 90, threshold(c), "out of slow start")
	for range 100 {
		c.OnLoss(cc.LossECN, flight(1))
	}
	require.Equal(t, 2.0, segments(c), "two segments at least")
	c.OnLoss(cc.LossTimeout, flight(2))
	require.Equal(t, 1.0, segments(c))
}

// Section 3.3, step 1: SACK is not counted.
func TestDCTCPIgnoresSACK(t *testing.T) {
	c := cc.DCTCP{G: 1}.Group().Add(avoiding(100))
	s := ack(mss)
	c.OnAck(s)
	s = ack(0)
	s.Delivered, s.Marked = mss, mss
	c.OnAck(s)
	s = ack(0)
	s.Round = 1
	c.OnAck(s)
	c.OnLoss(cc.LossECN, flight(100))
	near(t, 100, segments(c), "no marked byte was acknowledged cumulatively")
}
