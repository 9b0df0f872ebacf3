package mpconn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/scheduler"
)

// scheduled returns a lab with two subflows whose opener has a policy.
func scheduled(t *testing.T, seed uint64, pick scheduler.Func) *lab {
	t.Helper()
	l := newLab(t, seed, 2)
	l.paths[1].delay = 40 * time.Millisecond
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.idle(time.Second)
	l.a.conn.SetScheduler(func() scheduler.Scheduler { return pick })
	return l
}

// Whatever a policy answers, the connection goes on: by waiting for ever, for
// hours, for subflows that do not exist, for those without room, or for an
// offset beyond the end.
func TestNoPolicyStopsAConnection(t *testing.T) {
	tests := map[string]scheduler.Func{
		"waits": func(*scheduler.View) scheduler.Decision { return scheduler.Decision{Wait: true} },
		"zero":  func(*scheduler.View) scheduler.Decision { return scheduler.Decision{} },
		"waits for hours": func(v *scheduler.View) scheduler.Decision {
			return scheduler.Decision{Wait: true, Until: v.Now + time.Hour}
		},
		"nobody":  func(*scheduler.View) scheduler.Decision { return scheduler.Decision{Send: 1 << 60} },
		"nowhere": func(*scheduler.View) scheduler.Decision { return scheduler.Decision{Send: 3, Offset: 1 << 40} },
		"negative": func(*scheduler.View) scheduler.Decision {
			return scheduler.Decision{Send: 3, Offset: -1 << 40, Bytes: -5}
		},
		"again": func(*scheduler.View) scheduler.Decision {
			return scheduler.Decision{Send: 3, Again: true, Penalise: ^uint64(0)}
		},
	}
	for name, pick := range tests {
		t.Run(name, func(t *testing.T) {
			l := scheduled(t, 1, pick)
			l.transfer(l.a, l.b, 100_000, 5*time.Minute, nil)
		})
	}
}

// A wait on an empty network ends when the policy wants, at once if it names no
// time, and after a retransmission timeout in any case.
func TestWaitOnAnEmptyNetwork(t *testing.T) {
	for _, until := range []time.Duration{0, 50 * time.Millisecond, time.Hour} {
		var forced []mono.Time
		l := scheduled(t, 1, func(v *scheduler.View) scheduler.Decision {
			if until == 50*time.Millisecond && v.Now%(100*time.Millisecond) >= until {
				return scheduler.LeastRTT(v)
			}
			d := scheduler.Decision{Wait: true}
			if until > 0 {
				d.Until = v.Now + until
			}
			return d
		})
		l.now = l.now.Add(100*time.Millisecond - l.now.Duration()%(100*time.Millisecond))
		l.a.conn.OnDecision(func(_ *scheduler.View, d scheduler.Decision) {
			if d.Reason == scheduler.ReasonForced {
				forced = append(forced, l.now)
			}
		})
		begin := l.now
		rto := min(l.a.conn.flows[0].tcp.RTO(), l.a.conn.flows[1].tcp.RTO())
		l.transfer(l.a, l.b, 1000, time.Minute, nil)
		switch until {
		case 0:
			require.Equal(t, begin, forced[0])
		case time.Hour:
			require.Equal(t, begin.Add(rto), forced[0])
		default:
			require.Empty(t, forced)
		}
	}
}

// A policy that sends the last byte first has every byte arrive, once, and its
// decisions keep to what was never sent.
func TestFromTheTail(t *testing.T) {
	l := scheduled(t, 2, func(v *scheduler.View) scheduler.Decision {
		if v.Ask != scheduler.Fresh {
			return scheduler.LeastRTT(v)
		}
		d := scheduler.LeastRTT(v)
		d.Bytes = 1000
		d.Offset = max(v.Run-1000, 0)
		return d
	})
	l.transfer(l.a, l.b, 300_000, time.Minute, nil)
	require.Zero(t, l.b.conn.Info().Stats.BytesDuplicate)
	require.Zero(t, l.a.conn.Info().Stats.BytesReinjected)
}

