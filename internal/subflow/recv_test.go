package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// RFC 9293, Section 3.8.6.3: "An ACK SHOULD be generated for at least every
// second full-sized segment or 2*RMSS bytes of new data".
func TestDelayedACK(t *testing.T) {
	h := newEstablished(t)
	n := h.quickly()
	h.in(pkt{flags: ".", seq: n, ack: 1, len: mss})
	h.wantIdle("delayed")
	h.in(pkt{flags: "P.", seq: n + mss, ack: 1, len: mss})
	h.want("every second", pkt{flags: ".", seq: 1, ack: n + 2*mss})
	n += 2 * mss
	h.in(pkt{flags: ".", seq: n, ack: 1, len: mss})
	h.wantIdle("delayed")
	require.Equal(t, 40*time.Millisecond, h.advanceToDeadline())
	h.want("in the end", pkt{flags: ".", seq: 1, ack: n + mss})
	n += mss
	h.in(pkt{flags: ".", seq: n, ack: 1, len: mss})
	h.push(10)
	h.want("rides on data", pkt{flags: ".", seq: 1, ack: n + mss, len: 10})
	h.advance(50 * time.Millisecond)
	h.wantIdle("the timer is off")
}

func TestDelayedACKOff(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.DelayedACK = -1 })
	n := h.quickly()
	for i := range 4 {
		h.in(pkt{flags: ".", seq: n + i, ack: 1, len: 1})
		h.want("at once", pkt{flags: ".", seq: 1, ack: n + i + 1})
	}
}

// putOff lets ACKs wait for the user's answer.
func putOff(c *subflow.Config) { c.PutOff = true }

// RFC 9293, Section 3.8.6.3: "An ACK SHOULD be generated for at least every
// second full-sized segment", and "the delay MUST be less than 0.5 seconds".
func TestFirstACKsGoWithTheAnswer(t *testing.T) {
	h := newEstablished(t, putOff)
	h.in(pkt{flags: "P.", seq: 1, ack: 1, len: 10})
	h.wantIdle("the user may answer")
	h.push(20)
	h.want("the answer", pkt{flags: ".", seq: 1, ack: 11, len: 20})
	h.advance(50 * time.Millisecond)
	h.wantIdle("the timer is off")
	h.in(pkt{flags: "P.", seq: 11, ack: 21, len: 10})
	h.wantIdle("the user may answer")
	require.True(t, h.s.AwaitInput())
	h.want("the user waits for more", pkt{flags: ".", seq: 21, ack: 21})
	require.False(t, h.s.AwaitInput())
	h.wantIdle("once is enough")
	h.in(pkt{flags: "P.", seq: 21, ack: 21, len: 10})
	h.wantIdle("the user may answer")
	require.Equal(t, 40*time.Millisecond, h.advanceToDeadline())
	h.want("but does not", pkt{flags: ".", seq: 21, ack: 31})
	h.in(pkt{flags: "P.", seq: 31, ack: 21, len: 10})
	h.in(pkt{flags: "P.", seq: 41, ack: 21, len: 10})
	h.want("every second at once", pkt{flags: ".", seq: 21, ack: 51})
	h.in(pkt{flags: ".", seq: 51, ack: 21, len: 10})
	h.want("the peer has more to say", pkt{flags: ".", seq: 21, ack: 61})
	h.in(pkt{flags: "P.", seq: 61, ack: 21, len: 3 * mss})
	h.want("many packets merged", pkt{flags: ".", seq: 21, ack: 61 + 3*mss})
	h.in(pkt{flags: "P.", seq: 71 + 3*mss, ack: 21, len: 10})
	h.want("beyond a hole", pkt{flags: ".", seq: 21, ack: 61 + 3*mss, sack: [][2]int{{71 + 3*mss, 81 + 3*mss}}})
}

