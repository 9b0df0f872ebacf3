package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// No segment holds bytes of two mappings. Guards: Push notes the border, and
// output.go and mtuprobe.go end what they cut there.
func TestSegmentsNeverCrossABorder(t *testing.T) {
	h := newEstablished(t)
	h.push(1500)
	h.push(300)
	h.s.Extend(h.now, 200)
	h.push(700)
	for _, n := range []struct{ seq, len int }{{1, 1000}, {1001, 500}, {1501, 500}, {2001, 700}} {
		h.want("piece", pkt{flags: ".", seq: n.seq, ack: 1, len: n.len})
		require.Equal(t, subflow.Range{Off: uint64(n.seq - 1), Len: n.len}, h.rng)
	}
	require.EqualValues(t, 2700, h.s.Pushed())
}

func TestExtendMerges(t *testing.T) {
	h := newEstablished(t)
	h.push(300)
	h.s.Extend(h.now, 300)
	h.s.Extend(h.now, 600)
	h.want("full", pkt{flags: ".", seq: 1, ack: 1, len: 1000})
	h.want("rest", pkt{flags: ".", seq: 1001, ack: 1, len: 200})
}

func TestSuperSegments(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.SegmentMax = 4500 })
	h.push(9500)
	seg := h.want("whole packets up to SegmentMax", pkt{flags: ".", seq: 1, ack: 1, len: 4000})
	require.Equal(t, mss, seg.SegSize)
	h.want("next", pkt{flags: ".", seq: 4001, ack: 1, len: 4000})
	seg = h.want("last", pkt{flags: ".", seq: 8001, ack: 1, len: 1500})
	require.Equal(t, mss, seg.SegSize)
	require.True(t, seg.Flags.Has(wire.PSH))
	h.wantIdle("window used up")
}

// RFC 9293, Section 3.9.1.2: PSH on the last segment of what there is.
func TestPSH(t *testing.T) {
	h := newEstablished(t)
	require.Equal(t, 3*mss, h.s.Room(h.now, 3*mss))
	h.push(mss)
	require.False(t, h.want("more waits", pkt{flags: ".", seq: 1, ack: 1, len: mss}).Flags.Has(wire.PSH))
	h.push(2 * mss)
	require.False(t, h.want("more is queued", pkt{flags: ".", seq: 1001, ack: 1, len: mss}).Flags.Has(wire.PSH))
	require.True(t, h.want("the last", pkt{flags: ".", seq: 2001, ack: 1, len: mss}).Flags.Has(wire.PSH))
}

func TestRoom(t *testing.T) {
	h := newEstablished(t)
	require.Equal(t, 300, h.s.Room(h.now, 300), "a short tail goes")
	require.Equal(t, 10*mss, h.s.Room(h.now, 100*mss), "congestion window")
	require.Equal(t, 2500, h.s.Room(h.now, 2500), "all that waits")
	require.Zero(t, h.s.Room(h.now, 0))
	h.ctl.cwnd = 3500
	require.Equal(t, 3*mss, h.s.Room(h.now, 100*mss), "full segments unless it is all")
	h.push(2 * mss)
	require.Equal(t, mss, h.s.Room(h.now, 100*mss), "what is queued counts")
	h.drain()
	require.Equal(t, mss, h.s.Room(h.now, 100*mss), "what is in flight counts")
	h.fill(1)
	require.Zero(t, h.s.Room(h.now, 100*mss))
	require.Equal(t, 400, h.s.Room(h.now, 400), "half a segment is left")
	h.ctl.cwnd = 1 << 30
	h.s.SetController(h.ctl) // a window changes in calls of its controller only
	require.Equal(t, peerWindow-3*mss, h.s.Room(h.now, 1<<30)/mss*mss, "the peer's window")
}

