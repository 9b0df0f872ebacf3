package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/scheduler"
)

// wide is a view of a connection whose buffers are no limit.
func wide(s ...scheduler.Subflow) *scheduler.View {
	v := view(s...)
	v.SendBuffer, v.BufferMax, v.Run = 1<<30, 1<<30, 1<<30
	v.Unacked = 1 << 30 // full: more will be written
	return v
}

// At 4 KB/ms, with forward delays of 10 and 60 ms, the slower subflow sends
// what lies 200 KB behind the head, which arrives in order.
func TestDefaultArrivesInOrder(t *testing.T) {
	fast, slow := pipe(0, 20, 80, 80, mss), pipe(1, 120, 100, 10, mss)
	fast.Ssthresh = 80 * mss
	s := newScheduler(t, "default")
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Offset: 200 * mss, Bytes: mss, Reason: scheduler.ReasonAhead,
	}, s.Pick(wide(fast, slow)))

	v := wide(fast, slow)
	v.Subflows[0].Room = mss
	require.Equal(t, uint64(0b01), s.Pick(v).Send, "the fast one has room")

	// A queue of 50 ms on the way to the peer delays it as much.
	v = wide(fast, slow)
	v.Subflows[1].SRTT += 50 * ms
	require.Equal(t, int64(400*mss), s.Pick(v).Offset)

	// The last 200 KB are the fast one's, but not if only the buffer ends there.
	v = wide(fast, slow)
	v.Unsent, v.Run = 200*mss, 200*mss
	require.Equal(t, int64(199*mss), s.Pick(v).Offset)
	v.Sent, v.FlowSize = 1000*mss, 1200*mss
	require.True(t, s.Pick(v).Wait)
	v.FlowSize, v.Unacked = 0, 0
	require.True(t, s.Pick(v).Wait)
	v.Unsent = 201 * mss
	require.Equal(t, int64(200*mss), s.Pick(v).Offset)

	// What lies beyond the window can't be sent.
	v = wide(fast, slow)
	v.SendWindow = 200 * mss
	require.Equal(t, scheduler.ReasonWindow, s.Pick(v).Reason)
}

// 4 MB/s with an RTT of 20 ms and 1 MB/s with 100: together they need a window
// of 500 KB, and somewhat more. With 300 KB the slow one would bring the rate
// down to 3.
func TestDefaultKeepsAWindowForTheFast(t *testing.T) {
	fast, slow := pipe(0, 20, 80, 80, mss), pipe(1, 100, 100, 10, mss)
	pick := func(window int64) scheduler.Decision {
		v := wide(fast, slow)
		v.Unacked, v.SendWindow = 100*mss, window-100*mss
		return newScheduler(t, "default").Pick(v)
	}
	require.Equal(t, scheduler.ReasonWindow, pick(300*mss).Reason)
	require.Equal(t, uint64(0b10), pick(700*mss).Send)
	// A fixed send buffer is a window, too.
	v := wide(fast, slow)
	v.Unacked, v.SendBuffer, v.BufferMax = 100*mss, 300*mss, 300*mss
	require.Equal(t, scheduler.ReasonWindow, newScheduler(t, "default").Pick(v).Reason)

	// The other way round: the slower path is ten times as wide, and the window
	// is better used by it alone.
	thin, thick := pipe(0, 20, 8, 0, mss), pipe(1, 100, 400, 10, mss)
	v = wide(thin, thick)
	v.Unacked, v.SendWindow = 10*mss, 400*mss
	require.Equal(t, uint64(0b10), newScheduler(t, "default").Pick(v).Send)
}

// While the window is blocked, or at the end, the fast subflow repeats what a
// slower one would deliver later.
func TestDefaultOvertakes(t *testing.T) {
	v := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	v.Sent = 100 * mss
	v.Subflows[1].OldestSend = v.Now - 20*ms
	v.Holders = func(off int64) (uint64, int64) {
		if off < 3*mss {
			return 0b01, 3*mss - off
		}
		return 0b10, 100*mss - off
	}
	s := newScheduler(t, "default")
	require.Equal(t, scheduler.Decision{
		Send: 0b01, Again: true, Offset: 3 * mss, Bytes: 10 * mss, Reason: scheduler.ReasonOvertake,
	}, s.Pick(v))
	v.Subflows[1].OldestSend = v.Now - 85*ms
	require.True(t, s.Pick(v).Wait, "its ACK is due in 15 ms")
	v.Subflows[1].Recovering = true
	require.Equal(t, uint64(0b01), s.Pick(v).Send, "unless it has lost something")
	v.SendWindow = mss
	require.True(t, s.Pick(v).Wait, "new data can be sent")
	v.Unsent, v.SendBuffer = 0, 1<<30
	require.Equal(t, uint64(0b01), s.Pick(v).Send, "the end")
}