// A FIN too is acknowledged along with what the user does about it, unless it
// was all that was waited for.
func TestACKOfFINGoesWithTheFIN(t *testing.T) {
	h := newEstablished(t, putOff)
	h.in(pkt{flags: "F.", seq: 1, ack: 1})
	h.wantIdle("the user may close as well")
	h.s.Close(h.now)
	h.want("FIN", pkt{flags: "F.", seq: 1, ack: 2})

	h = newEstablished(t, putOff)
	h.in(pkt{flags: "F.", seq: 1, ack: 1})
	require.Equal(t, 40*time.Millisecond, h.advanceToDeadline())
	h.want("the user does not", pkt{flags: ".", seq: 1, ack: 2})

	h = newFinWait1(t, putOff)
	h.in(pkt{flags: "F.", seq: 1, ack: 1})
	h.want("the other FIN is on its way", pkt{flags: ".", seq: 2, ack: 2})

	h = newFinWait2(t, putOff)
	h.in(pkt{flags: "F.", seq: 1, ack: 2})
	h.want("it was the last", pkt{flags: ".", seq: 2, ack: 2})
}

// RFC 5681, Section 4.2: out-of-order segments and those that fill a gap are
// acknowledged at once. RFC 2018, Section 4: the block with the segment that
// triggered the ACK comes first, then those most recently reported.
func TestSACKGeneration(t *testing.T) {
	h := newEstablished(t)
	n := h.quickly()
	at := func(i int) int { return n + 100*i }
	deliver := func(i int) { h.in(pkt{flags: ".", seq: at(i), ack: 1, len: 100}) }
	want := func(why string, ack int, blocks ...[2]int) {
		t.Helper()
		p := pkt{flags: ".", seq: 1, ack: at(ack)}
		for _, b := range blocks {
			p.sack = append(p.sack, [2]int{at(b[0]), at(b[1])})
		}
		h.want(why, p)
	}
	deliver(1)
	want("first hole", 0, [2]int{1, 2})
	deliver(3)
	want("second", 0, [2]int{3, 4}, [2]int{1, 2})
	deliver(5)
	want("third", 0, [2]int{5, 6}, [2]int{3, 4}, [2]int{1, 2})
	deliver(2)
	want("joined", 0, [2]int{1, 4}, [2]int{5, 6})
	deliver(7)
	deliver(9)
	deliver(11)
	want("four at most", 0, [2]int{11, 12}, [2]int{9, 10}, [2]int{7, 8}, [2]int{1, 4})
	deliver(0)
	want("filled in part", 4, [2]int{11, 12}, [2]int{9, 10}, [2]int{7, 8}, [2]int{5, 6})
	for _, i := range []int{4, 6, 8, 10} {
		deliver(i)
		h.skip(1)
	}
	h.in(pkt{flags: ".", seq: at(12), ack: 1, len: 1})
	h.wantIdle("all in order again: delayed")
	require.Equal(t, 1201, h.data())
}

// RFC 2883, Section 4: a duplicate is reported once, in the first block.
func TestDSACK(t *testing.T) {
	h := newEstablished(t)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 200})
	h.skip(1)
	h.in(pkt{flags: ".", seq: 301, ack: 1, len: 100})
	h.want("hole", pkt{flags: ".", seq: 1, ack: 201, sack: [][2]int{{301, 401}}})
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 100})
	h.want("before the window", pkt{flags: ".", seq: 1, ack: 201, sack: [][2]int{{1, 101}, {301, 401}}})
	h.in(pkt{flags: ".", seq: 301, ack: 1, len: 100})
	h.want("beyond the hole", pkt{flags: ".", seq: 1, ack: 201, sack: [][2]int{{301, 401}, {301, 401}}})
	h.in(pkt{flags: ".", seq: 151, ack: 1, len: 100})
	h.want("in part", pkt{flags: ".", seq: 1, ack: 251, sack: [][2]int{{151, 201}, {301, 401}}})
	h.s.RequestAck()
	h.want("once", pkt{flags: ".", seq: 1, ack: 251, sack: [][2]int{{301, 401}}})
	require.Equal(t, 250, h.data())
}

