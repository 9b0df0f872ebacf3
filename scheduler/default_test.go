package scheduler_test

import (
	"testing"
	"time"

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
	pick := func(v *scheduler.View) scheduler.Decision { return newScheduler(t, "default").Pick(v) }
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Offset: 200 * mss, Bytes: mss, Reason: scheduler.ReasonAhead,
	}, pick(wide(fast, slow)))

	v := wide(fast, slow)
	v.Subflows[0].Room = mss
	require.Equal(t, uint64(0b01), pick(v).Send, "the fast one has room")

	// A queue of 50 ms on the way to the peer delays it as much: of 150 KB in
	// flight the path holds 120, at 1 KB/ms, and it takes 30 ms longer.
	v = wide(fast, slow)
	v.Subflows[1].Cwnd, v.Subflows[1].InFlight, v.Subflows[1].DeliveryRate = 300*mss, 150*mss, 1e6
	require.Equal(t, int64((50+30)*4*mss), pick(v).Offset)

	// The last 200 KB are the fast one's, but not if only the buffer ends there.
	v = wide(fast, slow)
	v.Unsent, v.Run = 200*mss, 200*mss
	require.Equal(t, int64(199*mss), pick(v).Offset)
	v.Sent, v.FlowSize = 1000*mss, 1200*mss
	require.True(t, pick(v).Wait)
	v.FlowSize, v.Unacked = 0, 0
	require.True(t, pick(v).Wait)
	v.Unsent = 201 * mss
	require.Equal(t, int64(200*mss), pick(v).Offset)

	// What lies beyond the window can't be sent.
	v = wide(fast, slow)
	v.SendWindow = 200 * mss
	require.Equal(t, scheduler.ReasonWindow, pick(v).Reason)
}

// What is sent ahead is a super-segment, where the path takes those, if that is
// little beside what waits.
func TestDefaultSendsWholeAhead(t *testing.T) {
	fast, slow := pipe(0, 20, 80, 80, mss), pipe(1, 120, 100, 10, mss)
	fast.Ssthresh = 80 * mss
	slow.Whole = 40 * mss
	for unsent, want := range map[int64]int{159 * mss: mss, 160 * mss: 40 * mss, 1000 * mss: 40 * mss} {
		v := wide(fast, slow)
		v.Unsent, v.Run = unsent, unsent
		require.Equal(t, scheduler.Decision{
			Send: 0b10, Offset: min(unsent-int64(want), 200*mss), Bytes: want, Reason: scheduler.ReasonAhead,
		}, newScheduler(t, "default").Pick(v))
	}
}

// 4 MB/s with an RTT of 20 ms and 1 MB/s with 100: a window turns around in 60
// ms, there by the slow one and back by the fast one, so that together they need
// one of 300 KB, and somewhat more. With 250 KB the slow one would bring the
// rate down to 3.5.
func TestDefaultKeepsAWindowForTheFast(t *testing.T) {
	fast, slow := pipe(0, 20, 80, 80, mss), pipe(1, 100, 100, 10, mss)
	pick := func(window int64) scheduler.Decision {
		v := wide(fast, slow)
		v.Unacked, v.SendWindow = 100*mss, window-100*mss
		return newScheduler(t, "default").Pick(v)
	}
	require.Equal(t, scheduler.ReasonWindow, pick(250*mss).Reason)
	require.Equal(t, uint64(0b10), pick(450*mss).Send)
	// A fixed send buffer is a window, too.
	v := wide(fast, slow)
	v.Unacked, v.SendBuffer, v.BufferMax = 100*mss, 250*mss, 250*mss
	require.Equal(t, scheduler.ReasonWindow, newScheduler(t, "default").Pick(v).Reason)

	// The other way round: the slower path is ten times as wide, and the window
	// is better used by it alone.
	thin, thick := pipe(0, 90, 4, 0, mss), pipe(1, 100, 400, 10, mss)
	v = wide(thin, thick)
	v.Unacked, v.SendWindow = 10*mss, 200*mss
	require.Equal(t, uint64(0b10), newScheduler(t, "default").Pick(v).Send)
}