// A short range that comes first is no limit for a super-segment behind it.
func TestRoomBehindShortRange(t *testing.T) {
	l := newLab(t, 4, 2)
	for _, e := range []*end{l.a, l.b} {
		e.cfg.Path = func(_, _ netip.Addr) (int, int) { return 1480, 60_000 }
	}
	l.connect()
	l.prove()
	l.join(1)
	l.transfer(l.a, l.b, 4<<20, time.Minute, nil)
	l.idle(50 * time.Millisecond)
	var room int
	l.a.conn.SetScheduler(func() scheduler.Scheduler {
		return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
			d := scheduler.LeastRTT(v)
			switch {
			case v.Ask != scheduler.Fresh:
			case v.Run > 199 && room == 0:
				d.Offset, d.Bytes = 199, 40_000
			case v.Run == 199:
				room = v.Subflows[0].Room + v.Subflows[1].Room
			}
			return d
		})
	})
	l.transfer(l.a, l.b, 200_000, time.Minute, nil)
	require.Greater(t, room, 40_000)
}

// What lies beyond a hole that a policy left is no reason for the data-level
// timer to send the hole.
func TestHolesAreNotReinjected(t *testing.T) {
	skip := true
	l := scheduled(t, 3, func(v *scheduler.View) scheduler.Decision {
		d := scheduler.LeastRTT(v)
		switch {
		case v.Ask != scheduler.Fresh:
		case skip && v.Run > 5000:
			d.Offset = 5000
		case skip:
			return scheduler.Decision{Wait: true, Until: v.Now + 10*time.Millisecond}
		}
		return d
	})
	begin := l.now
	l.transfer(l.a, l.b, 20_000, time.Minute, func() { skip = l.now.Sub(begin) < 400*time.Millisecond })
	require.Zero(t, l.b.conn.Info().Stats.BytesDuplicate)
}

// Redundancy: Spare is asked when nothing new can be sent, each subflow carries
// everything, and nothing is given to it twice.
func TestSpareRepeatsOnTheOther(t *testing.T) {
	l := scheduled(t, 4, nil)
	f, err := scheduler.ByName("redundant")
	require.NoError(t, err)
	l.a.conn.SetScheduler(f)
	before := l.a.conn.AppendSubflows(nil)
	l.transfer(l.a, l.b, 10_000, time.Minute, nil)
	l.idle(time.Second)
	for i, s := range l.a.conn.AppendSubflows(nil) {
		require.Equal(t, uint64(10_000), s.TCP.BytesSent-before[i].TCP.BytesSent, "subflow %d", i)
	}
	require.Equal(t, uint64(10_000), l.b.conn.Info().Stats.BytesDuplicate)
}

// Penalise halves the window of the subflow that it names, of no other.
func TestPenalise(t *testing.T) {
	var l *lab
	var before, after [2]int
	l = scheduled(t, 5, func(v *scheduler.View) scheduler.Decision {
		d := scheduler.LeastRTT(v)
		if before == [2]int{} && v.Ask == scheduler.Fresh {
			d.Penalise = 0b10
			before = [2]int{v.Subflows[0].Cwnd, v.Subflows[1].Cwnd}
		} else if after == [2]int{} {
			after = [2]int{v.Subflows[0].Cwnd, v.Subflows[1].Cwnd}
		}
		return d
	})
	l.transfer(l.a, l.b, 50_000, time.Minute, nil)
	require.Equal(t, before[0], after[0])
	require.Equal(t, before[1]/2, after[1])
}

// The view names bytes by their offset, says who holds them, and shows what
// the user told.
func TestView(t *testing.T) {
	var views []scheduler.View
	var holders []uint64
	l := scheduled(t, 6, func(v *scheduler.View) scheduler.Decision {
		views = append(views, *v)
		set, n := v.Holders(v.Acked)
		if v.Unacked > 0 {
			require.Positive(t, n)
			require.LessOrEqual(t, n, v.Unacked)
		} else {
			require.Zero(t, n)
		}
		holders = append(holders, set)
		if v.Ask == scheduler.Spare {
			return scheduler.Decision{Wait: true}
		}
		return scheduler.Decision{Send: 0b10, Bytes: 1000}
	})
	start := l.a.conn.Written()
	l.a.conn.SetFlowSize(12345)
	l.a.conn.SetHint(-7)
	l.transfer(l.a, l.b, 3000, time.Minute, nil)
	require.Equal(t, int64(12345), l.a.conn.FlowSize())
	require.Equal(t, start+3000, l.a.conn.Written())
	for i := range 3 {
		v := views[i]
		require.Equal(t, scheduler.Fresh, v.Ask)
		require.Equal(t, int64(12345), v.FlowSize)
		require.Equal(t, int64(-7), v.Hint)
		require.Equal(t, start, v.Acked)
		require.Equal(t, start+int64(1000*i), v.First)
		require.Equal(t, v.First, v.Sent)
		require.Equal(t, int64(3000-1000*i), v.Unsent)
		require.Equal(t, v.Unsent, v.Run)
		require.Equal(t, int64(1000*i), v.Unacked)
		require.Zero(t, v.Subflows[0].OldestSend)
	}
	require.Equal(t, []uint64{0, 0b10, 0b10, 0b10}, holders[:4])
	spare := views[3]
	require.Equal(t, scheduler.Spare, spare.Ask)
	require.Equal(t, uint64(0b10), spare.Carried)
	require.Equal(t, spare.Sent, spare.Subflows[1].Reach)
}

