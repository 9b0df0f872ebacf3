package mpconn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// tangled leads to the rare case of RFC 8684, Section 3.7: the only subflow,
// that of path 0, carries data of a subflow that died, so that what comes on it
// is not contiguous, and a checksum fails on it. The receiver resets it with
// MP_FAIL. It has back bytes of its own under way.
func tangled(l *lab, back int) *lab {
	t := l.t
	l.a.cfg.Checksum = true
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.paths[1].down = true
	l.a.write(60_000)
	l.b.write(back)
	l.idle(25 * time.Millisecond) // path 0 has gone on beyond what path 1 lost
	l.paths[1].down = false
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
		e.pump()
	}
	hit := l.spoil(0, l.a, 0)
	l.run("MP_FAIL", time.Minute, func() bool {
		l.a.readAll()
		l.b.readAll()
		return len(l.b.resets(0)) > 0 && l.a.count(EventSubflowLost) == 2
	})
	require.True(t, *hit)
	require.NotZero(t, l.b.resets(0)[0].Has&wire.OptMPFail)
	return l
}

// RFC 8684, Section 3.7: "The sender MAY attempt to create a new subflow
// belonging to the same connection and, if it chooses to do so, SHOULD
// immediately place the single subflow in single-path mode by setting an
// infinite Data Sequence Mapping. This mapping will begin from the data-level
// sequence number that was declared in the MP_FAIL." Both are plain TCP then,
// for good, and no byte is wrong. Where the other direction's bytes are not in
// line, either side goes on with MPTCP.
func TestSinglePathAfterMPFailOnReset(t *testing.T) {
	for _, back := range []int{0, 5_000, 60_000} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(back, seed), func(t *testing.T) {
				l := tangled(newLab(t, seed, 2), back)
				told := l.b.resets(0)[0].FailDSN
				l.join(1)
				l.paths[1].loss = float64(seed) / 100
				goal := l.a.wrote + 300_000
				l.run("data", 5*time.Minute, func() bool {
					if l.a.count(EventSubflowLost) == l.a.count(EventSubflowOpened) {
						l.join(1)
					}
					l.a.write(min(goal-l.a.wrote, 64<<10))
					l.a.readAll()
					l.b.readAll()
					return l.b.read == goal && l.a.read == l.b.wrote
				})
				require.Zero(t, l.a.wrong+l.b.wrong)
				inf := infinites(l.a.sent)
				if back > 14200 && len(inf) == 0 { // more than an initial window, on both paths
					return
				}
				require.NotEmpty(t, inf)
				require.Empty(t, l.b.resets(1))
				require.LessOrEqual(t, inf[0].DSS.DSN, uint64(told), "nothing is left out")
				require.Equal(t, uint32(1), inf[0].DSS.SSN, "at once")
				for _, e := range []*end{l.a, l.b} {
					require.NotEqual(t, reason.FallbackNone, e.conn.Fallback(), e.name)
					require.False(t, e.conn.Joinable(), e.name)
				}
				l.paths[1].loss = 0 // nobody keeps TIME-WAIT here
				l.a.closeWrite()
				l.b.closeWrite()
				l.wantClosed(reason.CloseDone, reason.CloseDone)
			})
		}
	}
}

// A peer that refuses an infinite mapping on a joined subflow, as Linux does,
// resets it; the next one carries on with MPTCP, from where the data stopped.
func TestSinglePathRefused(t *testing.T) {
	l := newLab(t, 7, 2)
	l.b.cfg.RequireMPTCP = true
	tangled(l, 0)
	l.join(1)
	l.run("refusal", 10*time.Second, func() bool { return l.a.count(EventSubflowLost) == 3 })
	require.NotEmpty(t, infinites(l.a.sent))
	before := len(l.a.sent)
	l.join(1)
	l.run("data", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	require.Empty(t, infinites(l.a.sent[before:]))
	for _, e := range []*end{l.a, l.b} {
		require.Equal(t, reason.FallbackNone, e.conn.Fallback(), e.name)
	}
}
