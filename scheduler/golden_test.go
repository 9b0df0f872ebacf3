package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/scheduler"
)

const ms = time.Millisecond

// pipe is a subflow with a window and bytes in flight, in segments of size
// bytes; what is left of the window is its room.
func pipe(id, rtt, cwnd, inFlight, size int) scheduler.Subflow {
	s := scheduler.Subflow{
		ID: id, SRTT: time.Duration(rtt) * ms, MinRTT: time.Duration(rtt) * ms, MSS: size,
		Cwnd: cwnd * size, InFlight: inFlight * size, Ssthresh: 1 << 40,
	}
	s.Room = s.Cwnd - s.InFlight
	return s
}

// blocked is a view of a connection whose window is used up while the byte at
// its edge is carried by the subflows of a set.
func blocked(carried uint64, s ...scheduler.Subflow) *scheduler.View {
	v := view(s...)
	v.Ask, v.Carried, v.SendWindow, v.Unacked = scheduler.Spare, carried, 0, 100*mss
	return v
}

// Golden values of NSDI 2012's two mechanisms as the kernel has them: RTTs of
// 20 and 100 ms have the head sent again and the slow window halved once in an
// RTT of the fast one; at a ratio below 4 nothing is sent again.
func TestMinRTTUnblocks(t *testing.T) {
	s := newScheduler(t, "minrtt")
	v := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	d := s.Pick(v)
	require.Equal(t, scheduler.Decision{
		Send: 0b01, Again: true, Bytes: mss, Penalise: 0b10, Reason: scheduler.ReasonOpportunistic,
	}, d)
	v.Now += 19 * ms
	require.Zero(t, s.Pick(v).Penalise, "once in an RTT of the fast subflow")
	v.Now += ms
	require.Equal(t, uint64(0b10), s.Pick(v).Penalise)

	near := blocked(0b10, pipe(0, 30, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	d = newScheduler(t, "minrtt").Pick(near)
	require.Zero(t, d.Send, "3.3 times the RTT is not much slower")
	require.Equal(t, uint64(0b10), d.Penalise, "but it is slower")
	near.Subflows[1].Cwnd = 4 * mss
	require.Equal(t, uint64(0b01), newScheduler(t, "minrtt").Pick(near).Send, "nothing to learn of a loss from")

	carried := blocked(0b11, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	require.Zero(t, newScheduler(t, "minrtt").Pick(carried).Send, "it was sent there before")
	recovering := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	recovering.Subflows[1].Recovering = true
	require.Zero(t, newScheduler(t, "minrtt").Pick(recovering).Penalise, "its window was just halved")
	free := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	free.SendWindow = 10 * mss
	require.Equal(t, scheduler.ReasonNoNeed, newScheduler(t, "minrtt").Pick(free).Reason)
	full := blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss))
	full.Unsent, full.SendBuffer, full.SendWindow = 0, 100*mss, 1<<20
	require.NotZero(t, newScheduler(t, "minrtt").Pick(full).Send, "a full send buffer blocks as well")
	require.Zero(t, newScheduler(t, "minrtt-plain").Pick(full).Send)
}

// Weights 3:1 give the order A A B A, and 750 and 250 of 1000 segments.
func TestWeighted(t *testing.T) {
	three := scheduler.Weighted(func(s *scheduler.Subflow) float64 { return float64(3 - 2*s.ID) })
	two := func() *scheduler.View { return view(subflow(0, 10, 2000), subflow(1, 10, 2000)) }
	require.Equal(t, "AABAAABA", order(three(), two(), 8))
	v := two()
	order(three(), v, 1000)
	require.Equal(t, 1250*mss, v.Subflows[0].Room)
	require.Equal(t, 1750*mss, v.Subflows[1].Room)
	require.Equal(t, "ABABAB", order(newScheduler(t, "weighted"), two(), 6))
	require.Equal(t, "BBB", order(three(), view(subflow(0, 10, 0), subflow(1, 10, 9)), 3), "a full one has no turn")

	// By bytes: the one with smaller segments has more turns.
	v = two()
	v.Subflows[1].MSS = mss / 2
	order(newScheduler(t, "weighted"), v, 300)
	require.InDelta(t, v.Subflows[0].Room, v.Subflows[1].Room, 2*mss)
}

// Capacities 6, 3 and 1 share 1000 segments 600/300/100.
func TestCapacity(t *testing.T) {
	v := view(pipe(0, 100, 60, 0, mss), pipe(1, 100, 30, 0, mss), pipe(2, 100, 10, 0, mss))
	for i := range v.Subflows {
		v.Subflows[i].Room = 2000 * mss
	}
	order(newScheduler(t, "capacity"), v, 1000)
	for i, want := range []int{600, 300, 100} {
		require.InDelta(t, want, 2000-v.Subflows[i].Room/mss, 1)
	}
	// Loss of 5 % halves what counts, of 50 % leaves a tenth.
	v = view(pipe(0, 100, 10, 0, mss), pipe(1, 100, 10, 0, mss))
	for i := range v.Subflows {
		v.Subflows[i].Room = 2000 * mss
	}
	v.Subflows[1].LossRate = 0.05
	order(newScheduler(t, "capacity"), v, 900)
	require.InDelta(t, 600, 2000-v.Subflows[0].Room/mss, 1)
}

// Two subflows and three segments: six are sent, each segment on both.
func TestRedundant(t *testing.T) {
	v := view(pipe(0, 10, 10, 0, mss), pipe(1, 90, 10, 0, mss))
	v.Unsent = 3 * mss
	s := newScheduler(t, "redundant")
	require.Equal(t, scheduler.Decision{Send: 0b01, Reason: scheduler.ReasonMinRTT}, s.Pick(v))
	v.Ask, v.Unsent, v.Unacked, v.Sent, v.First = scheduler.Spare, 0, 3*mss, 3*mss, 3*mss
	v.Subflows[0].Reach = 3 * mss
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Bytes: 3 * mss, Reason: scheduler.ReasonCatchUp,
	}, s.Pick(v))
	v.Subflows[1].Reach = 3 * mss
	require.True(t, s.Pick(v).Wait, "both have everything")

	// What was DATA_ACKed needs no copy: the slow cursor jumps.
	lag := view(pipe(0, 10, 10, 10, mss), pipe(1, 90, 10, 0, mss))
	lag.Acked, lag.Sent, lag.First = 50*mss, 60*mss, 60*mss
	lag.Subflows[0].Reach, lag.Subflows[1].Reach = 60*mss, 10*mss
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Offset: 0, Bytes: 10 * mss, Reason: scheduler.ReasonCatchUp,
	}, newScheduler(t, "redundant").Pick(lag))
	// An earlier range that went out again does not move it back.
	s = newScheduler(t, "redundant")
	s.Pick(lag)
	lag.Subflows[1].Reach = 58 * mss
	s.Pick(lag)
	lag.Subflows[1].Reach = 52 * mss
	require.Equal(t, int64(8*mss), s.Pick(lag).Offset)
}

