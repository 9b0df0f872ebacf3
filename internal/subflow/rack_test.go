package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// newRACK returns a client with a round trip of 40 ms, min_rtt 40 ms.
func newRACK(t *testing.T, knobs ...knob) *harness {
	h := newSynSent(t, knobs...)
	h.now = h.now.Add(40 * time.Millisecond)
	h.in(pkt{flags: "S.", ack: 1})
	h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1})
	h.wantEvent("handshake done", subflow.EventEstablished)
	return h
}

func (h *harness) wait(ms float64) { h.advance(time.Duration(ms * float64(time.Millisecond))) }

// RFC 8985, Section 6.2, steps 4 and 5: sent at 0, min_rtt 40 ms, a later one
// delivered after 40 ms: lost 10 ms after that, a quarter of min_rtt.
func TestRACKWaitsForTheReorderingWindow(t *testing.T) {
	h := newRACK(t)
	h.fill(3)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 2}))
	require.Equal(t, 10*time.Millisecond, h.s.Deadline().Sub(h.now))
	h.wait(9.999)
	require.Empty(t, h.ctl.losses)
	h.wantIdle("it may come yet")
	h.wait(0.001)
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
	h.want("lost", full(0))
	require.True(t, h.rng.Retransmit)
	h.wantIdle("2 was sent after 1")
}

// "one way the sender can enter fast recovery is when the number of SACKed
// segments matches or exceeds DupThresh".
func TestRACKDupThreshBeforeReordering(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 3}))
	require.Empty(t, h.ctl.losses)
	h.in(sackAck(0, [2]int{1, 4}))
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
	h.want("at once", full(0))
}

// "Otherwise, if some reordering has been observed, then RACK does not trigger
// fast recovery based on DupThresh."
func TestRACKNoDupThreshAfterReordering(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 2}))
	h.wait(5)
	h.in(sackAck(2)) // 0 came late, and was never sent again
	h.in(sackAck(2, [2]int{3, 8}))
	require.Empty(t, h.ctl.losses)
	// The RTT of the latest delivery is 45 ms: lost at 45+10.
	h.wait(9.9)
	require.Empty(t, h.ctl.losses)
	h.wait(0.1)
	h.want("lost", full(2))
}

// A lost retransmission is found by what was sent after it, without a timeout.
// RFC 5681, Section 4.3: the window is lowered twice.
func TestRACKLostRetransmission(t *testing.T) {
	h := newRACK(t)
	h.ctl.cwnd = 20 * mss
	h.fill(20)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 11}))
	h.want("first copy", full(0))
	h.wait(5)
	h.in(sackAck(0, [2]int{1, 20}))
	n := h.s.Room(h.now, 100*mss)
	require.Positive(t, n)
	h.fill(n / mss)
	h.wait(40)
	require.Len(t, h.ctl.losses, 1)
	h.in(sackAck(0, [2]int{1, 21}))
	require.Len(t, h.ctl.losses, 2)
	h.want("second copy", full(0))
	require.Zero(t, h.s.Stats().Timeouts)
}

// Section 6.2, step 2: an ACK that comes sooner than min_rtt after a
// retransmission is that of the original and teaches nothing.
func TestRACKIgnoresEarlyACKs(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 4}))
	h.want("sent again", full(0))
	h.wait(20)
	h.in(sackAck(5))
	require.Len(t, h.ctl.losses, 1)
	h.wantIdle("5 to 9 were sent before the retransmission, whose ACK this seems to be")
}

// Section 6.2, step 4: D-SACKs widen the window by min_rtt/4 a round trip.
func TestRACKDSACKWidensTheWindow(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	p := sackAck(1, [2]int{0, 1}) // 0 came twice
	h.in(p)
	require.EqualValues(t, 1, h.s.Stats().DSACKs)
	h.in(sackAck(1, [2]int{0, 1}))
	h.in(sackAck(1, [2]int{2, 3}))
	require.Equal(t, 20*time.Millisecond, h.s.Deadline().Sub(h.now), "once a round trip")
}

