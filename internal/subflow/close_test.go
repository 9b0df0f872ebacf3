package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// constructors brings a subflow into each state. nxt is our SND.NXT and rcv
// the peer's.
var constructors = []struct {
	state    subflow.State
	make     func(*testing.T, ...knob) *harness
	nxt, rcv int
}{
	{subflow.StateSynReceived, newSynReceived, 1, 1},
	{subflow.StateEstablished, newEstablished, 1, 1},
	{subflow.StateFinWait1, newFinWait1, 2, 1},
	{subflow.StateFinWait2, newFinWait2, 2, 1},
	{subflow.StateCloseWait, newCloseWait, 1, 2},
	{subflow.StateClosing, newClosing, 2, 2},
	{subflow.StateLastAck, newLastAck, 2, 2},
}

// RFC 9293, Section 3.10.7.4, and RFC 5961: what each synchronized state, and
// SYN-RECEIVED, makes of each kind of segment.
func TestStateBySegment(t *testing.T) {
	for _, c := range constructors {
		una := c.nxt
		switch c.state {
		case subflow.StateFinWait1, subflow.StateClosing, subflow.StateLastAck:
			una-- // the FIN is not acknowledged
		case subflow.StateSynReceived:
			una = 0
		}
		challenge := pkt{flags: ".", seq: c.nxt, ack: c.rcv}
		good := pkt{seq: c.rcv, ack: una}
		if c.state == subflow.StateSynReceived {
			good.ack = 1
		}
		with := func(p pkt, f func(*pkt)) pkt { f(&p); return p }
		for _, x := range []struct {
			name   string
			in     pkt
			answer *pkt // nil = silence
			over   bool
			drop   reason.Drop
		}{
			{"RST at RCV.NXT", with(good, func(p *pkt) { p.flags = "R" }), nil, true, 0},
			{"RST in the window", with(good, func(p *pkt) { p.flags = "R"; p.seq++ }), &challenge, false, reason.DropRSTChallenge},
			{"RST before the window", with(good, func(p *pkt) { p.flags = "R"; p.seq-- }), nil, false, reason.DropOutOfWindow},
			{"RST beyond the window", with(good, func(p *pkt) { p.flags = "R"; p.seq += 1 << 20 }), nil, false, reason.DropOutOfWindow},
			{"SYN in the window", with(good, func(p *pkt) { p.flags = "S"; p.seq += 10 }), &challenge, false, reason.DropSYNChallenge},
			{"SYN out of the window", with(good, func(p *pkt) { p.flags = "S."; p.seq -= 100 }), &challenge, false, reason.DropSYNChallenge},
			{"no ACK", with(good, func(p *pkt) { p.flags = "" }), nil, false, reason.DropNoAck},
			{"data before the window", with(good, func(p *pkt) { p.flags = "."; p.seq -= 10; p.len = 5 }), &challenge, false, reason.DropDuplicateData},
			{"data beyond the window", with(good, func(p *pkt) { p.flags = "."; p.seq += 1 << 20; p.len = 5 }), &challenge, false, reason.DropOutOfWindow},
			{"keepalive probe", with(good, func(p *pkt) { p.flags = "."; p.seq-- }), &challenge, false, reason.DropOutOfWindow},
			{"ACK of the future", with(good, func(p *pkt) { p.flags = "."; p.ack = c.nxt + 1 }), &challenge, false, reason.DropBadAck},
			{"ACK of the distant past", with(good, func(p *pkt) { p.flags = "."; p.ack = una - 1<<20 }), &challenge, false, reason.DropBadAck},
			{"old data with a FIN", with(good, func(p *pkt) { p.flags = "F."; p.seq -= 10; p.len = 5 }), &challenge, false, reason.DropDuplicateData},
		} {
			t.Run(c.state.String()+"/"+x.name, func(t *testing.T) {
				h := c.make(t)
				before := h.s.Stats().Drops[x.drop]
				verdict := h.in(x.in)
				if x.over {
					require.Equal(t, subflow.Accepted, verdict)
					h.wantState(subflow.StateClosed)
					h.wantIdle("closed")
					require.Zero(t, h.s.Deadline())
					require.Equal(t, subflow.Dropped, h.in(good))
					return
				}
				require.Equal(t, subflow.Dropped, verdict)
				h.wantState(c.state)
				require.Equal(t, before+1, h.s.Stats().Drops[x.drop])
				switch {
				case x.answer == nil:
					h.wantIdle(x.name)
				case c.state == subflow.StateSynReceived && x.drop == reason.DropBadAck:
					h.want("RST", pkt{flags: "R", seq: x.in.ack})
				default:
					h.want(x.name, *x.answer)
					h.wantIdle("answered once")
				}
			})
		}
	}
}

