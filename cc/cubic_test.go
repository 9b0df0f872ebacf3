package cc_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

const (
	rtt   = 100 * time.Millisecond
	start = 10 * time.Second
)

// cubicAt is a CUBIC flow of window 100 after a loss, whose stage began at
// start with W_max = 100 and cwnd_epoch = 70.
func cubicAt(t *testing.T) cc.Controller {
	c := group(t, "cubic").Add(avoiding(100))
	c.OnLoss(cc.LossFast, flight(100))
	require.InDelta(t, 70, segments(c), 1e-9)
	c.OnAck(at(start, 1))
	return c
}

// at is an ACK at an instant; one that acknowledges the whole window moves
// cwnd to the target.
func at(now time.Duration, bytes int) *cc.Sample {
	s := ack(bytes)
	s.Now, s.SRTT, s.InFlight = now, rtt, 1
	return s
}

// whole acknowledges a whole window at an instant.
func whole(c cc.Controller, now time.Duration) { c.OnAck(at(now, 1+int(c.State().Cwnd))) }

// RFC 9438, Figures 1 and 2, with W_max 100 and cwnd_epoch 70: K is the cube
// root of 75. The target is the curve one round trip ahead.
func TestCubicCurve(t *testing.T) {
	k := math.Cbrt(75)
	require.InDelta(t, 4.217163, k, 1e-6)
	tests := []struct{ t, want, digits float64 }{
		{1, 100 - 0.4*math.Pow(k-1, 3), 86.6808},
		{2, 100 - 0.4*math.Pow(k-2, 3), 95.6403},
		{k, 100, 100},
		{k + 2, 103.2, 103.2},
	}
	for _, tt := range tests {
		require.InDelta(t, tt.digits, tt.want, 5e-5)
		c := cubicAt(t)
		when := start + time.Duration(tt.t*float64(time.Second)) - rtt
		whole(c, when)
		// Time is in whole nanoseconds and the ACK that began the stage
		// brought a thousandth of the first step.
		require.InDelta(t, tt.want, segments(c), 1e-7, "W(%v)", tt.t)
	}
}

// RFC 9438, Section 4.4: one ACK of one segment moves cwnd by
// (target-cwnd)/cwnd segments.
func TestCubicStep(t *testing.T) {
	c := cubicAt(t)
	before := segments(c)
	s := at(start+time.Second, mss)
	s.SRTT = time.Second
	c.OnAck(s)
	target := 100 - 0.4*math.Pow(math.Cbrt(75)-2, 3)
	near(t, before+(target-before)/before, segments(c), "concave region")
}

// RFC 9438, Section 4.2: the target is at most 1.5 times cwnd.
func TestCubicTargetBound(t *testing.T) {
	c := cubicAt(t)
	before := segments(c)
	whole(c, start+time.Minute)
	near(t, 1.5*before, segments(c), "far in the convex region")
}

// RFC 9438, Section 4.7: a loss below W_max lowers W_max further.
func TestCubicFastConvergence(t *testing.T) {
	c := cubicAt(t)
	c.OnLoss(cc.LossFast, flight(70))
	near(t, 49, math.Round(segments(c)*1e6)/1e6, "window")
	// W_max = 70 * 0.85 = 59.5 and cwnd_epoch = 49: K^3 = 10.5/0.4.
	k := math.Cbrt(26.25)
	c.OnAck(at(start+time.Second, 1))
	whole(c, start+time.Second+time.Duration(k*float64(time.Second))-rtt)
	require.InDelta(t, 59.5, segments(c), 1e-2, "the plateau")
}

// RFC 9438, Section 4.3: with a short RTT the window follows W_est, which
// grows by alpha_cubic = 9/17 segments a window until it has reached
// cwnd_prior, then by one.
func TestCubicRenoFriendly(t *testing.T) {
	c := group(t, "cubic").Add(avoiding(10))
	c.OnLoss(cc.LossFast, flight(10))
	now, west := start, 7.0
	for range 20 {
		alpha := 9.0 / 17
		if west >= 10 {
			alpha = 1
		}
		s := at(now, int(math.Ceil(c.State().Cwnd)))
		s.SRTT = time.Millisecond
		c.OnAck(s)
		west += alpha
		now += time.Millisecond
		if now > start+time.Millisecond {
			near(t, west, segments(c), "W_est")
		}
	}
	require.Greater(t, west, 20.0)
}

// RFC 9438, Section 4.8: the stage after a timeout starts on the plateau,
// with K = 0 and W_max = cwnd_epoch.
func TestCubicAfterTimeout(t *testing.T) {
	c := group(t, "cubic").Add(avoiding(100))
	c.OnLoss(cc.LossTimeout, flight(100))
	require.Equal(t, 1.0, segments(c))
	for segments(c) < threshold(c) {
		c.OnAck(at(start, mss))
	}
	require.Equal(t, 70.0, math.Round(segments(c)))
	epoch := segments(c)
	c.OnAck(at(start, 1))
	whole(c, start+2*time.Second-rtt)
	require.InDelta(t, epoch+0.4*8, segments(c), 1e-3, "convex from the start")
}

// RFC 9438, Section 4.10: slow start left without a loss does the same.
func TestCubicWithoutLoss(t *testing.T) {
	c := group(t, "cubic").Add(avoiding(50))
	c.OnAck(at(start, 1))
	whole(c, start+2*time.Second-rtt)
	require.InDelta(t, 50+0.4*8, segments(c), 1e-3)
}

// RFC 9438, Section 4.2: "The elapsed time t ... MUST NOT include periods
// during which cwnd has not been updated due to application-limited
// behavior". Each case idles for a minute and must end where a flow that did
// not idle ends.
func TestCubicLeavesIdleTimeOut(t *testing.T) {
	steady := cubicAt(t)
	whole(steady, start+time.Second)

	t.Run("a window not in full use", func(t *testing.T) {
		c := cubicAt(t)
		for i := range 600 {
			s := at(start+time.Duration(i+1)*rtt, 100)
			s.CwndLimited = false
			c.OnAck(s)
		}
		whole(c, start+600*rtt+time.Second)
		near(t, segments(steady), segments(c), "window")
	})
	t.Run("nothing in flight", func(t *testing.T) {
		c := cubicAt(t)
		drained := at(start+time.Second-rtt, 1)
		drained.InFlight = 0
		c.OnAck(drained)
		whole(c, start+time.Minute)
		require.InDelta(t, segments(steady), segments(c), 1e-2, "one round trip of the minute counts")
	})
}

// RFC 9438, Section 4.9.2: undo restores the curve with the window, so that a
// flow goes on as if nothing had happened.
func TestCubicUndoRestoresCurve(t *testing.T) {
	steady, c := cubicAt(t), cubicAt(t)
	whole(steady, start+time.Second)
	whole(c, start+time.Second)
	c.OnLoss(cc.LossFast, at(start+time.Second, 0))
	c.Undo()
	whole(steady, start+2*time.Second)
	whole(c, start+2*time.Second)
	require.Equal(t, steady.State(), c.State())
}

// RFC 9438, Table 2: mean windows at an RTT of 0.1 s with C = 0.4.
func TestCubicResponse(t *testing.T) {
	for p, want := range map[float64]float64{1e-4: 187, 1e-5: 1054, 1e-6: 5926} {
		c := group(t, "cubic").Add(avoiding(want))
		require.InEpsilon(t, want, saw(c, rtt, 1/p, 30), 0.1, "loss rate %g", p)
	}
}
