package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// few returns how many of n runs of the same code are made: all, but under the
// race detector an eighth.
func few(n int) int {
	if raced {
		return (n + 7) / 8
	}
	return n
}

// unraced ends a test of figures, which are the same under the race detector, and
// whose code other tests run there.
func unraced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("the run without the race detector has it")
	}
}

func TestEventsComeInOrder(t *testing.T) {
	s := sim.New(1)
	require.Equal(t, mono.Time(time.Second), s.Now())
	var got []int
	note := func(i int) func() { return func() { got = append(got, i) } }
	s.After(2*time.Second, note(4))
	s.After(time.Second, func() {
		got = append(got, 1)
		s.After(0, note(3))
		s.After(time.Hour, note(6))
	})
	s.After(time.Second, note(2))
	s.After(2*time.Second, note(5))
	s.RunFor(time.Second)
	require.Equal(t, []int{1, 2, 3}, got, "events of one time come in the order they were asked for")
	require.Equal(t, time.Second, s.Elapsed())
	s.RunFor(1500 * time.Millisecond)
	require.Equal(t, []int{1, 2, 3, 4, 5}, got)
	require.Equal(t, 2500*time.Millisecond, s.Elapsed(), "the clock goes on without events")
	require.False(t, s.RunUntil(time.Second, func() bool { return len(got) == 6 }))
	s.Run()
	require.Len(t, got, 6)
	require.Equal(t, time.Hour+time.Second, s.Elapsed())
}

func TestRandomSourcesAreIndependent(t *testing.T) {
	a, b := sim.New(7), sim.New(7)
	a1, a2 := a.Rand(), a.Rand()
	b1, b2 := b.Rand(), b.Rand()
	for range 10 {
		b1.Uint64() // one part draws more than in the other run
	}
	require.Equal(t, a2.Uint64(), b2.Uint64())
	require.NotEqual(t, a1.Uint64(), a2.Uint64())
	require.NotEqual(t, sim.New(8).Rand().Uint64(), sim.New(7).Rand().Uint64())
}

// The oracle would be worth nothing if it did not see a changed byte.
func TestOracleSeesAChangedByte(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 41, Paths: fastAndSlow()[:1]})
	p.Links[0].AB.SetBox(func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if now > mono.Time(1500*time.Millisecond) && seg.PayloadLen() > 0 {
			b := append([]byte(nil), seg.Payload[0]...)
			b[0] ^= 1
			seg.Payload[0] = b
		}
		forward(seg)
	})
	tr := p.Start(sim.TransferConfig{AB: 4 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	p.RunUntil(time.Minute, tr.Delivered)
	require.NotEmpty(t, p.Violations())
	require.Contains(t, p.Violations()[0], "of the stream is wrong")
}

// A box may drop and add packets: here it sends every packet twice but drops
// each tenth.
func TestBoxDropsAndAdds(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 42, Paths: fastAndSlow()})
	n := 0
	p.Links[0].BA.SetBox(func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if n++; n%10 == 0 {
			return
		}
		forward(seg)
		forward(seg)
	})
	tr := p.Start(sim.TransferConfig{AB: mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
	finish(t, p, tr, time.Minute)
}
