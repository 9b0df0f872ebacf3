package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func noSACK(c *subflow.Config) { c.NoSACK = true }

// newCounting is newEstablished with losses found by counting (RFC 5681, 6582,
// 6675). What RACK does is in rack_test.go.
func newCounting(t *testing.T, knobs ...knob) *harness {
	return newEstablished(t, append(knobs, func(c *subflow.Config) { c.NoRACK = true })...)
}

// sackAck returns an ACK of everything before the i-th segment (from 0), with
// SACK blocks in segments.
func sackAck(i int, blocks ...[2]int) pkt {
	p := pkt{flags: ".", seq: 1, ack: 1 + i*mss}
	for _, b := range blocks {
		p.sack = append(p.sack, [2]int{1 + b[0]*mss, 1 + b[1]*mss})
	}
	return p
}

// full returns the i-th full segment.
func full(i int) pkt { return pkt{flags: ".", seq: 1 + i*mss, ack: 1, len: mss} }

// RFC 6675, Section 5: a segment is lost when three others after it arrived.
func TestFastRetransmitWithSACK(t *testing.T) {
	h := newCounting(t)
	h.fill(10) // segment 2 is lost
	h.in(sackAck(2))
	h.fill(2)
	for i := 4; i <= 5; i++ {
		h.in(sackAck(2, [2]int{3, i}))
		require.Equal(t, mss, h.s.Room(h.now, 100*mss), "limited transmit (RFC 3042)")
		h.fill(1)
	}
	require.Empty(t, h.ctl.losses)
	h.in(sackAck(2, [2]int{3, 6}))
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
	require.Equal(t, []int{10 * mss}, h.ctl.flights, "limited transmit does not count")
	require.Zero(t, h.s.Room(h.now, 100*mss), "what is lost goes first")
	h.want("fast retransmit", full(2))
	require.True(t, h.rng.Retransmit)
	h.wantIdle("PRR")
	h.in(sackAck(14))
	require.Equal(t, uint64(1), h.s.Stats().Recoveries)
	require.Equal(t, 5*mss, h.s.Room(h.now, 100*mss), "the window is ssthresh then")
	require.Equal(t, 1, h.s.Stats().Snapshot.Cwnd/(5*mss))
	require.False(t, h.ctl.acks[0].InRecovery)
	require.True(t, h.ctl.acks[len(h.ctl.acks)-1].InRecovery, "the ACK that ends the episode belongs to it")
}

func TestLossIsFoundByBytesAtOnce(t *testing.T) {
	h := newCounting(t)
	h.fill(10)
	h.in(sackAck(0, [2]int{1, 4}))
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses, "3 segments in one ACK")
	h.want("fast retransmit", full(0))
}

func TestNoLossBelowDupThresh(t *testing.T) {
	h := newCounting(t)
	h.fill(10)
	h.in(sackAck(0, [2]int{1, 3}))
	require.Empty(t, h.ctl.losses, "exactly 2 segments")
	h.in(sackAck(0, [2]int{1, 3}))
	h.in(sackAck(0, [2]int{1, 3}))
	require.Empty(t, h.ctl.losses, "RFC 6675: ACKs that SACK nothing new are no duplicates")
	h.in(pkt{flags: ".", seq: 1, ack: 1, sack: [][2]int{{1 + mss, 1 + 3*mss}, {1 + 4*mss, 2 + 4*mss}}})
	require.Empty(t, h.ctl.losses, "nor does a part of a packet count")
}

func TestSmallSegmentsCountByDuplicates(t *testing.T) {
	h := newCounting(t)
	for range 5 {
		h.push(10)
	}
	h.drain()
	for i := 2; i <= 4; i++ {
		h.in(pkt{flags: ".", seq: 1, ack: 1, sack: [][2]int{{11, 1 + 10*i}}})
	}
	h.want("after 3 duplicates", pkt{flags: ".", seq: 1, ack: 1, len: 10})
}

// RFC 9937: with half the window lost in one go the sender keeps to what is
// delivered, and ends at ssthresh.
func TestPRRSendsInProportion(t *testing.T) {
	h := newCounting(t)
	h.ctl.cwnd = 20 * mss
	h.fill(20) // segment 0 is lost
	sent := 0
	for i := 1; i <= 19; i++ {
		h.in(sackAck(0, [2]int{1, i + 1}))
		if n := h.s.Room(h.now, 100*mss); n > 0 {
			h.push(n)
		}
		if n := h.drain(); len(h.ctl.losses) > 0 {
			sent += n
		}
	}
	// RecoverFS is 20 segments, two of limited transmit for the two that were
	// SACKed before, and ssthresh is 10: 17 delivered in recovery allow 8.5.
	require.Equal(t, 8*mss, sent)
	require.Equal(t, 10*mss, h.s.InFlight())
}