// Whether something waits that other subflows may send as well makes this one look for
// something to send only if it was held back, or repairs a loss.
func TestWhatWaitsAlone(t *testing.T) {
	h := newCounting(t)
	h.wantIdle("nothing")
	for range 2 {
		h.s.Room(h.now, 10*mss)
		require.True(t, h.s.Still())
		h.s.Room(h.now, 0)
		require.True(t, h.s.Still())
	}
	h.fill(10)
	h.s.Room(h.now, 10*mss)
	h.in(sackAck(0, [2]int{1, 4}, [2]int{5, 7}, [2]int{8, 9})) // 0 is lost
	h.want("lost", full(0))
	h.want("4: lost", full(4))
	h.wantIdle("7: a hole, but something new waits")
	h.s.Room(h.now, 0)
	require.False(t, h.s.Still())
	h.want("7: a hole", full(7))
}

// RFC 9293, Section 3.7.4.
func TestNagle(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.Nagle = true })
	require.Equal(t, 10, h.s.Room(h.now, 10), "nothing is outstanding")
	h.push(10)
	h.drain()
	require.Zero(t, h.s.Room(h.now, 10))
	require.Equal(t, 2*mss, h.s.Room(h.now, 2*mss+10), "full segments go")
	h.s.SetNagle(false)
	require.Equal(t, 10, h.s.Room(h.now, 10))
	h.s.SetNagle(true)
	h.in(pkt{flags: ".", seq: 1, ack: 11})
	require.Equal(t, 10, h.s.Room(h.now, 10))
}

// RFC 9293, Section 3.8.6.2.1: the four rules of the sender.
func TestSillyWindowAvoidance(t *testing.T) {
	h := newEstablished(t)
	h.fill(2)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, wnd: mss + 600})
	require.Zero(t, h.s.Room(h.now, 10*mss), "600 bytes of window, data in flight")
	require.Equal(t, 600, h.s.Room(h.now, 600), "(2): all of it fits")
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 2*mss, wnd: 600})
	require.Zero(t, h.s.Room(h.now, 10*mss), "nothing in flight, but less than half of the largest window")
	rto := h.s.RTO()
	require.Equal(t, rto, h.advanceToDeadline())
	h.wantIdle("no probe: the window is open")
	require.Equal(t, 600, h.s.Room(h.now, 10*mss), "(4): override timeout")
	h.push(600)
	h.want("small", pkt{flags: ".", seq: 2001, ack: 1, len: 600})
	h.in(pkt{flags: ".", seq: 1, ack: 2601, wnd: 600})
	require.Zero(t, h.s.Room(h.now, 10*mss), "the override was for one")
}

func TestPeerWithASmallBuffer(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S.", ack: 1, wnd: 400})
	h.skip(1)
	require.Equal(t, 400, h.s.Room(h.now, 10*mss), "(3): half of the largest window or more")
	h.push(400)
	h.want("small", pkt{flags: ".", seq: 1, ack: 1, len: 400})
	h.in(pkt{flags: ".", seq: 1, ack: 401, wnd: 200})
	require.Equal(t, 200, h.s.Room(h.now, 10*mss))
	h.in(pkt{flags: ".", seq: 1, ack: 401, wnd: 196})
	require.Zero(t, h.s.Room(h.now, 10*mss))
}

// RFC 9293, Section 3.8.6.1.
func TestZeroWindowProbes(t *testing.T) {
	h := newEstablished(t)
	h.fill(1)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, wnd: closedWindow})
	require.Zero(t, h.s.Room(h.now, 10))
	h.s.SetBlocked(h.now, true)
	d := h.s.RTO()
	for range 30 { // more than Retries: the peer answers
		require.Equal(t, d, h.advanceToDeadline())
		h.want("probe", pkt{flags: ".", seq: mss, ack: 1})
		h.in(pkt{flags: ".", seq: 1, ack: 1 + mss, wnd: closedWindow})
		h.wantIdle("an answer needs none")
		require.Zero(t, h.s.Room(h.now, 10))
		d = min(2*d, time.Minute)
	}
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss})
	require.Equal(t, 10, h.s.Room(h.now, 10))
	h.push(10)
	h.s.SetBlocked(h.now, false)
	h.want("open again", pkt{flags: ".", seq: 1 + mss, ack: 1, len: 10})
	h.in(pkt{flags: ".", seq: 1, ack: 11 + mss})
	require.Zero(t, h.s.Deadline())
}