// Room on A and C of A, B, C: the segment goes out on A and C only, and what B
// carries later is new.
func TestOpportunisticRedundant(t *testing.T) {
	s := newScheduler(t, "opportunistic-redundant")
	v := view(subflow(0, 10, 2), subflow(1, 20, 0), subflow(2, 30, 5))
	require.Equal(t, scheduler.Decision{Send: 0b101, Bytes: 2 * mss, Reason: scheduler.ReasonRedundant}, s.Pick(v))
	v = view(subflow(0, 10, 0), subflow(1, 20, 1), subflow(2, 30, 0))
	require.Equal(t, scheduler.Decision{Send: 0b010, Bytes: mss, Reason: scheduler.ReasonRedundant}, s.Pick(v))
}

func TestRedundantIdle(t *testing.T) {
	s := newScheduler(t, "redundant-idle")
	v := view(subflow(0, 10, 5), subflow(1, 20, 5))
	v.Holders = func(off int64) (uint64, int64) {
		if off < 2*mss {
			return 0b01, 2*mss - off
		}
		return 0b10, 3*mss - off
	}
	require.Equal(t, uint64(0b01), s.Pick(v).Send, "new data as minrtt")
	v.Ask, v.Unsent, v.Unacked, v.Sent = scheduler.Spare, 0, 3*mss, 3*mss
	require.Equal(t, scheduler.Decision{
		Send: 0b01, Again: true, Offset: 2 * mss, Bytes: mss, Reason: scheduler.ReasonCatchUp,
	}, s.Pick(v), "what A does not carry")
	v.Subflows[0].Room = 0
	require.Equal(t, scheduler.Decision{
		Send: 0b10, Again: true, Offset: 0, Bytes: 2 * mss, Reason: scheduler.ReasonCatchUp,
	}, s.Pick(v), "what B does not carry")
	v.Unsent = mss
	require.True(t, s.Pick(v).Wait, "not while new data waits for the window")
}