func TestSACKLeavesRoom(t *testing.T) {
	h := newEstablished(t, timestamps, func(c *subflow.Config) { c.Room.ACK = 12 })
	for _, at := range []int{101, 301, 501} {
		h.in(pkt{flags: ".", seq: at, ack: 1, len: 100})
	}
	h.want("one block beside timestamps and 12 bytes", pkt{flags: ".", seq: 1, ack: 1, sack: [][2]int{{501, 601}}})
	require.True(t, h.s.ForceAck(h.now, &h.last, 20))
	require.Zero(t, h.last.Has&wire.OptSACK)
	require.True(t, h.s.ForceAck(h.now, &h.last, 0))
	require.EqualValues(t, 3, h.last.NumSACK)
	require.False(t, h.s.ForceAck(h.now, &h.last, 32), "timestamps leave 28")
}

func TestHoleIsReportedBesideData(t *testing.T) {
	h := newEstablished(t)
	h.push(2 * mss)
	h.in(pkt{flags: ".", seq: 101, ack: 1, len: 100})
	sack := [][2]int{{101, 201}}
	h.want("first an ACK alone", pkt{flags: ".", seq: 1, ack: 1, sack: sack})
	h.want("a full segment has no room for SACK", pkt{flags: ".", seq: 1, ack: 1, len: mss})
	h.skip(1)
	h.push(100)
	h.want("a short one has", pkt{flags: ".", seq: 1 + 2*mss, ack: 1, len: 100, sack: sack})
}

func TestSegmentsOverlappingTheWindowAreTrimmed(t *testing.T) {
	h := newEstablished(t)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 100})
	h.skip(1)
	h.in(pkt{flags: ".", seq: 51, ack: 1, len: 100})
	h.want("the new half", pkt{flags: ".", seq: 1, ack: 151, sack: [][2]int{{51, 101}}})
	edge := 1 + 65535 // offered by the SYN
	h.in(pkt{flags: ".", seq: edge - 10, ack: 1, len: 100})
	h.want("up to the edge", pkt{flags: ".", seq: 1, ack: 151, sack: [][2]int{{edge - 10, edge}}})
	require.Equal(t, 150, h.data())
	require.EqualValues(t, 1, h.s.Stats().Drops[reason.DropOutOfWindow])
}

func TestViewsAreCutAnywhere(t *testing.T) {
	h := newEstablished(t)
	seg := h.segment(pkt{flags: ".", seq: 1, ack: 1, len: 1000})
	b := seg.Payload[0]
	for _, from := range []int{0, 3, 250, 251, 999} {
		h.in(pkt{flags: ".", seq: 1, ack: 1, len: from})
		again := h.segment(pkt{flags: ".", seq: 1, ack: 1, len: 0})
		again.Payload = [][]byte{b[:3], b[3:250], nil, b[250:251], b[251:]}
		h.s.HandleSegment(h.now, again)
	}
	require.Equal(t, 1000, h.data())
}

func TestZeroReceiveWindow(t *testing.T) {
	h := newEstablishedWithWindow(t, 3000)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 3000})
	h.s.SetReceiveWindow(0)
	h.want("full", pkt{flags: ".", seq: 1, ack: 3001, wnd: closedWindow})
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 3001, ack: 1, len: 1}), "a probe")
	h.want("its byte is not taken", pkt{flags: ".", seq: 1, ack: 3001, wnd: closedWindow})
	h.push(10)
	h.skip(1)
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 3001, ack: 11}), "ACKs count")
	require.EqualValues(t, 10, h.s.Acked())
	require.Equal(t, 3000, h.data())
	h.s.SetReceiveWindow(500)
	h.wantIdle("not worth telling (SWS)")
	h.s.SetReceiveWindow(2000)
	h.want("window update", pkt{flags: ".", seq: 11, ack: 3001, wnd: 2000})
	h.s.SetReceiveWindow(3000)
	h.wantIdle("the peer can go on")
	h.in(pkt{flags: "R", seq: 3001})
	h.wantState(subflow.StateClosed)
}