func TestZeroWindowProbesUnanswered(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.Retries = 3 })
	h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: closedWindow})
	h.s.SetBlocked(h.now, true)
	for range 4 {
		h.advanceToDeadline()
		h.want("probe", pkt{flags: ".", seq: 0, ack: 1})
	}
	h.advanceToDeadline()
	require.Equal(t, reason.CloseTimeout, h.wantEvent("given up", subflow.EventClosed).Close)
}

// The window closes while data is queued here, and shrinks under data in
// flight.
func TestShrinkingPeerWindow(t *testing.T) {
	h := newCounting(t, func(c *subflow.Config) { c.Retries = 3 })
	h.ctl.cwnd = 2 * mss
	h.push(4 * mss)
	require.Equal(t, 2*mss, h.drain())
	h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: closedWindow})
	for range 10 {
		h.advanceToDeadline()
		h.want("what is in flight is sent again", pkt{flags: ".", seq: 1, ack: 1, len: mss})
		h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: closedWindow})
	}
	h.wantState(subflow.StateEstablished)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 2*mss, wnd: closedWindow})
	h.wantIdle("closed")
	h.advanceToDeadline()
	h.want("probe", pkt{flags: ".", seq: 2 * mss, ack: 1})
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 2*mss})
	h.want("the queue goes on", pkt{flags: ".", seq: 1 + 2*mss, ack: 1, len: mss})
}

// RFC 5681, Section 4.1: restart window.
func TestRestartAfterIdle(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.InitialWindow = 4 })
	h.ctl.cwnd = 30 * mss
	h.fill(10)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 10*mss})
	require.Equal(t, 20*mss, h.s.Room(h.now, 20*mss), "not idle")
	h.advance(2 * h.s.RTO())
	require.Equal(t, 4*mss, h.s.Room(h.now, 100*mss))
	h.fill(4)
	require.Zero(t, h.s.Room(h.now, 100*mss))
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 12*mss})
	require.Equal(t, 4*mss, h.s.Room(h.now, 100*mss), "slow start")
}

func TestCwndLimitedIsTold(t *testing.T) {
	h := newEstablished(t)
	h.fill(5)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 5*mss})
	require.False(t, h.ctl.acks[0].CwndLimited)
	h.fill(10)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 7*mss})
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 15*mss})
	require.True(t, h.ctl.acks[1].CwndLimited)
	require.True(t, h.ctl.acks[2].CwndLimited)
	h.fill(2)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + 17*mss})
	require.False(t, h.ctl.acks[3].CwndLimited)
}

func TestKeepAlive(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) {
		c.KeepAlive = subflow.KeepAlive{Idle: 10 * time.Second, Interval: 2 * time.Second, Count: 3}
	})
	h.advance(9 * time.Second)
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.advance(9 * time.Second)
	h.wantIdle("something came meanwhile")
	h.advance(time.Second)
	h.want("probe", pkt{flags: ".", seq: 0, ack: 1})
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.advance(9 * time.Second)
	h.wantIdle("answered")
	h.advance(time.Second)
	for range 3 {
		h.want("probe", pkt{flags: ".", seq: 0, ack: 1})
		h.wantIdle("one")
		h.advance(2 * time.Second)
	}
	require.Equal(t, reason.CloseKeepalive, h.wantEvent("given up", subflow.EventClosed).Close)

	h = newEstablished(t)
	require.Zero(t, h.s.Deadline())
	h.s.SetKeepAlive(h.now, subflow.KeepAlive{})
	require.Equal(t, 15*time.Second, h.advanceToDeadline())
	h.want("probe", pkt{flags: ".", seq: 0, ack: 1})
	h.s.SetKeepAlive(h.now, subflow.KeepAlive{Idle: -1})
	require.Zero(t, h.s.Deadline())
}

