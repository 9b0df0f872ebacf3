package interval_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/interval"
)

type ranges = []interval.Range

func of(rs ...interval.Range) *interval.Set {
	s := new(interval.Set)
	for _, r := range rs {
		s.Add(r.Lo, r.Hi)
	}
	return s
}

func list(s *interval.Set) ranges { return slices.Collect(s.All) }

func TestAddMerges(t *testing.T) {
	start := ranges{{10, 20}, {30, 40}, {50, 60}}
	for name, c := range map[string]struct {
		lo, hi, added uint64
		want          ranges
	}{
		"empty":               {25, 25, 0, start},
		"backwards":           {26, 25, 0, start},
		"inside":              {12, 18, 0, start},
		"equal":               {30, 40, 0, start},
		"before all":          {1, 5, 4, ranges{{1, 5}, {10, 20}, {30, 40}, {50, 60}}},
		"after all":           {70, 80, 10, ranges{{10, 20}, {30, 40}, {50, 60}, {70, 80}}},
		"between":             {22, 28, 6, ranges{{10, 20}, {22, 28}, {30, 40}, {50, 60}}},
		"touches on the left": {20, 25, 5, ranges{{10, 25}, {30, 40}, {50, 60}}},
		"touches the next":    {45, 50, 5, ranges{{10, 20}, {30, 40}, {45, 60}}},
		"closes a gap":        {20, 30, 10, ranges{{10, 40}, {50, 60}}},
		"overlaps two":        {15, 35, 10, ranges{{10, 40}, {50, 60}}},
		"swallows all":        {0, 100, 70, ranges{{0, 100}}},
		"first number":        {0, 1, 1, ranges{{0, 1}, {10, 20}, {30, 40}, {50, 60}}},
		"last number":         {1<<64 - 2, 1<<64 - 1, 1, ranges{{10, 20}, {30, 40}, {50, 60}, {1<<64 - 2, 1<<64 - 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(start...)
			require.Equal(t, c.added, s.Add(c.lo, c.hi))
			require.Equal(t, c.want, list(s))
			require.Equal(t, 30+c.added, s.Size())
		})
	}
}

func TestRemoveSplits(t *testing.T) {
	start := ranges{{10, 20}, {30, 40}, {50, 60}}
	for name, c := range map[string]struct {
		lo, hi, removed uint64
		want            ranges
	}{
		"empty":            {15, 15, 0, start},
		"a gap":            {20, 30, 0, start},
		"the middle":       {33, 36, 3, ranges{{10, 20}, {30, 33}, {36, 40}, {50, 60}}},
		"a left part":      {5, 12, 2, ranges{{12, 20}, {30, 40}, {50, 60}}},
		"a right part":     {15, 25, 5, ranges{{10, 15}, {30, 40}, {50, 60}}},
		"a whole one":      {30, 40, 10, ranges{{10, 20}, {50, 60}}},
		"parts of several": {15, 55, 20, ranges{{10, 15}, {55, 60}}},
		"all":              {0, 1<<64 - 1, 30, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(start...)
			require.Equal(t, c.removed, s.Remove(c.lo, c.hi))
			require.Equal(t, c.want, list(s))
			require.Equal(t, 30-c.removed, s.Size())
		})
	}
}

func TestLookups(t *testing.T) {
	s := of(interval.Range{Lo: 10, Hi: 20}, interval.Range{Lo: 30, Hi: 40})
	require.Equal(t, 2, s.Len())
	require.Equal(t, interval.Range{Lo: 30, Hi: 40}, s.At(1))
	require.Equal(t, uint64(10), s.At(0).Len())
	require.True(t, s.At(0).Contains(19))
	require.False(t, s.At(0).Contains(20))
	for x, in := range map[uint64]bool{9: false, 10: true, 19: true, 20: false, 30: true, 40: false} {
		require.Equal(t, in, s.Contains(x), "%d", x)
	}
	for lo, want := range map[uint64]uint64{0: 0, 10: 20, 19: 20, 20: 20, 25: 25, 35: 40, 40: 40, 99: 99} {
		require.Equal(t, want, s.FirstGap(lo), "from %d", lo)
	}
	require.True(t, s.Covers(12, 20))
	require.False(t, s.Covers(12, 21))
	require.True(t, s.Covers(25, 25))
	r, ok := s.Next(20)
	require.True(t, ok)
	require.Equal(t, interval.Range{Lo: 30, Hi: 40}, r)
	_, ok = s.Next(40)
	require.False(t, ok)

	for range s.All {
		break // a loop may end early
	}
	s.Clear()
	require.Zero(t, s.Len())
	require.Zero(t, s.Size())
}

// TestSetAgainstFlags compares random sequences of changes with one flag a
// number.
func TestSetAgainstFlags(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var s interval.Set
		const n = 300
		var in [n + 1]bool
		for range 200 {
			lo := rnd.Uint64N(n)
			hi := min(n, lo+rnd.Uint64N(12))
			add := rnd.IntN(5) < 3
			changed := uint64(0)
			for x := lo; x < hi; x++ {
				if in[x] != add {
					in[x] = add
					changed++
				}
			}
			if add {
				require.Equal(t, changed, s.Add(lo, hi), "seed %d", seed)
			} else {
				require.Equal(t, changed, s.Remove(lo, hi), "seed %d", seed)
			}
			compare(t, &s, in[:])
		}
	}
}

// compare checks everything that a set says against one flag a number, the
// last of which is false.
func compare(t *testing.T, s *interval.Set, in []bool) {
	t.Helper()
	var want ranges
	size := uint64(0)
	for x := range in {
		if !in[x] {
			continue
		}
		size++
		if x == 0 || !in[x-1] {
			want = append(want, interval.Range{Lo: uint64(x)})
		}
		want[len(want)-1].Hi = uint64(x) + 1
	}
	require.Equal(t, want, list(s))
	require.Equal(t, size, s.Size())
	gap := uint64(len(in) - 1)
	for x := len(in) - 1; x >= 0; x-- {
		if !in[x] {
			gap = uint64(x)
		}
		if s.Contains(uint64(x)) != in[x] || s.FirstGap(uint64(x)) != gap {
			t.Fatalf("number %d: in set %v, first gap %d; want %v, %d",
				x, s.Contains(uint64(x)), s.FirstGap(uint64(x)), in[x], gap)
		}
	}
}

// TestSlidingWindowDoesNotAllocate moves a window with holes along, as a
// scoreboard does for the life of a connection.
func TestSlidingWindowDoesNotAllocate(t *testing.T) {
	var s interval.Set
	x := uint64(0)
	step := func() {
		for range 100 {
			s.Add(x, x+5)
			if x >= 1000 {
				s.Remove(0, x-1000)
			}
			x += 10
		}
	}
	step()
	step()
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
	require.Equal(t, 101, s.Len())
}

func BenchmarkSlidingWindow(b *testing.B) {
	var s interval.Set
	x := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		s.Add(x, x+5)
		if x >= 10000 {
			s.Remove(0, x-10000)
		}
		x += 10
	}
}