// With a tight window no subflow has more on its way than its path holds, and a
// quarter of that, and what 5 ms bring: 100 KB at 1 MB/s and 100 ms, 25 KB and
// 5 KB. With a wide one it may fill its congestion window.
func TestDefaultMakesNoQueues(t *testing.T) {
	fast, slow := pipe(0, 100, 300, 0, mss), pipe(1, 400, 300, 300, mss)
	for i := range 2 {
		f := &fast
		if i == 1 {
			f = &slow
		}
		f.Ssthresh, f.DeliveryRate = 50*mss, 1e6
	}
	pick := func(inFlight int, window int64) scheduler.Decision {
		v := wide(fast, slow)
		f := &v.Subflows[0]
		f.InFlight = inFlight * mss
		f.Room = f.Cwnd - f.InFlight
		v.Unacked, v.SendWindow = 300*mss, window-300*mss
		return newScheduler(t, "default").Pick(v)
	}
	require.Equal(t, uint64(0b01), pick(131, 550*mss).Send)
	require.Equal(t, mss, pick(131, 550*mss).Bytes)
	require.Equal(t, scheduler.ReasonWindow, pick(132, 550*mss).Reason)
	require.Equal(t, uint64(0b01), pick(132, 2000*mss).Send)

	// What is given at once counts, before anything of it has left: a sixteenth of
	// the 100 KB, 5 KB and ten segments.
	s, v := newScheduler(t, "default"), wide(fast, slow)
	v.Unacked, v.SendWindow = 300*mss, 250*mss
	n := 0
	for ; s.Pick(v).Send == 0b01; n++ {
		v.Subflows[0].InFlight += mss
		v.Subflows[0].Room -= mss
	}
	require.Equal(t, 22, n)
}

// A subflow that has carried a few bytes only is not thought slow for that.
func TestDefaultDoesNotForgetTheIdle(t *testing.T) {
	idle, busy := pipe(0, 20, 10, 0, mss), pipe(1, 30, 100, 50, mss)
	idle.DeliveryRate, busy.DeliveryRate = 250, 3e6
	v := wide(idle, busy)
	v.Unacked, v.SendWindow = 50*mss, 200*mss
	require.Equal(t, uint64(0b01), newScheduler(t, "default").Pick(v).Send)
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

// Between paths of microseconds, round trips tell how busy the hosts are: nothing
// is repeated for a lead of less than a millisecond.
func TestDefaultDoesNotRepeatForChance(t *testing.T) {
	v := blocked(0b10, pipe(0, 1, 20, 10, mss), pipe(1, 1, 40, 40, mss))
	v.Sent = 100 * mss
	v.Holders = func(off int64) (uint64, int64) { return 0b10, v.Sent - off }
	v.Subflows[0].SRTT, v.Subflows[1].OldestSend = 50*time.Microsecond, v.Now
	s := newScheduler(t, "default")
	v.Subflows[1].SRTT = 1050 * time.Microsecond
	require.True(t, s.Pick(v).Wait)
	v.Subflows[1].SRTT = 1051 * time.Microsecond
	require.Equal(t, uint64(0b01), s.Pick(v).Send)
}

// The fastest subflow carries the first hole and has room, but does not fill it:
// the other one does, a round trip of the first later than it would otherwise.
func TestDefaultOvertakesAFaster(t *testing.T) {
	v := blocked(0b01, pipe(0, 20, 20, 1, mss), pipe(1, 50, 40, 0, mss))
	v.Sent = 100 * mss
	v.Subflows[0].OldestSend = v.Now
	v.Holders = func(off int64) (uint64, int64) {
		if off < mss {
			return 0b01, mss - off
		}
		return 0, v.Sent - off
	}
	s := newScheduler(t, "default")
	d := s.Pick(v)
	require.True(t, d.Wait)
	require.Equal(t, v.Now+(20+5+20)*ms, d.Until, "its round trip, what hosts take, and another")
	v.Now = d.Until
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Bytes: mss, Reason: scheduler.ReasonOvertake,
	}, s.Pick(v))
}