// RFC 5961, Section 7: challenge ACKs are throttled.
func TestChallengeACKsAreLimited(t *testing.T) {
	h := newEstablished(t)
	answers := 0
	for range 100 {
		h.in(pkt{flags: "S", seq: 1})
		h.drain()
	}
	answers = int(h.s.Stats().SegsSent) - 2
	require.Equal(t, 10, answers)
	h.advance(time.Second)
	h.in(pkt{flags: "S", seq: 1})
	h.want("allowed again", pkt{flags: ".", seq: 1, ack: 1})
}

func TestActiveClose(t *testing.T) {
	h := newTimeWait(t)
	h.wantNoEvent("one last event")
	h.in(pkt{flags: "F.", seq: 1, ack: 2})
	h.want("the FIN again", pkt{flags: ".", seq: 2, ack: 2})
	require.True(t, h.s.PeerClosed())
	require.Zero(t, h.s.Deadline())
}

func TestTimeWaitTellsTheHostWhatItNeeds(t *testing.T) {
	h := newFinWait2(t, timestamps, func(c *subflow.Config) { c.TSOffset = 9 })
	h.tsIn = 6000
	h.in(pkt{flags: "F.", seq: 1, ack: 2})
	h.skip(1)
	e := h.wantEvent("TIME-WAIT", subflow.EventTimeWait)
	tw := e.TimeWait
	require.Equal(t, reason.CloseDone, e.Close)
	require.Equal(t, localISS.Add(2), tw.SndNxt)
	require.Equal(t, remoteISS.Add(2), tw.RcvNxt)
	require.True(t, tw.Timestamps)
	require.EqualValues(t, 6000, tw.TSRecent)
	require.Equal(t, h.last.TSVal, tw.TSVal(h.now))
	require.Equal(t, h.last.Wnd, tw.Window)
}

func TestPassiveClose(t *testing.T) {
	h := newLastAck(t)
	h.in(pkt{flags: ".", seq: 2, ack: 2})
	require.Equal(t, reason.CloseDone, h.wantEvent("done", subflow.EventClosed).Close)
	h.wantState(subflow.StateClosed)
	require.True(t, h.s.FINAcked())
}

// RFC 9293, Figure 13: simultaneous close.
func TestSimultaneousClose(t *testing.T) {
	h := newClosing(t)
	h.in(pkt{flags: ".", seq: 2, ack: 2})
	h.wantState(subflow.StateTimeWait)
	h.wantEvent("the host takes over", subflow.EventTimeWait)
}

func TestFINWithACKOfOurFIN(t *testing.T) {
	h := newFinWait1(t)
	h.in(pkt{flags: "F.", seq: 1, ack: 2, len: 3})
	h.wantState(subflow.StateTimeWait)
	require.False(t, h.s.PeerClosed(), "data comes first")
	require.Equal(t, 3, h.data())
	require.True(t, h.s.PeerClosed())
	h.want("ACK of all", pkt{flags: ".", seq: 2, ack: 5})
}

func TestFINFollowsPushedData(t *testing.T) {
	h := newEstablished(t)
	h.push(mss + 10)
	h.s.Close(h.now)
	h.wantState(subflow.StateFinWait1)
	require.Zero(t, h.s.Room(h.now, 100), "nothing may follow")
	h.want("first", pkt{flags: ".", seq: 1, ack: 1, len: mss})
	h.want("last, with FIN", pkt{flags: "F.", seq: 1 + mss, ack: 1, len: 10})
	h.wantIdle("all sent")
	h.in(pkt{flags: ".", seq: 1, ack: 11 + mss})
	h.wantState(subflow.StateFinWait1)
	h.advanceToDeadline()
	h.want("FIN again, alone", pkt{flags: "F.", seq: 11 + mss, ack: 1})
	h.in(pkt{flags: ".", seq: 1, ack: 12 + mss})
	h.wantState(subflow.StateFinWait2)
}

