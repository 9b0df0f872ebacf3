package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// RFC 8684, Section 3.5, option A: MP_FASTCLOSE on the ACK of one subflow, RST
// on the others; the peer answers with RSTs, and both are done.
func TestAbortByACK(t *testing.T) {
	l := newLab(t, 1, 2)
	l.a.cfg.FastCloseByACK = true
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.a.conn.Abort(l.now)
	l.a.pump()
	require.False(t, l.a.conn.Closed(), "FASTCLOSE_WAIT")
	require.Zero(t, l.a.write(100))
	sent := l.a.carrying(wire.OptFastClose)
	require.Len(t, sent, 1)
	require.Equal(t, [8]byte(keyB), sent[0].FastClose)
	require.Zero(t, sent[0].Flags&wire.RST)
	path := int(sent[0].Src.Addr().As4()[2])
	require.Empty(t, l.a.resets(path))
	require.Len(t, l.a.resets(1-path), 1)
	l.wantClosed(reason.CloseLocalReset, reason.CloseFastClose)
	require.Len(t, l.b.resets(path), 1)
	require.Empty(t, l.b.carrying(wire.OptFastClose))
}

// RFC 8684, Section 3.5: unanswered, it is sent again after one RTO, three
// times, and then on a RST.
func TestAbortByACKUnanswered(t *testing.T) {
	l := newLab(t, 1, 1)
	l.a.cfg.FastCloseByACK = true
	l.connect()
	l.prove()
	l.paths[0].down = true
	start := l.now
	l.a.conn.Abort(l.now)
	l.a.pump()
	l.run("end", time.Minute, func() bool { return l.a.conn.Closed() })
	sent := l.a.carrying(wire.OptFastClose)
	require.Len(t, sent, 1+maxFastCloses+1)
	for i, s := range sent {
		require.Equal(t, i == 1+maxFastCloses, s.Flags.Has(wire.RST))
	}
	require.GreaterOrEqual(t, l.now.Sub(start), 4*200*time.Millisecond)
}

// RFC 8684, Section 3.5: fast closes that cross, in any pair of forms.
func TestAbortsCross(t *testing.T) {
	for _, form := range []struct{ a, b bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		l := newLab(t, 1, 2)
		l.a.cfg.FastCloseByACK, l.b.cfg.FastCloseByACK = form.a, form.b
		l.connect()
		l.prove()
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		l.a.write(50_000)
		l.a.conn.Abort(l.now)
		l.b.conn.Abort(l.now)
		start := l.now
		l.a.pump()
		l.b.pump()
		l.wantClosed(reason.CloseLocalReset, reason.CloseLocalReset)
		require.Less(t, l.now.Sub(start), 100*time.Millisecond, "%+v", form)
	}
}

// A lost answer to option A: the repetition meets a connection that is gone,
// whose host answers with a RST.
func TestAbortByACKAnswerLost(t *testing.T) {
	l := newLab(t, 1, 1)
	l.a.cfg.FastCloseByACK = true
	l.connect()
	l.prove()
	l.paths[0].box = func(from *end, _ *wire.Segment) bool { return from == l.a }
	l.a.conn.Abort(l.now)
	l.a.pump()
	l.wantClosed(reason.CloseLocalReset, reason.CloseFastClose)
}

// RFC 8684, Section 3.6: every reason and the T flag reach the other side's
// path manager; what may pass is marked so by us.
func TestResetReasons(t *testing.T) {
	for code := reason.ResetUnspecified + 1; code <= reason.ResetMiddlebox; code++ {
		l := joined(t, 1)
		require.True(t, l.a.conn.CloseSubflow(l.now, 1, code))
		l.a.pump()
		l.run("reset", time.Second, func() bool { return l.b.count(EventSubflowLost) == 1 })
		e := l.b.events[len(l.b.events)-1]
		require.Equal(t, code, e.Reset)
		passes := code == reason.ResetResources || code == reason.ResetOutstanding || code == reason.ResetPerformance
		require.Equal(t, passes, e.Transient, "%v", code)
		require.False(t, l.b.conn.Closed())
	}
	// A code of a future registry passes through; MP_TCPRST off a RST is none.
	l := joined(t, 1)
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a {
			seg.Has |= wire.OptMPTCPRst
			seg.TCPRst = wire.TCPRst{Reason: 200, Transient: true}
		}
		return true
	}
	l.transfer(l.a, l.b, 100_000, time.Minute, nil)
	require.Zero(t, l.b.count(EventSubflowLost))
	l.a.conn.CloseSubflow(l.now, 1, reason.ResetMPTCP)
	l.a.pump()
	l.run("reset", time.Second, func() bool { return l.b.count(EventSubflowLost) == 1 })
	require.EqualValues(t, 200, l.b.events[len(l.b.events)-1].Reset)
	require.True(t, l.b.events[len(l.b.events)-1].Transient)
}

// RFC 8684, Section 3.1, flag C, on both sides: each can ask, each obeys.
func TestDenyJoinInitialBothSides(t *testing.T) {
	l := newLab(t, 1, 2)
	l.a.cfg.DenyJoinInitial, l.b.cfg.DenyJoinInitial = true, true
	l.connect()
	l.prove()
	require.True(t, l.a.conn.PeerDeniesInitial())
	require.True(t, l.b.conn.PeerDeniesInitial())
	_, ok := l.b.conn.Open(l.now, OpenArgs{Local: l.b.at(1), Remote: l.a.at(0)})
	require.False(t, ok)
	l.join(1)
	for _, s := range append(l.a.carrying(wire.OptMPCapable), l.b.carrying(wire.OptMPCapable)...) {
		require.NotZero(t, s.Capable.Flags&wire.CapDenyJoin)
	}
}