// RTTs of 20 and 100 ms, the fast window 20 segments with a threshold of 10, 10
// segments of 1460 bytes in flight on the slow one: X = 231264 bytes, so that
// a window of 240000 would block and one of 250000 would not.
func TestBLEST(t *testing.T) {
	for window, want := range map[int64]scheduler.Reason{240_000: scheduler.ReasonWouldBlock, 250_000: scheduler.ReasonFits} {
		v := view(pipe(0, 20, 20, 20, 1460), pipe(1, 100, 20, 10, 1460))
		v.Subflows[0].Ssthresh, v.Subflows[1].Ssthresh = 10*1460, 10*1460
		v.Unacked, v.SendWindow, v.SendBuffer = 30*1460, window-30*1460, 1<<30
		d := newScheduler(t, "blest").Pick(v)
		require.Equal(t, want, d.Reason, window)
		require.Equal(t, want == scheduler.ReasonWouldBlock, d.Wait)
		v.Subflows[0].Room = 1460
		require.Equal(t, uint64(0b01), newScheduler(t, "blest").Pick(v).Send, "the fast one, if it has room")
	}
}

// lambda grows when the window blocked and shrinks when it did not, between 1
// and 1.3: seen by the window that just suffices.
func TestBLESTLambda(t *testing.T) {
	// X/lambda = 192720 bytes beside 16060 in flight and to be sent.
	fits := func(s scheduler.Scheduler, now time.Duration, lambda float64) bool {
		v := view(pipe(0, 20, 20, 20, 1460), pipe(1, 100, 20, 10, 1460))
		v.Now = now
		v.Subflows[0].Ssthresh, v.Subflows[1].Ssthresh = 10*1460, 10*1460
		v.SendWindow, v.SendBuffer = int64(lambda*192720)+1+16060, 1<<30
		return !s.Pick(v).Wait
	}
	s := newScheduler(t, "blest")
	require.True(t, fits(s, time.Second, 1.2))
	require.False(t, fits(s, time.Second+99*ms, 1.195))
	require.True(t, fits(s, time.Second+100*ms, 1.195), "less by 0.01 after an RTT of the slow one")
	s.Pick(blocked(0b10, pipe(0, 20, 20, 10, mss), pipe(1, 100, 40, 40, mss)))
	require.False(t, fits(s, time.Second+200*ms, 1.225), "more by 0.04 after the window blocked")
	require.True(t, fits(s, time.Second+201*ms, 1.235))
	for i := range 60 {
		fits(s, 2*time.Second+time.Duration(i)*100*ms, 1)
	}
	require.True(t, fits(s, time.Minute, 1), "not less than 1")
}

// Windows of 10 segments, RTTs of 20 and 100 ms: 15 segments wait for the fast
// subflow, 60 do not, and of 50 it depends on whether it waited before.
func TestECF(t *testing.T) {
	s := newScheduler(t, "ecf")
	pick := func(k int64) scheduler.Decision {
		v := view(pipe(0, 20, 10, 10, mss), pipe(1, 100, 10, 0, mss))
		v.Unsent = k * mss
		return s.Pick(v)
	}
	require.True(t, pick(15).Wait)
	require.Equal(t, uint64(0b10), pick(60+15).Send, "140 ms and more by the fast one alone")
	require.Equal(t, uint64(0b10), pick(50).Send, "120 ms are not less than 100")
	require.True(t, pick(15).Wait)
	require.True(t, pick(50).Wait, "but less than 125")
	require.False(t, pick(60).Wait)
	require.False(t, pick(50).Wait)
	// The second condition: a slow subflow that is hardly slower is used.
	v := view(pipe(0, 20, 10, 10, mss), pipe(1, 39, 10, 0, mss))
	v.Unsent = mss
	require.Equal(t, uint64(0b10), newScheduler(t, "ecf").Pick(v).Send)
}

