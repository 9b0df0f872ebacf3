package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/subflow"
)

// RFC 5961, Section 3.2, at every border: silence outside of the window, a
// challenge inside of it, and a reset at RCV.NXT alone.
func TestRSTAtTheBordersOfTheWindow(t *testing.T) {
	const window = 5000
	for _, c := range []struct {
		seq              int
		challenge, reset bool
	}{
		{seq: 0},
		{seq: 1, reset: true},
		{seq: 2, challenge: true},
		{seq: window, challenge: true},
		{seq: window + 1},
		{seq: 1 << 30},
		{seq: -1 << 30},
	} {
		h := newEstablishedWithWindow(t, window)
		h.in(pkt{flags: "R", seq: c.seq})
		require.Equal(t, c.reset, h.s.State() == subflow.StateClosed, "%+v", c)
		if c.challenge {
			h.want("challenge", pkt{flags: ".", seq: 1, ack: 1})
		}
		h.wantIdle("nothing more")
	}
}

// Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT, with data as
// without; MAX.SND.WND is the largest ever, not the present window.
func TestACKAtTheBordersOfWhatIsPlausible(t *testing.T) {
	for _, c := range []struct {
		ack int
		ok  bool
	}{
		{ack: 20001, ok: true}, {ack: 20002}, {ack: 10001 - peerWindow, ok: true}, {ack: 10000 - peerWindow},
	} {
		h := newEstablished(t)
		h.ctl.cwnd = 100 * mss
		h.fill(20)
		h.in(pkt{flags: ".", seq: 1, ack: 10001, wnd: 1000})
		h.in(pkt{flags: ".", seq: 1, ack: c.ack, len: 10})
		n := 0
		if c.ok {
			n = 10
		}
		require.Equal(t, n, h.data(), "%+v", c)
		h.want("an ACK in any case", pkt{flags: ".", seq: 20001, ack: 1 + n})
	}
}

// Section 7: "The values for both the time and number of ACKs SHOULD be
// tunable". One connection's answers do not count for another.
func TestChallengeLimitIsTunable(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.ChallengeACKs = 2 })
	other := newEstablished(t)
	for range 3 {
		for i := range 5 {
			h.in(pkt{flags: "S", seq: 100})
			_, ok := h.s.PollSegment(h.now, &h.last)
			require.Equal(t, i < 2, ok)
		}
		h.wait(float64(time.Second / time.Millisecond))
	}
	other.in(pkt{flags: "S", seq: 100})
	other.want("its own limit", pkt{flags: ".", seq: 1, ack: 1})
}
