package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/subflow"
)

// The controller's rate of 1000 segments a second: two at once, every 2 ms.
func TestPacingByTheController(t *testing.T) {
	h := newEstablished(t)
	h.ctl.pace = 1000 * mss
	for range 3 {
		require.Equal(t, 2*mss, h.s.Room(h.now, 100*mss))
		h.push(2 * mss)
		require.Equal(t, 2*mss, h.drain())
		require.Zero(t, h.s.Room(h.now, 100*mss))
		require.Equal(t, 2*time.Millisecond, h.advanceToDeadline())
	}
	h.push(5 * mss)
	require.Equal(t, 2*mss, h.drain(), "also of what is pushed")
	h.wait(1.999)
	h.wantIdle("not yet")
	h.wait(0.001)
	require.Equal(t, 2*mss, h.drain())
}

// A millisecond at 2500 segments a second has room for two and a half. Who is told,
// with two of them pushed, that there is none for a third has to hear when the next
// may go out.
func TestPacingLeavesNoPartOfASegment(t *testing.T) {
	h := newEstablished(t)
	h.ctl.pace, h.ctl.cwnd = 2500*mss, 1000*mss
	for range 3 {
		require.Equal(t, 2*mss, h.s.Room(h.now, 100*mss))
		h.push(2 * mss)
		require.Zero(t, h.s.Room(h.now, 98*mss))
		require.Equal(t, 2*mss, h.drain())
		require.Equal(t, 800*time.Microsecond, h.advanceToDeadline())
	}
}

// A timer that is late loses nothing, and idleness earns nothing.
func TestPacingKeepsItsRate(t *testing.T) {
	h := newEstablished(t)
	h.ctl.pace, h.ctl.cwnd = 1000*mss, 1000*mss
	h.push(20 * mss)
	require.Equal(t, 2*mss, h.drain())
	h.wait(3)
	require.Equal(t, 2*mss, h.drain())
	h.wait(1)
	require.Equal(t, 2*mss, h.drain())
	h.wait(10)
	require.Equal(t, 2*mss, h.drain())
	h.wait(1.9)
	h.wantIdle("a new start")
}

// Twice the window a round trip in slow start, 1.2 times after: 10 segments in
// 100 ms.
func TestPacingByTheWindow(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.Pacing = true })
	require.InDelta(t, 200*mss, h.s.Stats().PacingRate, 1)
	h.push(10 * mss)
	require.Equal(t, 2*mss, h.drain())
	require.Equal(t, 10*time.Millisecond, h.advanceToDeadline())
	require.Equal(t, 2*mss, h.drain())
	h.ctl.ssthresh = 10 * mss
	require.InDelta(t, 120*mss, h.s.Stats().PacingRate, 1)
}

func TestPacingSizesSuperSegments(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.SegmentMax = 64000 })
	h.ctl.cwnd, h.ctl.pace = 100*mss, 7e6
	h.push(30 * mss)
	h.want("a millisecond", pkt{flags: ".", seq: 1, ack: 1, len: 7 * mss})
	h.wantIdle("paced")
	require.Equal(t, time.Millisecond, h.advanceToDeadline())
	h.want("another", pkt{flags: ".", seq: 1 + 7*mss, ack: 1, len: 7 * mss})
}

// Retransmissions are paced, ACKs are not.
func TestPacingOfRetransmissions(t *testing.T) {
	h := newCounting(t)
	h.fill(10)
	h.ctl.pace = 1000 * mss
	h.in(sackAck(0, [2]int{3, 10}))
	h.want("lost", full(0))
	h.in(sackAck(1, [2]int{3, 10}))
	h.want("lost", full(1))
	h.in(sackAck(1, [2]int{3, 10}))
	h.wantIdle("the burst is over")
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, len: 10})
	h.want("ACK", pkt{flags: ".", seq: 1 + 10*mss, ack: 11})
	h.wait(2)
	h.want("lost", pkt{flags: ".", seq: 1 + 2*mss, ack: 11, len: mss})
}

// A queue that holds less than the initial window loses part of it, unless it
// is spread.
func TestPacingSparesShallowQueues(t *testing.T) {
	for _, on := range []bool{false, true} {
		l := link{rate: 1.25e6, delay: 20 * time.Millisecond, queue: 6000}
		p := newPair(t, pairConfig{ab: l, ba: l, a: func(c *subflow.Config) {
			c.Pacing, c.SegmentMax = on, 64000
		}})
		p.transfer(10*1428, 0)
		p.finish(time.Minute)
		require.Equal(t, on, p.links[0].dropped == 0)
	}
}

func TestPacingKeepsTheLinkFull(t *testing.T) {
	for _, control := range []string{"reno", "cubic"} {
		l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 25000}
		p := newPair(t, pairConfig{cc: control, ab: l, ba: l, a: func(c *subflow.Config) {
			c.Pacing, c.SegmentMax = true, 64000
		}})
		p.transfer(30<<20, 0)
		p.run(10 * time.Second)
		before := p.ends[1].got
		p.run(10 * time.Second)
		rate := float64(p.ends[1].got-before) / 10
		t.Logf("%s: %.3g B/s, %d lost", control, rate, p.links[0].dropped)
		require.Greater(t, rate, 0.9*1.25e6*1428/1500)
	}
}