// newEstablishedWithWindow returns a client that offered so many bytes.
func newEstablishedWithWindow(t *testing.T, window int) *harness {
	h := newHarness(t)
	h.s = subflow.Open(h.now, harnessConfig(), h.ctl)
	h.s.SetReceiveWindow(window)
	require.EqualValues(t, window, h.want("SYN", pkt{flags: "S"}).Wnd)
	h.in(pkt{flags: "S.", ack: 1})
	h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1, wnd: window})
	h.wantEvent("established", subflow.EventEstablished)
	return h
}

// With a buffer below two segments half of it is worth an ACK.
func TestSmallReceiveBuffer(t *testing.T) {
	h := newEstablishedWithWindow(t, 600)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 600})
	h.s.SetReceiveWindow(0)
	h.want("full", pkt{flags: ".", seq: 1, ack: 601, wnd: closedWindow})
	h.s.SetReceiveWindow(298)
	h.wantIdle("less than half")
	h.s.SetReceiveWindow(300)
	h.want("half", pkt{flags: ".", seq: 1, ack: 601, wnd: 300})
}

// That a SYN can tell only 64 KiB of the window is no reason for an ACK.
func TestNoUpdateAfterTheHandshake(t *testing.T) {
	h := newHarness(t)
	cfg := harnessConfig()
	cfg.MaxWindow = 1 << 20
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S"}))
	h.s.SetReceiveWindow(1 << 20)
	h.skip(1)
	h.s.SetReceiveWindow(1 << 20)
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.s.SetReceiveWindow(1 << 20)
	h.wantIdle("no update")
}

// RFC 8684, Section 3.3.4: the connection's window is offered as it is, for
// other subflows offer the same. Only a segment that neither acknowledges nor
// sends anything new keeps a larger one, as Linux would do with it.
func TestReceiveWindowIsOfferedAsSet(t *testing.T) {
	h := newEstablishedWithWindow(t, 10000)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10000})
	for _, w := range [][2]int{{500, 500}, {502, 502}, {2, 502}, {10000, 10000}, {9998, 10000}} {
		h.s.SetReceiveWindow(w[0])
		h.s.RequestAck()
		h.want("no steps", pkt{flags: ".", seq: 1, ack: 10001, wnd: w[1]})
	}
	h.s.SetReceiveWindow(5000)
	h.push(2 * mss)
	h.want("the number of the ACK before", pkt{flags: ".", seq: 1, ack: 10001, len: mss, wnd: 10000})
	h.want("a new one", pkt{flags: ".", seq: 1001, ack: 10001, len: mss, wnd: 5000})
	h.s.SetReceiveWindow(3000)
	h.in(pkt{flags: ".", seq: 10001, ack: 2001, len: 1000})
	h.s.SetReceiveWindow(2000)
	h.s.RequestAck()
	h.want("with a new acknowledgment", pkt{flags: ".", seq: 2001, ack: 11001, wnd: 2000})
}

// What was offered is accepted, whatever is offered later.
func TestShrunkWindowStillTakesWhatWasOffered(t *testing.T) {
	h := newEstablishedWithWindow(t, 10000)
	h.s.SetReceiveWindow(4000)
	h.push(2 * mss)
	h.skip(1)
	h.want("the connection's window", pkt{flags: ".", seq: 1001, ack: 1, len: mss, wnd: 4000})
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10000})
	require.Equal(t, 10000, h.data())
	h.want("used up", pkt{flags: ".", seq: 2001, ack: 10001, wnd: closedWindow})
}