// Forward delays of 10 and 30 ms, windows of 5 and 2: segments 1 to 15 are for
// the first subflow, 16 and 17 for the second.
func TestDAPS(t *testing.T) {
	s := newScheduler(t, "daps")
	v := view(pipe(0, 20, 5, 0, mss), pipe(1, 60, 2, 0, mss))
	d := s.Pick(v)
	require.Equal(t, scheduler.Decision{Send: 0b01, Bytes: 15 * mss, Reason: scheduler.ReasonPlan}, d)
	v.Subflows[0].Room, v.Subflows[0].Reach, v.First, v.Sent = 0, 5*mss, 5*mss, 5*mss
	d = s.Pick(v)
	require.Equal(t, scheduler.Decision{Send: 0b10, Offset: 10 * mss, Bytes: 2 * mss, Reason: scheduler.ReasonPlan}, d)
	v.Subflows[1].Room, v.Subflows[1].Reach = mss, 17*mss
	require.True(t, s.Pick(v).Wait, "the second has had its share")
	v.Subflows[0].Room = 5 * mss
	require.Equal(t, scheduler.Decision{Send: 0b01, Bytes: 10 * mss, Reason: scheduler.ReasonPlan}, s.Pick(v))
	v.First = 17 * mss
	require.Equal(t, 15*mss, s.Pick(v).Bytes, "then comes the next plan")
}

// A plan that a subflow of it can't follow is given up.
func TestDAPSWithoutASubflow(t *testing.T) {
	s := newScheduler(t, "daps")
	v := view(pipe(0, 20, 5, 0, mss), pipe(1, 60, 2, 0, mss), pipe(2, 60, 2, 0, mss))
	s.Pick(v)
	v.Subflows[0].Stale = true
	d := s.Pick(v)
	require.Equal(t, uint64(0b010), d.Send)
	require.Zero(t, d.Offset)
}

// A: RTT 40 ms, full: 60 ms. B: RTT 100 ms, with room: 50 ms.
func TestOTIAS(t *testing.T) {
	s := newScheduler(t, "otias")
	a, b := pipe(0, 40, 10, 10, mss), pipe(1, 100, 10, 0, mss)
	a.QueueRoom = 10 * mss
	require.Equal(t, uint64(0b10), s.Pick(view(a, b)).Send)
	b.SRTT = 130 * ms
	require.Equal(t, scheduler.Decision{
		Send: 0b01, Bytes: mss, Queue: true, Reason: scheduler.ReasonArrival,
	}, s.Pick(view(a, b)), "60 are less than 65: it is queued on the full one")
	a.Queued = 10 * mss
	require.Equal(t, uint64(0b10), s.Pick(view(a, b)).Send, "a second window would take 100")
}

// The slow subflow sends what lies behind what the fast one delivers meanwhile.
func TestSTTF(t *testing.T) {
	s := newScheduler(t, "sttf")
	fast, slow := pipe(0, 20, 10, 10, mss), pipe(1, 100, 10, 0, mss)
	fast.Ssthresh = 10 * mss
	v := view(fast, slow)
	// The slow one delivers after 50 ms; the fast one a window of 10 segments
	// after 30, grown to 11 by then; its next would come at 50.
	d := s.Pick(v)
	require.Equal(t, scheduler.Decision{Send: 0b10, Offset: 11 * mss, Bytes: mss, Reason: scheduler.ReasonAhead}, d)
	v.Unsent = 11 * mss
	require.True(t, s.Pick(v).Wait, "the fast one will have sent it all")
	v.Subflows[0].Ssthresh = 1 << 40 // in slow start
	v.Unsent = 20 * mss
	require.True(t, s.Pick(v).Wait)
	v.Unsent = 21 * mss
	require.Equal(t, int64(20*mss), s.Pick(v).Offset)
	v.Subflows[0].Room = mss
	require.Equal(t, uint64(0b01), s.Pick(v).Send)
}