// Section 7.2: PTO is 2*SRTT, and 200 ms more for a single segment.
func TestTailLossProbe(t *testing.T) {
	h := newRACK(t)
	h.fill(3)
	require.Equal(t, 80*time.Millisecond, h.advanceToDeadline())
	h.want("the last segment", full(2))
	require.True(t, h.rng.Retransmit)
	h.wantIdle("one probe")
	require.EqualValues(t, 1, h.s.Stats().Probes)
	h.wait(40)
	h.in(sackAck(0, [2]int{2, 3}))
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses, "0 and 1 were sent long before the probe")
	h.want("lost", full(0))
	h.wait(40)
	h.in(sackAck(1, [2]int{2, 3}))
	h.want("lost", full(1))
	require.Zero(t, h.s.Stats().Timeouts)
}

func TestTailLossProbeOfOneSegment(t *testing.T) {
	h := newRACK(t, func(c *subflow.Config) { c.MinRTO = time.Second })
	h.fill(1)
	require.Equal(t, 280*time.Millisecond, h.advanceToDeadline())
	h.want("again", full(0))
	require.Equal(t, time.Second, h.advanceToDeadline(), "then the timeout, counted from the probe")
	require.EqualValues(t, 1, h.s.Stats().Timeouts)
}

// "the sender SHOULD transmit a previously unsent data segment, if one exists".
func TestTailLossProbeWithNewData(t *testing.T) {
	h := newRACK(t)
	h.ctl.cwnd = 3 * mss
	h.fill(3)
	require.Zero(t, h.s.Room(h.now, 10*mss))
	h.advanceToDeadline()
	require.Equal(t, mss, h.s.Room(h.now, 10*mss), "one segment more than the window")
	h.push(mss)
	h.want("new data", full(3))
	h.wantIdle("one probe")
	h.wait(40)
	h.in(sackAck(4))
	require.Empty(t, h.ctl.losses)
	require.Zero(t, h.s.Deadline())
}

// Section 7.4.2: the probe repaired a loss, which counts as congestion when
// something after it is acknowledged and no duplicate was reported.
func TestTailLossProbeRepairsLoss(t *testing.T) {
	for _, spurious := range []bool{false, true} {
		h := newRACK(t)
		h.fill(3)
		h.advanceToDeadline()
		h.want("probe", full(2))
		h.wait(40)
		h.in(sackAck(3))
		require.Empty(t, h.ctl.losses, "not known yet")
		h.fill(1)
		h.wait(40)
		if spurious {
			h.in(sackAck(3, [2]int{2, 3}))
		}
		h.in(sackAck(4))
		if spurious {
			require.Empty(t, h.ctl.losses)
		} else {
			require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
		}
	}
}

// Section 6.3: a timeout marks the first segment, and those sent more than a
// round trip ago.
func TestRACKTimeout(t *testing.T) {
	h := newRACK(t)
	h.fill(2)
	h.wait(80)
	h.want("probe", full(1))
	h.wait(190)
	h.ctl.cwnd = 20 * mss
	h.fill(2)
	h.advance(h.s.Deadline().Sub(h.now))
	require.Equal(t, []cc.Loss{cc.LossTimeout}, h.ctl.losses)
	h.want("first", full(0))
	h.wantIdle("2 and 3 are young")
	h.wait(40)
	h.in(sackAck(1))
	h.want("second", full(1))
	h.in(sackAck(4))
	h.wantIdle("all is well")
	require.Zero(t, h.s.Deadline())
}

// RFC 6675, Section 6: what is sent again in fast recovery starts the timer anew,
// which runs from its sending, not from that of what was lost.
func TestRetransmissionDefersTimeout(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	h.in(sackAck(0, [2]int{2, 6}))
	h.want("first", full(0))
	require.Equal(t, h.now.Add(h.s.RTO()), h.s.Deadline())
	h.wait(30)
	h.in(sackAck(0, [2]int{2, 8}))
	h.want("second", full(1))
	h.in(sackAck(0, [2]int{2, 10}))
	require.Equal(t, h.now.Add(h.s.RTO()), h.s.Deadline())
	h.advance(h.s.RTO() - time.Millisecond)
	require.Zero(t, h.s.Stats().Timeouts)
	h.advance(time.Millisecond)
	require.EqualValues(t, 1, h.s.Stats().Timeouts, "it is not put off by SACKs alone")
}

