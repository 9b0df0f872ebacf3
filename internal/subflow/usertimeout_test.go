package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

func userTimeout(d time.Duration) knob {
	return func(c *subflow.Config) { c.UserTimeout = d }
}

// closesAfter lets time pass until the subflow has closed.
func (h *harness) closesAfter(d time.Duration) {
	h.t.Helper()
	h.advance(d - time.Nanosecond)
	require.NotEqual(h.t, subflow.StateClosed, h.s.State())
	h.advance(time.Nanosecond)
	require.Equal(h.t, subflow.StateClosed, h.s.State())
	for {
		e, ok := h.s.PollEvent()
		require.True(h.t, ok)
		if e.Kind == subflow.EventClosed {
			require.Equal(h.t, reason.CloseTimeout, e.Close)
			return
		}
	}
}

func TestUserTimeoutOfData(t *testing.T) {
	h := newEstablished(t, userTimeout(5*time.Second))
	h.fill(2)
	h.wait(3000)
	h.drain()
	h.in(sackAck(1)) // progress
	h.drain()
	h.closesAfter(5 * time.Second)
}

func TestUserTimeoutDoesNotCountIdleness(t *testing.T) {
	h := newEstablished(t, userTimeout(time.Second))
	h.fill(1)
	h.in(sackAck(1))
	require.Zero(t, h.s.Deadline())
	h.wait(10000)
	h.push(mss)
	h.drain()
	h.closesAfter(time.Second)
}

func TestUserTimeoutOfTheSYN(t *testing.T) {
	h := newSynSent(t, userTimeout(2500*time.Millisecond))
	h.closesAfter(2500 * time.Millisecond)
}

func TestUserTimeoutIsChanged(t *testing.T) {
	h := newEstablished(t)
	h.fill(1)
	h.wait(2000)
	h.s.SetUserTimeout(h.now, 3*time.Second)
	h.closesAfter(3 * time.Second)
}

// A peer that answers window probes may keep its window closed for as long as
// it likes (MUST-37); one that does not may not.
func TestUserTimeoutBehindAClosedWindow(t *testing.T) {
	h := newEstablished(t, userTimeout(3*time.Second))
	h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: closedWindow})
	h.s.Room(h.now, 100)
	h.s.SetBlocked(h.now, true)
	for range 20 {
		h.advanceToDeadline()
		h.drain()
		h.in(pkt{flags: ".", seq: 1, ack: 1, wnd: closedWindow})
	}
	h.wantState(subflow.StateEstablished)
	heard := h.now
	for h.s.State() != subflow.StateClosed {
		h.advanceToDeadline()
		h.drain()
	}
	require.GreaterOrEqual(t, h.now.Sub(heard), 3*time.Second)
}