// What is read of what came on a slow subflow is told on the fast one as well,
// about eight times a window. To a peer without SACK, to which that would look like
// losses, it is not.
func TestNewsTakesTheFastSubflow(t *testing.T) {
	const total, window = 1_000_000, 50_000
	for _, noSACK := range []bool{false, true} {
		l := newLab(t, 8, 2)
		l.paths[0].delay, l.paths[1].delay = 5*time.Millisecond, 100*time.Millisecond
		l.b.cfg.ReadBuffer = window
		l.a.cfg.Subflow.NoSACK = noSACK
		slow := scheduler.Func(func(v *scheduler.View) scheduler.Decision {
			d := scheduler.LeastRTT(v)
			if v.Ask == scheduler.Fresh && len(v.Subflows) > 1 {
				d.Send = 0b10
			}
			return d
		})
		l.a.cfg.Scheduler = func() scheduler.Scheduler { return slow }
		l.connect()
		l.prove()
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		before := len(l.b.sent)
		l.transfer(l.a, l.b, total, time.Minute, nil)
		fast, last := 0, uint64(0)
		for _, seg := range l.b.sent[before:] {
			if seg.Src == l.b.at(0) {
				require.GreaterOrEqual(t, seg.DSS.Ack, last)
				last = seg.DSS.Ack
				fast++
			}
		}
		if noSACK {
			require.Less(t, fast, 8, "a few, about other things")
			continue
		}
		require.LessOrEqual(t, fast, 9*total/window)
		require.Greater(t, fast, 6*total/window)
	}
}

// A policy that waits with a repetition until a time is asked again then, though
// nothing else happens.
func TestSpareIsAskedAgainInTime(t *testing.T) {
	var asked []time.Duration
	l := scheduled(t, 1, func(v *scheduler.View) scheduler.Decision {
		if v.Ask != scheduler.Spare {
			return scheduler.LeastRTT(v)
		}
		asked = append(asked, v.Now)
		return scheduler.Decision{Wait: true, Until: v.Now + 3*time.Millisecond}
	})
	l.a.conn.Write(l.now, make([]byte, 1000))
	l.a.pump()
	l.idle(9 * time.Millisecond) // no ACK can have come
	require.GreaterOrEqual(t, len(asked), 3)
	require.Equal(t, 3*time.Millisecond, asked[1]-asked[0])
}

// A policy that says for how long nothing need be repeated is not asked before,
// unless something happens, and then.
func TestSpareIsNotAskedBefore(t *testing.T) {
	var asked []time.Duration
	l := scheduled(t, 1, func(v *scheduler.View) scheduler.Decision {
		if v.Ask == scheduler.Spare {
			asked = append(asked, v.Now)
			return scheduler.Decision{Wait: true}
		}
		d := scheduler.LeastRTT(v)
		d.Until = v.Now + 3*time.Millisecond
		return d
	})
	begin := l.now.Duration()
	l.a.conn.Write(l.now, make([]byte, 1000))
	l.a.pump()
	l.idle(9 * time.Millisecond) // no ACK can have come
	require.Equal(t, []time.Duration{begin + 3*time.Millisecond}, asked)
}

// One decision serves for several super-segments, each with a mapping of its own, if it
// grants as much.
func TestDecisionForSuperSegments(t *testing.T) {
	s := newStreamingOn(t, 10*time.Millisecond, 1480, 30_000)
	grant, decisions := 0, 0
	s.a.conn.SetScheduler(func() scheduler.Scheduler {
		return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
			d := scheduler.LeastRTT(v)
			d.Bytes = grant
			decisions++
			return d
		})
	})
	for _, tt := range []struct{ grant, decisions int }{
		{0, 2}, // four and one
		{2 * s.whole, 3},
		{s.whole, 5},
	} {
		grant, decisions = tt.grant, 0
		s.write(5 * s.whole)
		s.a.pump()
		s.wantSizes("full ones", s.whole, s.whole, s.whole, s.whole, s.whole)
		require.Equal(t, tt.decisions, decisions, "grant %d", tt.grant)
		s.idle(50 * time.Millisecond)
	}
}