// RFC 6675, NextSeg, (3) and (4): with nothing new to send, holes not yet known
// to be lost, and once the end of the flight, are sent again.
func TestSpeculativeRetransmission(t *testing.T) {
	h := newCounting(t)
	h.fill(10)
	h.in(sackAck(0, [2]int{1, 4})) // 0 is lost
	h.want("lost", full(0))
	h.in(sackAck(0, [2]int{1, 4}, [2]int{5, 7}, [2]int{8, 9}))
	h.want("4: lost", full(4))
	h.want("7: a hole", full(7))
	require.True(t, h.rng.Retransmit)
	h.in(sackAck(7, [2]int{8, 9}))
	h.want("9: the rescue", full(9))
	h.wantIdle("once")
	h.in(sackAck(9))
	h.wantIdle("still the same episode")
	h.in(sackAck(10))
	require.Len(t, h.ctl.losses, 1)
}

func TestMultipleLossesInOneEpisode(t *testing.T) {
	h := newCounting(t)
	h.ctl.cwnd = 20 * mss
	h.fill(20) // 0, 4 and 8 are lost
	h.in(sackAck(0, [2]int{1, 4}))
	h.want("first", full(0))
	h.in(sackAck(0, [2]int{5, 8}, [2]int{1, 4}))
	h.want("second", full(4))
	h.in(sackAck(0, [2]int{9, 12}, [2]int{5, 8}, [2]int{1, 4}))
	h.wantIdle("10 are in flight, the new window")
	h.in(sackAck(4, [2]int{5, 8}, [2]int{9, 20}))
	h.want("third", full(8))
	h.in(sackAck(8, [2]int{9, 20}))
	h.wantIdle("each once")
	h.in(sackAck(20))
	require.Len(t, h.ctl.losses, 1, "one signal an episode")
	require.Zero(t, h.s.Stats().Timeouts)
}

func TestSuperSegmentLostInPart(t *testing.T) {
	h := newCounting(t, func(c *subflow.Config) { c.SegmentMax = 10 * mss })
	h.fill(10)
	h.in(sackAck(0, [2]int{1, 3}, [2]int{5, 9}))
	h.want("the first packet", full(0))
	h.in(sackAck(3, [2]int{5, 9}))
	seg := h.want("two packets in one", pkt{flags: ".", seq: 1 + 3*mss, ack: 1, len: 2 * mss})
	require.Equal(t, mss, seg.SegSize)
	h.want("the rescue", full(9))
	h.in(sackAck(10))
	require.Zero(t, h.s.InFlight())
}

// RFC 6582, without SACK.
func TestNewReno(t *testing.T) {
	h := newCounting(t, noSACK)
	h.fill(10) // 0 and 4 are lost
	for range 2 {
		h.in(sackAck(0))
		require.Equal(t, mss, h.s.Room(h.now, 100*mss), "limited transmit")
		h.fill(1)
	}
	h.in(sackAck(0))
	require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
	require.Equal(t, []int{10 * mss}, h.ctl.flights)
	h.want("fast retransmit", full(0))
	for range 7 {
		h.in(sackAck(0)) // 5 to 11
		h.wantIdle("the window shrinks to 5")
	}
	h.in(sackAck(4))
	h.want("partial ACK: the next hole", full(4))
	h.in(sackAck(12))
	h.wantIdle("recovered")
	require.Len(t, h.ctl.losses, 1)
	require.Zero(t, h.s.InFlight())
	require.Equal(t, 5*mss, h.s.Room(h.now, 100*mss))
}

// RFC 8684, Section 3: MPTCP signals on duplicate ACKs, and RFC 5681, Section
// 2: window updates and data are no duplicates.
func TestNoDuplicateACKs(t *testing.T) {
	h := newCounting(t, noSACK)
	h.fill(10)
	for range 5 {
		h.in(pkt{flags: ".", seq: 1, ack: 1, opt: func(s *wire.Segment) { s.Has |= wire.OptAddAddr }})
	}
	for i := range 5 {
		h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: peerWindow + 1000*(i+1)})
	}
	for i := range 5 {
		h.in(pkt{flags: ".", seq: 1 + i, ack: 1, len: 1, wnd: peerWindow + 5000})
	}
	require.Empty(t, h.ctl.losses)
	for range 3 {
		h.in(pkt{flags: ".", seq: 6, ack: 1, wnd: peerWindow + 5000, opt: func(s *wire.Segment) { s.Has |= wire.OptDSS }})
	}
	require.Len(t, h.ctl.losses, 1, "a DSS is no signal")
}

