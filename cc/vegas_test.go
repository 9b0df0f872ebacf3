package cc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// trips gives a controller ACKs of an RTT that make up a round trip, and
// begins the next one.
func trip(c cc.Controller, round uint64, now, rtt time.Duration) {
	for i := range 5 {
		s := ack(0)
		s.Acked, s.Delivered = mss, mss
		s.Now, s.RTT, s.SRTT, s.Round = now, rtt, rtt, round
		s.InFlight = int(c.State().Cwnd)
		if i == 4 {
			s.Round++
		}
		c.OnAck(s)
	}
}

const (
	baseRTT = 100 * time.Millisecond
	fullRTT = 125 * time.Millisecond
)

// A window of 40 at RTTs of 125 ms over 100 ms queues 8 segments.
func TestVegas(t *testing.T) {
	for _, tt := range []struct {
		why         string
		alpha, beta float64
		want        float64
	}{
		{"more than beta", 2, 4, 39},
		{"less than alpha", 9, 12, 41},
		{"between", 4, 9, 40},
	} {
		c := cc.Vegas{Alpha: tt.alpha, Beta: tt.beta}.Group().Add(avoiding(39))
		trip(c, 0, time.Second, baseRTT) // learns the least RTT and adds one
		require.Equal(t, 40.0, segments(c), tt.why)
		trip(c, 1, time.Second+baseRTT, fullRTT)
		require.Equal(t, tt.want, segments(c), tt.why)
	}
}

// In slow start a queue of more than one segment ends it, at the window that
// fills the path.
func TestVegasLeavesSlowStart(t *testing.T) {
	c := group(t, "vegas").Add(cc.Params{MSS: mss, InitialWindow: 30 * mss})
	trip(c, 0, time.Second, baseRTT)
	require.Equal(t, 35.0, segments(c), "slow start")
	trip(c, 1, time.Second+baseRTT, fullRTT)
	require.Equal(t, 33.0, segments(c), "floor(40*100/125) + 1")
	require.Equal(t, 32.0, threshold(c))
}

// A round trip with recovery in it tells nothing, nor one with two RTTs only.
func TestVegasNeedsCleanRoundTrips(t *testing.T) {
	c := group(t, "vegas").Add(avoiding(39))
	s := ack(mss)
	s.RTT, s.InRecovery = baseRTT, true
	c.OnAck(s)
	trip(c, 0, time.Second, baseRTT)
	require.Equal(t, 39.0, segments(c))
	for i := range 2 {
		s := ack(mss)
		s.RTT, s.Round = baseRTT, uint64(1+i)
		c.OnAck(s)
	}
	require.Equal(t, 39.0, segments(c))
}

// After idleness the route may be longer: the least RTT is learnt anew.
func TestVegasLearnsRTTAnew(t *testing.T) {
	c := group(t, "vegas").Add(avoiding(39))
	trip(c, 0, time.Second, baseRTT)
	s := ack(mss)
	s.RTT, s.Round = baseRTT, 1
	c.OnAck(s) // nothing is in flight
	trip(c, 1, 2*time.Second, fullRTT)
	require.Equal(t, 41.0, segments(c), "no queue is seen")
}

// Of 10 segments a path of half the rate may queue 5: 8 are too many. The
// draft's example: weight 0.5, alpha 5, 39.
func TestWVegasWeights(t *testing.T) {
	g := group(t, "wvegas")
	cs := []cc.Controller{g.Add(avoiding(39)), g.Add(avoiding(39))}
	for i, c := range cs {
		trip(c, 0, time.Second, baseRTT)
		require.Equal(t, 40.0, segments(c), "%d", i)
	}
	trip(cs[0], 1, 2*time.Second, fullRTT) // alone known: weight 1, 10 segments
	require.Equal(t, 41.0, segments(cs[0]))
	trip(cs[1], 1, 2*time.Second, fullRTT) // 40/.125 and 40/.125
	require.Equal(t, 39.0, segments(cs[1]))
}

// Once the queueing delay has doubled the queue is drained: from 40 segments
// at 125 ms over 100 ms to 40 * 100/250 = 16.
func TestVegasDrains(t *testing.T) {
	c := cc.Vegas{Alpha: 7, Beta: 9, Drain: true}.Group().Add(avoiding(38))
	trip(c, 0, time.Second, baseRTT)
	trip(c, 1, time.Second, 110*time.Millisecond) // queues 3.5
	require.Equal(t, 40.0, segments(c))
	trip(c, 2, 2*time.Second, fullRTT) // queues 8, delay 25 ms after 10
	near(t, 16, segments(c), "drained")
}