// While one subflow alone fills the window, and its round trip shows no queue, it
// may send all that the window lets it: only when others have halted it less.
func TestDefaultLetsOneFillTheWindow(t *testing.T) {
	alone, idle := pipe(0, 100, 400, 0, mss), pipe(1, 200, 10, 0, mss)
	alone.DeliveryRate, idle.DeliveryRate, idle.Reach = 2000*float64(mss), 50*float64(mss), mss
	sends := func(carried uint64) (n int) {
		s, v := newScheduler(t, "default"), wide(alone, idle)
		v.Unacked, v.SendWindow, v.SendBuffer, v.BufferMax = 0, 200*mss, 200*mss, 200*mss
		b := *v
		b.Ask, b.Carried, b.SendWindow, b.Unacked = scheduler.Spare, carried, 0, 200*mss
		s.Pick(&b)
		for v.SendWindow > 0 {
			d := s.Pick(v)
			if d.Send != 0b01 {
				break
			}
			given := min(d.Bytes, int(v.SendWindow))
			v.Subflows[0].InFlight += given
			v.Subflows[0].Room -= given
			v.Unacked, v.SendWindow = v.Unacked+int64(given), v.SendWindow-int64(given)
		}
		return int(v.Unacked / mss)
	}
	require.Equal(t, 200, sends(0b01))
	require.Less(t, sends(0b10), 100)
}

// What should have been acknowledged long ago is late, too, and the policy asks
// to be asked again when it will be.
func TestDefaultWaitsForTheLate(t *testing.T) {
	v := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	v.Sent = 100 * mss
	v.Holders = func(off int64) (uint64, int64) { return 0b10, v.Sent - off }
	v.Subflows[1].OldestSend = v.Now - 85*ms
	s := newScheduler(t, "default")
	d := s.Pick(v)
	require.Equal(t, uint64(0), d.Send)
	require.Equal(t, v.Now+(15+20)*ms, d.Until, "due in 15 ms, and a round trip of the other more")
	v.Now = d.Until
	require.Equal(t, uint64(0b01), s.Pick(v).Send)
}

// Ten segments that are all there is take the fastest subflow, and nothing of them need
// be repeated before their ACK is late. Of paths whose RTTs differ by less than they vary,
// and a millisecond at most, it is the first one, which is the same for both ends.
func TestDefaultSendsAMessage(t *testing.T) {
	near, far := pipe(0, 50, 20, 0, mss), pipe(1, 20, 20, 0, mss)
	size := int64(10 * mss)
	pick := func(v *scheduler.View) scheduler.Decision {
		v.Unacked, v.Unsent, v.Run = 0, size, size
		return newScheduler(t, "default").Pick(v)
	}
	v := wide(near, far)
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Until: v.Now + (20+5)*ms, Reason: scheduler.ReasonMinRTT,
	}, pick(v))
	v.Subflows[0].SRTT, v.Subflows[0].RTTVar = 20*ms+900*time.Microsecond, 500*time.Microsecond
	require.Equal(t, uint64(0b01), pick(v).Send)
	v.Subflows[0].RTTVar = 400 * time.Microsecond
	require.Equal(t, uint64(0b10), pick(v).Send, "not by chance")
	v.Subflows[0].SRTT, v.Subflows[0].RTTVar = 20*ms+1100*time.Microsecond, 5*ms
	require.Equal(t, uint64(0b10), pick(v).Send, "more than a millisecond")

	// Where more is on the way, or will not fit, it is not that simple.
	v.Sent = mss
	require.Zero(t, pick(v).Until)
	v.Sent, v.Subflows[1].Room = 0, 9*mss
	require.Zero(t, pick(v).Until)
	v.Subflows[1].Room, size = 20*mss, 10*mss+1
	require.Zero(t, pick(v).Until)
}