// RFC 9293, Section 3.8.4: no keepalive while data is outstanding (MUST-26).
func TestNoKeepAliveWithDataInFlight(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) {
		c.KeepAlive = subflow.KeepAlive{Idle: time.Second, Interval: time.Second, Count: 1}
	})
	h.push(500)
	h.drain()
	h.advance(20 * time.Second)
	h.wantState(subflow.StateEstablished)
	h.want("only what is lost", pkt{flags: ".", seq: 1, ack: 1, len: 500})
	h.wantIdle("no probe")
}

func TestProbe(t *testing.T) {
	h := newEstablished(t)
	h.s.Probe()
	h.want("probe", pkt{flags: ".", seq: 0, ack: 1})
	h.wantIdle("once")
}

func TestPacketTooBig(t *testing.T) {
	h := newEstablished(t)
	h.push(3 * mss)
	h.drain()
	h.s.HandlePacketTooBig(h.now, localISS.Add(1+3*mss), 600)
	h.s.HandlePacketTooBig(h.now, localISS, 600)
	require.Equal(t, mss, h.s.MSS(), "quotes nothing of ours")
	h.s.HandlePacketTooBig(h.now, localISS.Add(1001), 620)
	require.Equal(t, 600, h.s.MSS())
	h.want("what was too big", pkt{flags: ".", seq: 1001, ack: 1, len: 600})
	require.True(t, h.rng.Retransmit)
	h.want("its rest", pkt{flags: ".", seq: 1601, ack: 1, len: 400})
	h.want("next", pkt{flags: ".", seq: 2001, ack: 1, len: 600})
	h.skip(1)
	h.wantIdle("the first got through")
	require.Empty(t, h.ctl.losses, "no congestion")
	h.s.HandlePacketTooBig(h.now, localISS.Add(1), 700)
	require.Equal(t, 600, h.s.MSS(), "never larger")
	h.s.HandlePacketTooBig(h.now, localISS.Add(1), 68)
	require.Equal(t, 532-20, h.s.MSS(), "bounded")
}

func TestPacketTooBigCutsSuperSegments(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.SegmentMax = 10 * mss })
	h.fill(5)
	h.s.HandlePacketTooBig(h.now, localISS.Add(1), 620)
	seg := h.want("again", pkt{flags: ".", seq: 1, ack: 1, len: 5000})
	require.Equal(t, 600, seg.SegSize)
}

func TestUnreachable(t *testing.T) {
	h := newSynSent(t)
	h.s.HandleUnreachable(h.now, localISS.Add(1), true)
	h.wantState(subflow.StateSynSent)
	h.s.HandleUnreachable(h.now, localISS, false)
	h.wantState(subflow.StateSynSent)
	h.s.HandleUnreachable(h.now, localISS, true)
	require.Equal(t, reason.CloseUnreachable, h.wantEvent("hard", subflow.EventClosed).Close)

	h = newEstablished(t, func(c *subflow.Config) { c.Retries = 1 })
	h.fill(1)
	h.s.HandleUnreachable(h.now, localISS.Add(1), true)
	h.wantState(subflow.StateEstablished)
	h.advance(10 * time.Second)
	h.wantEvent("timeout", subflow.EventTimeout)
	require.Equal(t, reason.CloseUnreachable, h.wantEvent("why nothing got through", subflow.EventClosed).Close)
}

func TestPushWhenClosedPanics(t *testing.T) {
	h := newFinWait1(t)
	require.Zero(t, h.s.Room(h.now, 10))
	require.Panics(t, func() { h.push(1) })
	require.NotPanics(t, func() { h.push(0) })
}