// The first 100 KiB go out on the first subflow only.
func TestADA(t *testing.T) {
	s := newScheduler(t, "ada")
	v := view(subflow(0, 90, 5), subflow(1, 10, 5))
	require.Equal(t, uint64(0b01), s.Pick(v).Send)
	v.First = 102_399
	require.Equal(t, 1, s.Pick(v).Bytes)
	v.First = 102_400
	require.Equal(t, uint64(0b10), s.Pick(v).Send)
	v.First, v.Subflows[0].Room = 0, 0
	require.True(t, s.Pick(v).Wait)
	v.Subflows[0].Stale = true
	require.Equal(t, uint64(0b10), s.Pick(v).Send)
}

// A has 30 KB queued at 3 MB/s, 10 ms; B 5 KB at 0.25 MB/s, 20 ms.
func TestLinux(t *testing.T) {
	a, b := pipe(0, 50, 100, 30, mss), pipe(1, 20, 100, 5, mss)
	a.PacingRate, b.PacingRate = 3e6, 0.25e6
	v := view(a, b)
	v.Run = 1 << 20
	s := newScheduler(t, "linux")
	d := s.Pick(v)
	require.Equal(t, uint64(0b01), d.Send)
	require.Equal(t, scheduler.ReasonLinger, d.Reason)
	require.Equal(t, 65428, d.Bytes)
	// The burst ends with its bytes, even if the other would now be better.
	v.Subflows[0].InFlight, v.Subflows[0].Room = 95*mss, 5*mss
	require.Equal(t, uint64(0b10), s.Pick(v).Send, "95 KB take 32 ms")

	// It waits for the one that drains first though the other has room.
	full := view(pipe(0, 50, 10, 10, mss), pipe(1, 20, 100, 5, mss))
	full.Subflows[0].PacingRate, full.Subflows[1].PacingRate = 3e6, 0.25e6
	full.Run = 1 << 20
	require.True(t, newScheduler(t, "linux").Pick(full).Wait)
	full.Subflows[0].QueueRoom = 10 * mss
	d = newScheduler(t, "linux").Pick(full)
	require.Equal(t, uint64(0b01), d.Send)
	require.True(t, d.Queue)
}

// The burst goes on while the connection has more of it.
func TestLinuxBurst(t *testing.T) {
	a, b := pipe(0, 50, 100, 0, mss), pipe(1, 20, 100, 0, mss)
	a.PacingRate, b.PacingRate, a.Room = 3e6, 0.25e6, 10*mss
	v := view(a, b)
	v.Run = 1 << 20
	s := newScheduler(t, "linux")
	require.Equal(t, 10*mss, s.Pick(v).Bytes)
	v.Subflows[0].InFlight = 100 * mss
	d := s.Pick(v)
	require.Equal(t, scheduler.ReasonBurst, d.Reason)
	require.Equal(t, uint64(0b01), d.Send)
}

// A: 30 segments queued at 1 a ms before 10 ms of delay, 40; B: 5 at 0.5
// before 20, 30.
func TestQAware(t *testing.T) {
	a, b := pipe(0, 10, 100, 0, mss), pipe(1, 20, 100, 0, mss)
	a.Queued, a.PacingRate = 30*mss, 1e6
	b.Queued, b.PacingRate = 5*mss, 0.5e6
	require.Equal(t, uint64(0b10), newScheduler(t, "qaware").Pick(view(a, b)).Send)
	a.Queued, b.Queued = 0, 0
	require.Equal(t, uint64(0b01), newScheduler(t, "qaware").Pick(view(a, b)).Send, "as minrtt without queues")
}

// A: RTT 40 with a variation of 30, 50 ms; B: 60 with 5, 35 ms.
func TestJitterAware(t *testing.T) {
	a, b := pipe(0, 40, 10, 0, mss), pipe(1, 60, 10, 0, mss)
	a.RTTVar, b.RTTVar = 30*ms, 5*ms
	s := newScheduler(t, "jitter-aware")
	require.Equal(t, uint64(0b10), s.Pick(view(a, b)).Send)
	// B is full and better by 15 ms.
	b.Room, b.InFlight = 0, 10*mss
	b.OldestSend = time.Second - 44*ms // an ACK is due in 16 ms
	require.Equal(t, uint64(0b01), s.Pick(view(a, b)).Send)
	b.OldestSend = time.Second - 46*ms // in 14
	require.True(t, s.Pick(view(a, b)).Wait)
}

