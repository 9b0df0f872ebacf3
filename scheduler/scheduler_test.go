package scheduler_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/scheduler"
)

const mss = 1000

// newScheduler returns a scheduler of the policy called name.
func newScheduler(t testing.TB, name string) scheduler.Scheduler {
	t.Helper()
	f, err := scheduler.ByName(name)
	require.NoError(t, err)
	return f()
}

// subflow has an RTT in milliseconds and room in segments.
func subflow(id, rtt, room int) scheduler.Subflow {
	return scheduler.Subflow{
		ID: id, SRTT: time.Duration(rtt) * time.Millisecond, MSS: mss, Room: room * mss,
		Cwnd: 100 * mss, InFlight: (100 - room) * mss,
	}
}

func backup(s scheduler.Subflow) scheduler.Subflow { s.Backup = true; return s }
func stale(s scheduler.Subflow) scheduler.Subflow  { s.Stale = true; return s }

func view(s ...scheduler.Subflow) *scheduler.View {
	return &scheduler.View{Now: time.Second, Subflows: s, Unsent: 1 << 30, SendWindow: 1 << 30}
}

// order asks n times, taking from the room what was granted, and names the
// subflows chosen: A is the first of the view, a point is a wait.
func order(s scheduler.Scheduler, v *scheduler.View, n int) string {
	var b strings.Builder
	for range n {
		d := s.Pick(v)
		if d.Wait {
			b.WriteByte('.')
			continue
		}
		for i := range v.Subflows {
			if d.Send == 1<<i {
				b.WriteByte('A' + byte(i))
				f := &v.Subflows[i]
				if d.Bytes == 0 {
					f.Room = 0
				} else {
					f.Room -= d.Bytes
				}
			}
		}
	}
	return b.String()
}

func TestNames(t *testing.T) {
	require.Equal(t, strings.Fields(`ada blest capacity daps default dems ecf fsfs jitter-aware linux minrtt
		minrtt-plain opportunistic-redundant otias qaware redundant redundant-idle roundrobin
		sctc-literal sctc-optimal sctc-planned stms sttf weighted`), scheduler.Names())
	require.Contains(t, scheduler.Names(), scheduler.Default)
	for _, name := range append(scheduler.Names(), "") {
		require.NotNil(t, newScheduler(t, name))
	}
	_, err := scheduler.ByName("lifo")
	require.ErrorContains(t, err, `scheduler "lifo" is unknown (known: ada, blest, `)
}

// Which subflows a policy may choose at all.
func TestEligible(t *testing.T) {
	reinject := func(carried uint64, s ...scheduler.Subflow) *scheduler.View {
		v := view(s...)
		v.Ask, v.Carried = scheduler.Lost, carried
		return v
	}
	tests := []struct {
		why    string
		view   *scheduler.View
		send   uint64           // 0 = wait
		reason scheduler.Reason // "" = the policy's own
	}{
		{"no subflow", view(), 0, scheduler.ReasonNoSubflow},
		{"the only one", view(subflow(3, 20, 1)), 1, ""},
		{"the only one is a backup", view(backup(subflow(3, 20, 1))), 1, scheduler.ReasonBackup},
		{"the only one is stale", view(stale(subflow(3, 20, 1))), 1, scheduler.ReasonStale},
		{"the only one is full", view(subflow(3, 20, 0)), 0, scheduler.ReasonNoRoom},
		{"backups rest", view(backup(subflow(0, 5, 9)), subflow(1, 90, 1)), 2, ""},
		{"backups rest though the others are full", view(backup(subflow(0, 5, 9)), subflow(1, 90, 0)), 0, scheduler.ReasonNoRoom},
		{"a backup for those that do not answer", view(stale(subflow(0, 5, 9)), backup(subflow(1, 90, 1))), 2, scheduler.ReasonBackup},
		{"stale ones rest", view(stale(subflow(0, 5, 9)), subflow(1, 90, 1)), 2, ""},
		{"stale ones rest though the others are full", view(stale(subflow(0, 5, 9)), subflow(1, 90, 0)), 0, scheduler.ReasonNoRoom},
		{"stale before stale backup", view(stale(backup(subflow(0, 5, 9))), stale(subflow(1, 90, 1))), 2, scheduler.ReasonStale},
		{"again on another", reinject(0b01, subflow(0, 5, 9), subflow(1, 90, 1)), 2, ""},
		{"again on another, which is full", reinject(0b01, subflow(0, 5, 9), subflow(1, 90, 0)), 0, scheduler.ReasonNoRoom},
		{"again on the same", reinject(0b1, subflow(0, 5, 9)), 1, scheduler.ReasonRepeat},
		{"again, but no backup while others answer", reinject(0b01, subflow(0, 5, 9), backup(subflow(1, 90, 1))), 1, scheduler.ReasonRepeat},
		{"again on a backup", reinject(0b01, stale(subflow(0, 5, 9)), backup(subflow(1, 90, 1))), 2, scheduler.ReasonBackup},
		{"carriers matter to reinjection only", func() *scheduler.View {
			v := view(subflow(0, 5, 9), subflow(1, 90, 0))
			v.Carried = 0b01
			return v
		}(), 1, ""},
	}
	for _, name := range scheduler.Names() {
		for _, tt := range tests {
			d := newScheduler(t, name).Pick(tt.view)
			require.Equal(t, tt.send, d.Send, "%s: %s", name, tt.why)
			require.Equal(t, tt.send == 0, d.Wait, "%s: %s", name, tt.why)
			require.Zero(t, d.Until, "%s: %s", name, tt.why)
			require.Zero(t, d.Offset, "%s: %s", name, tt.why)
			if tt.reason != "" {
				require.Equal(t, tt.reason, d.Reason, "%s: %s", name, tt.why)
			}
			require.NotEmpty(t, d.Reason)
		}
	}
}

