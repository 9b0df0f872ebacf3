package timer_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/timer"
)

type kind uint8

const (
	rexmit kind = iota
	delayedACK
	keepalive
	lastKind kind = timer.Kinds - 1
)

func TestZeroTableHasNoDeadline(t *testing.T) {
	var tab timer.Table[kind]
	require.Zero(t, tab.Next())
	require.Zero(t, tab.At(rexmit))
	_, ok := tab.Expired(1 << 62)
	require.False(t, ok)
}

func TestExpiredComesInOrderOfTimeThenKind(t *testing.T) {
	var tab timer.Table[kind]
	tab.Set(lastKind, 5)
	tab.Set(keepalive, 30)
	tab.Set(delayedACK, 10)
	tab.Set(rexmit, 10)
	require.Equal(t, mono.Time(5), tab.Next())

	_, ok := tab.Expired(4)
	require.False(t, ok, "an early call finds nothing")

	var got []kind
	for {
		k, ok := tab.Expired(10)
		if !ok {
			break
		}
		require.Zero(t, tab.At(k), "an expired deadline is cleared")
		got = append(got, k)
	}
	require.Equal(t, []kind{lastKind, rexmit, delayedACK}, got)
	require.Equal(t, mono.Time(30), tab.Next())
}

func TestSetReplacesAndZeroStops(t *testing.T) {
	var tab timer.Table[kind]
	tab.Set(rexmit, 10)
	tab.Set(rexmit, 20)
	require.Equal(t, mono.Time(20), tab.At(rexmit))
	tab.Set(rexmit, 0)
	require.Zero(t, tab.Next())
	tab.Set(rexmit, 10)
	tab.Set(keepalive, 7)
	tab.Stop(keepalive)
	tab.Stop(keepalive)
	require.Equal(t, mono.Time(10), tab.Next())
	tab.StopAll()
	require.Zero(t, tab.Next())
}

func TestKindBeyondTableIsRefused(t *testing.T) {
	var tab timer.Table[kind]
	require.Panics(t, func() { tab.Set(timer.Kinds, 1) })
}

// TestTableAgainstMap compares a long run of random calls with a plain map.
func TestTableAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var tab timer.Table[kind]
	model := map[kind]mono.Time{}
	for range 20000 {
		k := kind(rnd.IntN(timer.Kinds))
		switch rnd.IntN(4) {
		case 0, 1:
			at := mono.Time(rnd.IntN(50))
			tab.Set(k, at)
			model[k] = at
			if at == 0 {
				delete(model, k)
			}
		case 2:
			tab.Stop(k)
			delete(model, k)
		case 3:
			now := mono.Time(rnd.IntN(50))
			first, at, ok := earliest(model)
			got, found := tab.Expired(now)
			require.Equal(t, ok && at <= now, found)
			if found {
				require.Equal(t, first, got)
				delete(model, first)
			}
		}
		_, at, _ := earliest(model)
		require.Equal(t, at, tab.Next())
		require.Equal(t, model[k], tab.At(k))
	}
}

func earliest(m map[kind]mono.Time) (first kind, at mono.Time, ok bool) {
	for k := range kind(timer.Kinds) {
		if d, set := m[k]; set && (!ok || d < at) {
			first, at, ok = k, d, true
		}
	}
	return first, at, ok
}

func BenchmarkNext(b *testing.B) {
	var tab timer.Table[kind]
	for k := range kind(6) {
		tab.Set(k, mono.Time(100-k))
	}
	b.ReportAllocs()
	for b.Loop() {
		if tab.Next() != 95 {
			b.Fatal("wrong deadline")
		}
	}
}