// RTTs of 50, 20, 90 and 30 ms.
func TestFSFS(t *testing.T) {
	s := newScheduler(t, "fsfs")
	used := func(size, sent int64) (ids []int) {
		v := view(subflow(1, 50, 1), subflow(2, 20, 1), subflow(3, 90, 1), subflow(4, 30, 1))
		v.FlowSize, v.First = size, sent
		for {
			d := s.Pick(v)
			if d.Wait {
				return ids
			}
			for i := range v.Subflows {
				if d.Send == 1<<i {
					ids = append(ids, v.Subflows[i].ID)
					v.Subflows[i].Room = 0
				}
			}
		}
	}
	for size, want := range map[int64][]int{
		80_000: {2}, 100_000: {2}, 100_001: {2, 4}, 300_001: {2, 4, 1}, 800_001: {2, 4, 1, 3},
	} {
		require.Equal(t, want, used(size, 0), "%d", size)
		require.Equal(t, want, used(0, size-1), "promoted after %d", size-1)
	}
	require.Equal(t, 2, scheduler.DefaultFSFSClasses.Paths(500_000, 2), "no more than there are")
	require.Equal(t, 3, scheduler.FSFSClasses{1, 2, 3}.Paths(3, 9))
	require.Equal(t, 9, scheduler.FSFSClasses{1, 2, 3}.Paths(4, 9))
}

// The slow subflow sends what lies a gap ahead: at 4 KB/ms, with one-way delays
// that differ by 50 ms, 200 KB.
func TestSTMS(t *testing.T) {
	fast, slow := pipe(0, 20, 80, 80, mss), pipe(1, 120, 10, 0, mss)
	v := view(fast, slow)
	v.Run = 1 << 20
	d := newScheduler(t, "stms").Pick(v)
	require.Equal(t, uint64(0b10), d.Send)
	require.Equal(t, int64(200*mss), d.Offset)

	// Its segment is waited for since 80 ms before it is expected: the gap was
	// too small by what is sent meanwhile, and grows by an eighth of that.
	s := newScheduler(t, "stms")
	s.Pick(v)
	v.Acked, v.Now = 200*mss, v.Now+40*ms
	s.Pick(v)
	v.Acked = 201 * mss
	d = s.Pick(v)
	require.Equal(t, int64(240*mss), d.Offset-d.Offset%mss)

	// Its segment is acknowledged 80 ms late: it waited, and the gap shrinks.
	s = newScheduler(t, "stms")
	v.Acked = 0
	s.Pick(v)
	v.Now += 200 * ms
	v.Acked = 201 * mss
	require.Equal(t, int64(160*mss), s.Pick(v).Offset)
}

// One subflow sends from the head, the other from the tail, if it deserves any.
func TestDEMS(t *testing.T) {
	head, tail := pipe(0, 20, 80, 0, mss), pipe(1, 120, 120, 0, mss)
	v := view(head, tail)
	v.Unsent, v.Run = 1000*mss, 1000*mss
	s := newScheduler(t, "dems")
	require.Equal(t, scheduler.Decision{Send: 0b01, Bytes: 1000 * mss, Reason: scheduler.ReasonHead}, s.Pick(v))
	v.Subflows[0].Room = 0
	require.Equal(t, scheduler.Decision{Send: 0b10, Offset: 999 * mss, Bytes: mss, Reason: scheduler.ReasonTail}, s.Pick(v))
	v.Unsent, v.Run, v.Sent = 999*mss, 999*mss, 1000*mss
	require.Equal(t, int64(998*mss), s.Pick(v).Offset, "backwards")
	// 4 KB/ms times 50 ms: the last 200 KB are the head's alone.
	v.Unsent, v.Run = 200*mss, 200*mss
	require.True(t, s.Pick(v).Wait)
}
