package cc

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RFC 9406, Section 4.2: an eighth of the last round's least RTT, between 4
// and 16 ms.
func TestHystartThreshold(t *testing.T) {
	require.Equal(t, 5*time.Millisecond, rttThresh(40*time.Millisecond))
	require.Equal(t, 16*time.Millisecond, rttThresh(200*time.Millisecond))
	require.Equal(t, 4*time.Millisecond, rttThresh(20*time.Millisecond))
}

// round gives a controller one round trip of n full ACKs with one RTT.
func hystartRound(c Controller, round uint64, n int, rtt time.Duration) {
	for range n {
		c.OnAck(&Sample{
			Now: time.Duration(round) * rtt, RTT: rtt, SRTT: rtt, MinRTT: rtt, MSS: 1000,
			Acked: 1000, Delivered: 1000, CwndLimited: true, Round: round, InFlight: 10000,
		})
	}
}

// A round that is 5 ms longer than one of 40 ms slows growth to a quarter; one
// that is a microsecond shorter does not.
func TestHystartTrigger(t *testing.T) {
	for rtt, want := range map[time.Duration]float64{
		45 * time.Millisecond:     (7 + 3.0/4) * 1000,
		44_999 * time.Microsecond: 10 * 1000,
	} {
		c := newCubic(Params{MSS: 1000})
		hystartRound(c, 1, 10, 40*time.Millisecond)
		before := c.State().Cwnd
		hystartRound(c, 2, 10, rtt)
		require.InDelta(t, want, c.State().Cwnd-before, 1e-9, "%v", rtt)
	}
}

// Five rounds of CSS end slow start without a loss.
func TestHystartEnds(t *testing.T) {
	c := newCubic(Params{MSS: 1000})
	hystartRound(c, 1, 10, 40*time.Millisecond)
	for r := uint64(2); r <= 6; r++ {
		hystartRound(c, r, 10, 60*time.Millisecond)
		require.True(t, math.IsInf(c.State().Ssthresh, 1), "round %d", r)
	}
	hystartRound(c, 7, 1, 60*time.Millisecond)
	require.Equal(t, c.State().Cwnd, c.State().Ssthresh)
}

// A shorter round takes the decision back.
func TestHystartResumes(t *testing.T) {
	c := newCubic(Params{MSS: 1000})
	hystartRound(c, 1, 10, 40*time.Millisecond)
	hystartRound(c, 2, 10, 60*time.Millisecond)
	hystartRound(c, 3, 10, 41*time.Millisecond)
	before := c.State().Cwnd
	hystartRound(c, 4, 10, 41*time.Millisecond)
	require.InDelta(t, 10_000, c.State().Cwnd-before, 1e-9)
}

// An ACK for many segments opens the window by eight at most.
func TestHystartLimit(t *testing.T) {
	c := newCubic(Params{MSS: 1000})
	before := c.State().Cwnd
	c.OnAck(&Sample{Now: 1, RTT: time.Millisecond, MSS: 1000, Acked: 40_000, CwndLimited: true, Round: 1})
	require.InDelta(t, 8000, c.State().Cwnd-before, 1e-9)
}
