package cc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// RFC 5681, Section 3.1: "When the number of bytes acknowledged reaches cwnd,
// then cwnd can be incremented by up to SMSS bytes".
func TestRenoAvoidance(t *testing.T) {
	c := group(t, "reno").Add(avoiding(10))
	for range 9 {
		c.OnAck(ack(mss))
	}
	require.Equal(t, 10_000.0, c.State().Cwnd, "before the whole window is acknowledged")
	c.OnAck(ack(mss))
	require.Equal(t, 11_000.0, c.State().Cwnd)

	c.OnAck(ack(100 * mss))
	require.Equal(t, 12_000.0, c.State().Cwnd, "an ACK of more than the window is one step")
}

// Mathis et al., "The macroscopic behavior of the TCP congestion avoidance
// algorithm": the mean window at loss rate p is sqrt(3/(2p)), 38.7 at 1e-3.
func TestRenoResponse(t *testing.T) {
	c := group(t, "reno").Add(avoiding(10))
	require.InEpsilon(t, 38.7, saw(c, 100*time.Millisecond, 1000, 30), 0.1)
}

// A reduction ends what was counted towards the next step.
func TestRenoCountsAnewAfterLoss(t *testing.T) {
	c := group(t, "reno").Add(avoiding(20))
	c.OnAck(ack(19 * mss))
	c.OnLoss(cc.LossFast, flight(20))
	c.OnAck(ack(mss))
	require.Equal(t, 10.0, segments(c))
}