// A hole that the window will close on is filled before it does.
func TestDefaultRepairsTheHead(t *testing.T) {
	v := wide(pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	v.Sent, v.Unacked, v.SendWindow = 150*mss, 150*mss, 100*mss
	v.Subflows[1].Recovering, v.Subflows[1].OldestSend = true, v.Now-20*ms
	v.Holders = func(off int64) (uint64, int64) {
		if off < 3*mss {
			return 0b10, 3*mss - off
		}
		return 0b01, v.Sent - off
	}
	s := newScheduler(t, "default")
	require.False(t, s.Pick(v).Again)
	v.Now += 19 * ms
	require.False(t, s.Pick(v).Again, "less than a round trip")
	v.Now += ms
	require.Equal(t, scheduler.Decision{
		Send: 0b01, Again: true, Bytes: 3 * mss, Reason: scheduler.ReasonOvertake,
	}, s.Pick(v))
	require.False(t, s.Pick(v).Again, "once a round trip")
	v.Now += 20 * ms
	v.SendWindow = 200 * mss
	require.False(t, s.Pick(v).Again, "there is time")
}

// The fastest subflow holds up the window itself, though it has room: one that
// does not carry the hole fills it.
func TestDefaultRepairsTheHeadOfTheFastest(t *testing.T) {
	v := wide(pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 30, mss))
	v.Sent, v.Unacked, v.SendWindow = 150*mss, 150*mss, 100*mss
	v.Subflows[0].Recovering, v.Subflows[0].OldestSend = true, v.Now
	v.Holders = func(off int64) (uint64, int64) {
		if off < 3*mss {
			return 0b01, 3*mss - off
		}
		return 0b10, v.Sent - off
	}
	s := newScheduler(t, "default")
	require.False(t, s.Pick(v).Again)
	v.Now += 99 * ms
	require.False(t, s.Pick(v).Again, "less than a round trip of the other")
	v.Now += ms
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Bytes: 3 * mss, Reason: scheduler.ReasonOvertake,
	}, s.Pick(v))
}

// What else those carry that hold up the window follows at once, but not what
// others do, and not on a subflow that delivers less than another.
func TestDefaultRepairsWhatIsBehind(t *testing.T) {
	holders := []uint64{0b10, 0b01, 0b10, 0b110, 0b10}
	v := wide(pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss), pipe(2, 200, 40, 40, mss))
	v.Sent, v.Unacked, v.SendWindow = 5*mss, 150*mss, 100*mss
	v.Subflows[1].Recovering, v.Subflows[1].OldestSend = true, v.Now-20*ms
	v.Subflows[0].DeliveryRate, v.Subflows[1].DeliveryRate = 2, 1
	v.Holders = func(off int64) (uint64, int64) {
		if off >= v.Sent {
			return 0, 0
		}
		return holders[off/mss], mss - off%mss
	}
	repaired := func() (at []int64) {
		s := newScheduler(t, "default")
		s.Pick(v)
		v.Now += 20 * ms
		for d := s.Pick(v); d.Again; d = s.Pick(v) {
			at = append(at, d.Offset/mss)
		}
		return at
	}
	require.Equal(t, []int64{0, 2, 4}, repaired())
	v.Subflows[1].DeliveryRate = 3
	require.Equal(t, []int64{0}, repaired())
}

// A subflow of whose path nothing is known begins with bytes that nobody waits
// for, if many more follow.
func TestDefaultIntroducesPaths(t *testing.T) {
	v := wide(pipe(0, 20, 20, 20, mss), pipe(1, 100, 10, 0, mss))
	v.Sent = 20 * mss
	v.Subflows[0].Reach, v.Subflows[0].InFlight = 20*mss, 20*mss
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Bytes: 10 * mss, Reason: scheduler.ReasonNew,
	}, newScheduler(t, "default").Pick(v))
	v.Unsent, v.Run = 60*mss, 60*mss
	require.False(t, newScheduler(t, "default").Pick(v).Again)
}