func TestFINOutOfOrder(t *testing.T) {
	h := newEstablished(t)
	h.in(pkt{flags: "F.", seq: 11, ack: 1, len: 10})
	h.want("hole", pkt{flags: ".", seq: 1, ack: 1, sack: [][2]int{{11, 21}}})
	h.wantState(subflow.StateEstablished)
	h.in(pkt{flags: ".", seq: 21, ack: 1, len: 10})
	require.EqualValues(t, 1, h.s.Stats().Drops[reason.DropOutOfWindow], "data behind the FIN")
	h.skip(1)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10})
	h.want("all of it and the FIN", pkt{flags: ".", seq: 1, ack: 22})
	h.wantState(subflow.StateCloseWait)
	require.Equal(t, 20, h.data())
	require.True(t, h.s.PeerClosed())
}

func TestLostFINIsSentAgain(t *testing.T) {
	for _, c := range constructors {
		if c.state != subflow.StateFinWait1 && c.state != subflow.StateClosing && c.state != subflow.StateLastAck {
			continue
		}
		h := c.make(t)
		h.advanceToDeadline()
		h.want("FIN again", pkt{flags: "F.", seq: 1, ack: c.rcv})
	}
}

func TestFinWait2Ends(t *testing.T) {
	h := newFinWait2(t)
	h.advance(30 * time.Second)
	h.in(pkt{flags: ".", seq: 1, ack: 2, len: 10})
	h.drain()
	h.advance(59 * time.Second)
	h.wantState(subflow.StateFinWait2)
	h.advance(2 * time.Second)
	require.Equal(t, reason.CloseTimeout, h.wantEvent("given up", subflow.EventClosed).Close)
}

func TestHalfClosedMayLast(t *testing.T) {
	h := newEstablished(t)
	h.s.CloseWrite(h.now)
	h.skip(1)
	h.in(pkt{flags: ".", seq: 1, ack: 2})
	h.advance(time.Hour)
	h.wantState(subflow.StateFinWait2)
	h.s.Close(h.now)
	h.advance(61 * time.Second)
	h.wantState(subflow.StateClosed)
}

func TestAbort(t *testing.T) {
	for _, c := range constructors {
		h := c.make(t)
		h.s.Abort(h.now)
		h.wantState(subflow.StateClosed)
		h.want("RST", pkt{flags: "R.", seq: c.nxt, ack: c.rcv})
		h.wantIdle("once")
		for {
			e, ok := h.s.PollEvent()
			require.True(t, ok)
			if e.Kind == subflow.EventClosed {
				require.Equal(t, reason.CloseLocalReset, e.Close)
				break
			}
		}
		h.s.Abort(h.now)
		h.s.Close(h.now)
		h.wantNoEvent("dead already")
	}
	h := newSynSent(t)
	h.s.Abort(h.now)
	h.wantIdle("nobody to tell")
	h = newTimeWait(t)
	h.s.Abort(h.now)
	h.wantIdle("the host's")
}

type countedOwner struct{ refs int }

func (o *countedOwner) DecRef() { o.refs-- }

func TestOwnersAreReleased(t *testing.T) {
	var owners [3]countedOwner
	h := newEstablished(t)
	give := func(i, at int) {
		owners[i].refs = 1
		seg := h.segment(pkt{flags: ".", seq: at, ack: 1, len: mss, opt: func(s *wire.Segment) { s.Owner = &owners[i] }})
		h.s.HandleSegment(h.now, seg)
		if seg.Owner != nil {
			seg.Owner.DecRef()
		}
	}
	give(0, 1)
	give(1, 1) // duplicate
	give(2, 1+2*mss)
	var d subflow.Data
	require.True(t, h.s.NextData(&d))
	if d.Owner != nil {
		d.Owner.DecRef()
	}
	h.s.Abort(h.now)
	for i := range owners {
		require.Zero(t, owners[i].refs, "owner %d", i)
	}
}