// RFC 6298, Section 5.
func TestRetransmissionTimeout(t *testing.T) {
	for _, knobs := range [][]knob{nil, {noSACK}} {
		h := newCounting(t, knobs...)
		h.fill(3)
		require.Equal(t, 300*time.Millisecond, h.s.RTO(), "SRTT 100 ms + 4 * RTTVAR 50 ms")
		require.Equal(t, 300*time.Millisecond, h.advanceToDeadline())
		require.Equal(t, 1, h.wantEvent("timeout", subflow.EventTimeout).Backoff)
		require.Equal(t, []cc.Loss{cc.LossTimeout}, h.ctl.losses)
		require.Equal(t, []int{3 * mss}, h.ctl.flights)
		h.want("the earliest", full(0))
		h.wantIdle("the window is one segment")
		require.Equal(t, 600*time.Millisecond, h.advanceToDeadline())
		require.Equal(t, 2, h.wantEvent("timeout", subflow.EventTimeout).Backoff)
		require.Len(t, h.ctl.losses, 1, "the same loss")
		h.want("again", full(0))
		h.in(sackAck(1))
		h.wantEvent("answers again", subflow.EventRecovered)
		h.want("go back", full(1))
		h.ctl.cwnd = 2 * mss
		h.want("slow start", full(2))
		h.in(sackAck(3))
		require.Zero(t, h.s.Deadline())
		h.wantNoEvent("told once")
	}
}

// Each segment of a flight is lost once, found by duplicates and by timeout.
func TestEachLostSegment(t *testing.T) {
	for lost := range 10 {
		for _, knobs := range [][]knob{nil, {noSACK}} {
			h := newCounting(t, knobs...)
			h.fill(10)
			h.in(sackAck(lost))
			for i := lost + 1; i < 10; i++ {
				p := sackAck(lost)
				if knobs == nil {
					p = sackAck(lost, [2]int{lost + 1, i + 1})
				}
				h.in(p)
			}
			byTimeout := lost > 6
			if byTimeout {
				h.wantIdle("too few duplicates")
				h.advanceToDeadline()
			}
			h.want("the lost one", full(lost))
			if byTimeout {
				require.Equal(t, []cc.Loss{cc.LossTimeout}, h.ctl.losses)
			} else {
				require.Equal(t, []cc.Loss{cc.LossFast}, h.ctl.losses)
			}
			h.in(sackAck(10))
			h.wantIdle("all is well")
			require.Zero(t, h.s.InFlight())
			require.Zero(t, h.s.Deadline())
		}
	}
}

// RFC 2018, Section 8: SACKed data is kept until it is acknowledged, and sent
// again after a timeout, since the peer may have thrown it away.
func TestRenegingReceiver(t *testing.T) {
	h := newCounting(t)
	h.fill(5)
	h.in(sackAck(0, [2]int{1, 5}))
	h.want("fast retransmit", full(0))
	h.advanceToDeadline()
	h.ctl.cwnd = 10 * mss
	for i := range 5 {
		h.want("everything", full(i))
	}
	h.in(sackAck(5))
	require.Zero(t, h.s.InFlight())
}

func TestSACKAfterTimeoutSavesRetransmissions(t *testing.T) {
	h := newCounting(t)
	h.fill(10)
	h.advanceToDeadline()
	h.want("first", full(0))
	h.in(sackAck(1, [2]int{3, 10}))
	h.want("next hole", full(1))
	h.in(sackAck(2, [2]int{3, 10}))
	h.want("next hole", full(2))
	h.wantIdle("the rest arrived")
	h.in(sackAck(10))
	require.Len(t, h.ctl.losses, 1)
}

func TestGiveUp(t *testing.T) {
	h := newCounting(t, func(c *subflow.Config) { c.Retries = 4; c.MaxRTO = time.Second })
	h.fill(1)
	var took []time.Duration
	for h.s.State() == subflow.StateEstablished {
		took = append(took, h.advanceToDeadline())
		h.drain()
	}
	require.Equal(t, []time.Duration{300, 600, 1000, 1000, 1000}, []time.Duration{
		took[0] / time.Millisecond, took[1] / time.Millisecond, took[2] / time.Millisecond,
		took[3] / time.Millisecond, took[4] / time.Millisecond,
	})
	require.Equal(t, 4, h.wantEvent("the last timeout", subflow.EventTimeout).Backoff)
	require.Equal(t, reason.CloseTimeout, h.wantEvent("given up", subflow.EventClosed).Close)
	require.Zero(t, h.s.Deadline())
}