// RFC 2018, Section 8, without waiting for a second timeout: the ACK of what
// was missing shows that the rest was thrown away. That is not believed before
// the first, for an old ACK whose blocks cover SND.UNA looks the same.
func TestRACKRenegingReceiver(t *testing.T) {
	h := newRACK(t)
	h.fill(5)
	h.wait(40)
	h.in(sackAck(0, [2]int{1, 5}))
	h.want("fast retransmit", full(0))
	h.wait(40)
	h.in(sackAck(1))
	h.wantIdle("no timeout yet")
	h.advanceToDeadline()
	require.EqualValues(t, 1, h.s.Stats().Timeouts)
	h.want("again", full(1))
	h.wait(40)
	h.in(sackAck(2))
	h.want("again", full(2))
	h.drain()
	h.in(sackAck(5))
	require.Zero(t, h.s.InFlight())
	require.EqualValues(t, 1, h.s.Stats().Timeouts)
}

// RFC 2883: when each retransmission is reported as a duplicate, recovery was
// needless, even after it ended.
func TestDSACKUndo(t *testing.T) {
	h := newRACK(t)
	h.fill(10)
	h.wait(40)
	h.in(sackAck(0, [2]int{2, 6})) // 0 and 1 are late
	h.want("needless", full(0))
	h.wait(1)
	h.in(sackAck(0, [2]int{2, 8}))
	h.want("needless", full(1))
	h.wait(1)
	h.in(sackAck(10))
	require.Equal(t, 5*mss, h.s.Stats().Cwnd)
	h.wait(38)
	h.in(sackAck(10, [2]int{0, 1}))
	require.Zero(t, h.ctl.undone, "one of two")
	h.in(sackAck(10, [2]int{1, 2}))
	require.Equal(t, 1, h.ctl.undone)
	require.EqualValues(t, 10*mss, h.ctl.cwnd)
	require.Equal(t, 5*mss, h.s.Stats().Cwnd, "nothing is in flight: no burst beyond what was allowed")
	require.EqualValues(t, 1, h.s.Stats().Spurious)
	h.fill(5)
	h.wait(40)
	h.in(sackAck(15))
	require.Equal(t, 10*mss, h.s.Stats().Cwnd)
}

// RFC 5682, without timestamps: new data goes out after the first ACK, and
// an ACK of what was never sent again proves the timeout needless.
func TestFRTO(t *testing.T) {
	h := newRACK(t)
	h.ctl.cwnd = 5 * mss
	h.fill(5)
	h.wait(80)
	h.skip(1) // the probe, delayed as all the rest
	h.advance(h.s.Deadline().Sub(h.now))
	require.Equal(t, []cc.Loss{cc.LossTimeout}, h.ctl.losses)
	h.want("first", full(0))
	h.wantIdle("the loss window")
	h.in(sackAck(1)) // of the original
	h.ctl.cwnd = 2 * mss
	require.Equal(t, 2*mss, h.s.Room(h.now, 100*mss), "new data goes first")
	h.push(2 * mss)
	h.want("new", full(5))
	h.want("new", full(6))
	h.in(sackAck(2))
	require.Equal(t, 1, h.ctl.undone)
	h.wantIdle("nothing more is sent again")
	require.Equal(t, 5*mss, h.s.Stats().Cwnd)
}

func TestFRTOGenuineTimeout(t *testing.T) {
	h := newRACK(t)
	h.ctl.cwnd = 5 * mss
	h.fill(5)
	h.wait(80)
	h.skip(1)
	h.advance(h.s.Deadline().Sub(h.now))
	h.want("first", full(0))
	h.wait(40)
	h.in(sackAck(1))
	h.ctl.cwnd = 2 * mss
	h.want("no new data: recovery goes on", full(1))
	h.want("in slow start", full(2))
	h.in(sackAck(1, [2]int{4, 5}))
	require.Zero(t, h.ctl.undone)
}

// RFC 2883, Section 4: a duplicate is reported at once, and once.
func TestDSACKSent(t *testing.T) {
	h := newRACK(t)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 100})
	h.want("ACK", pkt{flags: ".", seq: 1, ack: 101})
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 100})
	h.push(mss)
	h.want("before data", pkt{flags: ".", seq: 1, ack: 101, sack: [][2]int{{1, 101}}})
	seg := h.want("data", pkt{flags: ".", seq: 1, ack: 101, len: mss})
	require.Zero(t, seg.Has&wire.OptSACK)
	h.in(pkt{flags: ".", seq: 201, ack: 1, len: 100})
	h.in(pkt{flags: ".", seq: 201, ack: 1, len: 100})
	h.want("inside a held range: both blocks", pkt{flags: ".", seq: 1001, ack: 101, sack: [][2]int{{201, 301}, {201, 301}}})
}