func TestFINBehindAFullWindow(t *testing.T) {
	h := newEstablishedWithWindow(t, 1000)
	h.in(pkt{flags: "F.", seq: 1, ack: 1, len: 1000})
	h.want("both", pkt{flags: ".", seq: 1, ack: 1002, wnd: closedWindow})
	h.wantState(subflow.StateCloseWait)
}

// A peer that has filled the window sends its bare ACKs from right behind it.
func TestACKFromBehindTheWindow(t *testing.T) {
	h := newEstablishedWithWindow(t, 2000)
	h.push(10)
	h.skip(1)
	h.in(pkt{flags: ".", seq: 1001, ack: 1, len: 1000}) // the first 1000 were lost
	h.drain()
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 2001, ack: 11}))
	require.EqualValues(t, 10, h.s.Acked())
}

// RFC 7323, Section 5.3: an old timestamp makes a segment unacceptable, unless
// it is a RST.
func TestPAWS(t *testing.T) {
	h := newEstablished(t, timestamps)
	h.tsIn = 6000
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10})
	require.EqualValues(t, 6000, h.want("echo", pkt{flags: ".", seq: 1, ack: 11}).TSEcr)
	h.tsIn = 5999
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: ".", seq: 11, ack: 1, len: 10}))
	require.EqualValues(t, 1, h.s.Stats().Drops[reason.DropPAWS])
	require.EqualValues(t, 6000, h.want("the echo stays", pkt{flags: ".", seq: 1, ack: 11}).TSEcr)
	none := func(s *wire.Segment) { s.Has &^= wire.OptTimestamps }
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: ".", seq: 11, ack: 1, len: 10, opt: none}))
	h.wantIdle("RFC 7323, Section 3.2: silently")
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 11, ack: 1, opt: none}), "a bare ACK does no harm")
	h.now = h.now.Add(25 * 24 * time.Hour)
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 11, ack: 1, len: 10}), "TS.Recent is too old to be relied on")
	require.EqualValues(t, 5999, h.want("and replaced", pkt{flags: ".", seq: 1, ack: 21}).TSEcr)
	h.tsIn = 100
	h.in(pkt{flags: "R", seq: 21})
	h.wantState(subflow.StateClosed)
}

// RFC 7323, Section 4.3: the timestamp echoed is that of the last segment that
// advanced the left edge.
func TestTSRecentIgnoresSegmentsBeyondAHole(t *testing.T) {
	h := newEstablished(t, timestamps)
	h.tsIn = 6000
	h.in(pkt{flags: ".", seq: 11, ack: 1, len: 10})
	require.EqualValues(t, 5000, h.want("hole", pkt{flags: ".", seq: 1, ack: 1, sack: [][2]int{{11, 21}}}).TSEcr)
	h.tsIn = 6001
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10})
	require.EqualValues(t, 6001, h.want("filled", pkt{flags: ".", seq: 1, ack: 21}).TSEcr)
}

func TestTimestampsWrap(t *testing.T) {
	h := newEstablished(t, timestamps)
	for i, ts := range []uint32{0x70000000, 0xe0000000, 10} {
		h.tsIn = ts
		require.Equal(t, subflow.Accepted, h.in(pkt{flags: ".", seq: 1 + i, ack: 1, len: 1}))
		require.Equal(t, ts, h.want("echo", pkt{flags: ".", seq: 1, ack: 2 + i}).TSEcr)
	}
}

func TestRequestAck(t *testing.T) {
	h := newEstablished(t)
	h.s.RequestAck()
	h.s.RequestAck()
	h.want("one", pkt{flags: ".", seq: 1, ack: 1})
	h.wantIdle("one")
	h.s.RequestAck()
	require.True(t, h.s.ForceAck(h.now, &h.last, 0))
	h.wantIdle("it counts")
	s := newSynSent(t)
	require.False(t, s.s.ForceAck(h.now, &h.last, 0))
	s.s.RequestAck()
	s.wantIdle("nothing to acknowledge")
}