// RFC 6298, Section 3 (Karn's algorithm): no measurement from what was sent
// twice, and the backoff stays until there is one.
func TestKarn(t *testing.T) {
	h := newCounting(t)
	h.fill(1)
	h.advanceToDeadline()
	h.want("again", full(0))
	h.now = h.now.Add(10 * time.Millisecond)
	h.in(sackAck(1))
	require.Equal(t, 100*time.Millisecond, h.s.Stats().SRTT)
	require.Equal(t, 600*time.Millisecond, h.s.RTO())
	h.fill(1)
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(sackAck(2))
	// RTTVAR = 50 * 3/4 = 37.5, SRTT = 100.
	require.Equal(t, 250*time.Millisecond, h.s.RTO())
}

// RFC 6298, Sections 2.2 and 2.3, by hand.
func TestRTTEstimator(t *testing.T) {
	h := newCounting(t) // R = 100 ms
	for i, x := range []struct{ r, srtt, rttvar time.Duration }{
		{180 * time.Millisecond, 110 * time.Millisecond, 57500 * time.Microsecond},
		{30 * time.Millisecond, 100 * time.Millisecond, 63125 * time.Microsecond},
	} {
		h.fill(1)
		h.now = h.now.Add(x.r)
		h.in(sackAck(i + 1))
		st := h.s.Stats()
		require.Equal(t, x.srtt, st.SRTT)
		require.Equal(t, x.rttvar, st.RTTVar)
		require.Equal(t, x.srtt+4*x.rttvar, st.RTO)
	}
	require.Equal(t, 30*time.Millisecond, h.s.Stats().MinRTT)
}

func TestRTOIsAtLeastMinRTO(t *testing.T) {
	h := newSynSent(t)
	h.now = h.now.Add(time.Millisecond)
	h.in(pkt{flags: "S.", ack: 1})
	require.Equal(t, 200*time.Millisecond, h.s.RTO())
}

// RFC 7323, Section 4: with timestamps a retransmission gives a measurement,
// too.
func TestTimestampsMeasureRetransmissions(t *testing.T) {
	h := newCounting(t, timestamps)
	h.fill(1)
	h.advanceToDeadline()
	h.drain()
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss})
	require.Equal(t, 250*time.Millisecond, h.s.RTO())
}

// RFC 3522: an ACK that echoes a timestamp from before the retransmission
// proves it needless. The window comes back and the threshold rises.
func TestSpuriousFastRetransmit(t *testing.T) {
	h := newCounting(t, timestamps, func(c *subflow.Config) { c.MTU += 12 })
	h.fill(10)
	old := h.last.TSVal
	h.now = h.now.Add(10 * time.Millisecond)
	for i := 1; i <= 5; i++ {
		h.in(sackAck(0, [2]int{1, i + 1}))
	}
	h.want("fast retransmit", full(0))
	h.now = h.now.Add(5 * time.Millisecond)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 6*mss, opt: func(s *wire.Segment) { s.TSEcr = old }})
	require.Equal(t, 1, h.ctl.undone)
	st := h.s.Stats()
	require.EqualValues(t, 1, st.Spurious)
	require.Equal(t, 10*mss, st.Cwnd)
	require.Equal(t, 6, st.DupThresh, "5 segments came before the late one")
	h.fill(1)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 6*mss, sack: [][2]int{{1 + 7*mss, 1 + 11*mss}}})
	require.Len(t, h.ctl.losses, 1, "4 segments are no loss any more")
}

func TestGenuineFastRetransmitIsNotUndone(t *testing.T) {
	h := newCounting(t, timestamps, func(c *subflow.Config) { c.MTU += 12 })
	h.fill(10)
	h.now = h.now.Add(10 * time.Millisecond)
	h.in(sackAck(0, [2]int{1, 5}))
	h.want("fast retransmit", full(0))
	h.now = h.now.Add(10 * time.Millisecond)
	h.in(sackAck(10)) // echoes the retransmission
	require.Zero(t, h.ctl.undone)
	require.Equal(t, 5*mss, h.s.Stats().Cwnd)
}

func TestSpuriousTimeout(t *testing.T) {
	h := newCounting(t, timestamps, func(c *subflow.Config) { c.MTU += 12 })
	h.fill(5)
	old := h.last.TSVal
	h.advanceToDeadline()
	h.want("again", full(0))
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, opt: func(s *wire.Segment) { s.TSEcr = old }})
	require.Equal(t, 1, h.ctl.undone)
	h.wantIdle("the others are on their way")
	require.Equal(t, 4*mss, h.s.InFlight())
	require.Equal(t, mss, h.s.Room(h.now, 100*mss), "what the ACK acknowledged")
}