// As long as a subflow has room, some eligible one is chosen; no policy waits
// with a usable subflow idle, which would be a deadlock on an empty network.
func TestNoDeadlock(t *testing.T) {
	for _, name := range scheduler.Names() {
		s := newScheduler(t, name)
		rng := rand.New(rand.NewPCG(4, 4))
		for range 1000 {
			v := view()
			for id := range 1 + rng.IntN(scheduler.MaxSubflows) {
				f := subflow(id, rng.IntN(200), 1+rng.IntN(20))
				f.Backup, f.Stale = rng.IntN(3) == 0, rng.IntN(3) == 0
				v.Subflows = append(v.Subflows, f)
			}
			v.Ask, v.Carried = scheduler.Ask(rng.IntN(2)), rng.Uint64()
			d := s.Pick(v)
			require.False(t, d.Wait)
			require.NotZero(t, d.Send)
			if name != "opportunistic-redundant" {
				require.Zero(t, d.Send&(d.Send-1), "one subflow")
			}
			require.Zero(t, d.Send>>len(v.Subflows), "of the view")
		}
	}
}

func TestMinRTT(t *testing.T) {
	tests := []struct {
		why  string
		view *scheduler.View
		want string
	}{
		{"least rtt first, then the next, then wait", view(subflow(0, 100, 5), subflow(1, 20, 5)), "BA."},
		{"equal rtts in order of establishment", view(subflow(4, 20, 1), subflow(7, 20, 1)), "AB."},
		{"full ones are passed over", view(subflow(0, 10, 0), subflow(1, 30, 1), subflow(2, 20, 1)), "CB."},
		{"an unknown rtt is greatest", view(subflow(0, 0, 1), subflow(1, 500, 1)), "BA."},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, order(newScheduler(t, "minrtt"), tt.view, 3), tt.why)
	}
}

// The quota is in segments a turn: 1 gives A,B,A,B and 2 gives AABB.
func TestRoundRobin(t *testing.T) {
	two := func() *scheduler.View { return view(subflow(0, 10, 9), subflow(1, 90, 9)) }
	require.Equal(t, "ABAB", order(newScheduler(t, "roundrobin"), two(), 4))

	s := scheduler.RoundRobin(2)()
	v := two()
	for _, want := range []uint64{1, 2, 1, 2} {
		d := s.Pick(v)
		require.Equal(t, want, d.Send)
		require.Equal(t, 2*mss, d.Bytes, "both segments of the turn in one decision")
	}

	require.Equal(t, "ABCABC", order(newScheduler(t, "roundrobin"),
		view(subflow(0, 1, 9), subflow(1, 1, 9), subflow(2, 1, 9)), 6))
	require.Equal(t, "ACACA..", order(newScheduler(t, "roundrobin"),
		view(subflow(0, 1, 3), subflow(1, 1, 0), subflow(2, 1, 2)), 7), "full ones lose their turn")
}

// A turn ends with the room that there is.
func TestRoundRobinPartialRoom(t *testing.T) {
	v := view(subflow(0, 10, 9), subflow(1, 90, 9))
	v.Subflows[0].Room = 300
	s := newScheduler(t, "roundrobin")
	d := s.Pick(v)
	require.Equal(t, uint64(1), d.Send)
	require.Equal(t, 300, d.Bytes)
	require.Equal(t, uint64(2), s.Pick(v).Send)
}

// Turns follow IDs, not places, so that they survive subflows that end.
func TestRoundRobinAfterSubflowEnds(t *testing.T) {
	s := newScheduler(t, "roundrobin")
	require.Equal(t, "AB", order(s, view(subflow(0, 1, 9), subflow(1, 1, 9), subflow(2, 1, 9)), 2))
	require.Equal(t, "BABA", order(s, view(subflow(0, 1, 9), subflow(2, 1, 9)), 4))
}

// Eight subflows, most of them with room, and not one allocation.
func eight() *scheduler.View {
	v := view()
	for i := range 8 {
		v.Subflows = append(v.Subflows, subflow(i, 10+(i*37)%80, i%4))
	}
	return v
}

func TestPickDoesNotAllocate(t *testing.T) {
	for _, name := range scheduler.Names() {
		s, v := newScheduler(t, name), eight()
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Pick(v) }), name)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, name := range scheduler.Names() {
		b.Run(name, func(b *testing.B) {
			s, v := newScheduler(b, name), eight()
			b.ReportAllocs()
			for b.Loop() {
				s.Pick(v)
			}
		})
	}
}