// RFC 4015, Section 3.4: after a needless timeout "cwnd is reset to the sum of the
// current FlightSize and the minimum of bytes_acked and IW", and "must not be
// changed any further for that ACK"; then it grows as in slow start to what it
// was. The guard is limitBurst.
func TestBurstAfterSpuriousTimeoutIsLimited(t *testing.T) {
	h := newCounting(t, timestamps, func(c *subflow.Config) { c.MTU += 12 })
	h.ctl.cwnd = 30 * mss
	h.fill(30)
	old := h.last.TSVal
	late := func(i int) {
		h.in(pkt{flags: ".", seq: 1, ack: 1 + i*mss, opt: func(s *wire.Segment) { s.TSEcr = old }})
	}
	h.advanceToDeadline()
	h.want("again", full(0))
	late(20)
	require.Equal(t, 1, h.ctl.undone)
	require.EqualValues(t, 30*mss, h.ctl.cwnd)
	require.Equal(t, 10*mss, h.s.InFlight())
	require.Equal(t, 10*mss, h.s.Room(h.now, 100*mss), "IW, though 20 left the network")
	require.Equal(t, 20*mss, h.s.Stats().Cwnd)
	h.fill(10)
	late(24)
	require.Equal(t, 24*mss, h.s.Stats().Cwnd, "slow start")
	late(30)
	require.Equal(t, 30*mss, h.s.Stats().Cwnd, "as before")
	require.Equal(t, 20*mss, h.s.Room(h.now, 100*mss))
}

// RFC 4015, Section 3.4: if "the acceptable ACK signals congestion through the
// ECN-Echo flag", then "the TCP sender MUST refrain from reversing congestion
// control state." The guard is takeBack's look at ECE.
func TestSpuriousTimeoutIsNotUndoneByAMark(t *testing.T) {
	h := newECN(t, timestamps, func(c *subflow.Config) { c.NoRACK, c.MTU = true, c.MTU+12 })
	h.fill(5)
	old := h.last.TSVal
	h.advanceToDeadline()
	h.want("again", full(0))
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, opt: func(s *wire.Segment) {
		s.TSEcr = old
		s.Flags |= wire.ECE
	}})
	require.Zero(t, h.ctl.undone)
	require.Equal(t, []cc.Loss{cc.LossTimeout}, h.ctl.losses, "and is not reduced twice")
	require.Equal(t, 4*mss, h.s.InFlight(), "the others are on their way all the same")
}

func TestDeliveryRate(t *testing.T) {
	h := newCounting(t)
	h.ctl.cwnd = 10 * mss
	h.fill(10)
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(sackAck(2))
	a := h.ctl.acks[0]
	require.InDelta(t, 2*mss/0.1, a.DeliveryRate, 1)
	require.Equal(t, 2*mss, a.Acked)
	require.Equal(t, 2*mss, a.Delivered)
	require.Equal(t, 8*mss, a.InFlight)
	require.Equal(t, 100*time.Millisecond, a.RTT)
	require.Equal(t, 100*time.Millisecond, a.MinRTT)
	require.Equal(t, mss, a.MSS)
	require.EqualValues(t, 1, a.Round)
	h.fill(2) // keep the flight full
	h.now = h.now.Add(20 * time.Millisecond)
	h.in(sackAck(4, [2]int{5, 8}))
	a = h.ctl.acks[1]
	// 7 segments within 120 ms of sending the first flight.
	require.InDelta(t, 7*mss/0.12, a.DeliveryRate, 1)
	require.Equal(t, 2*mss, a.Acked)
	require.Equal(t, 5*mss, a.Delivered)
	require.Equal(t, mss, a.Lost)
	require.True(t, a.InRecovery)
	require.EqualValues(t, 1, a.Round)
}

func TestAppLimited(t *testing.T) {
	h := newCounting(t)
	h.drain()
	h.fill(2)
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(sackAck(2))
	require.True(t, h.ctl.acks[0].AppLimited)
	h.fill(10)
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(sackAck(3))
	h.fill(1)
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(sackAck(13))
	last := h.ctl.acks[len(h.ctl.acks)-1]
	require.False(t, last.AppLimited)
	require.EqualValues(t, 3, last.Round)
}

func TestUnsentIsTold(t *testing.T) {
	h := newCounting(t)
	require.Equal(t, 10*mss, h.s.Room(h.now, 30*mss))
	h.fill(10)
	h.in(sackAck(2))
	require.Equal(t, 20*mss, h.ctl.acks[0].Unsent)
}
