package seq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// RFC 9293, Section 3.4: "all arithmetic dealing with sequence numbers must be
// performed modulo 2^32".
func TestSSNOrderAcrossWrap(t *testing.T) {
	const top = seq.SSN(0xffffffff)
	require.True(t, top.Less(0))
	require.True(t, top.Less(top.Add(1000)))
	require.False(t, seq.SSN(0).Less(top))
	require.False(t, top.Less(top))
	require.True(t, top.LessEq(top))
	require.True(t, top.LessEq(5))
	require.Equal(t, seq.SSN(4), top.Add(5))
	require.Equal(t, top, seq.SSN(4).Add(-5))
	require.Equal(t, 5, seq.SSN(4).Diff(top))
	require.Equal(t, -5, top.Diff(4))
	require.Equal(t, seq.SSN(3), top.Max(3))
	require.Equal(t, seq.SSN(3), seq.SSN(3).Max(top))
	require.True(t, seq.SSN(0).Less(1<<31-1))
}

func TestSSNIn(t *testing.T) {
	for _, c := range []struct {
		s, lo seq.SSN
		n     int
		want  bool
	}{
		{10, 10, 1, true},
		{11, 10, 1, false},
		{9, 10, 5, false},
		{10, 10, 0, false},
		{10, 10, -1, false},
		{2, 0xfffffffe, 5, true},
		{3, 0xfffffffe, 5, false},
		{0xfffffffd, 0xfffffffe, 5, false},
	} {
		require.Equal(t, c.want, c.s.In(c.lo, c.n), "%v", c)
	}
}

func TestSSNExpand(t *testing.T) {
	const wrap = 1 << 32
	for _, c := range []struct {
		s, base   seq.SSN
		ref, want uint64
	}{
		{105, 100, 0, 5},
		{105, 100, wrap, wrap + 5},
		{99, 100, wrap, wrap - 1},                        // just below the reference
		{4, 0xfffffffe, 0, 6},                            // number wraps, stream does not
		{99, 100, wrap + 10, wrap - 1},                   // old, from before the wrap
		{110, 100, wrap - 5, wrap + 10},                  // new, from after it
		{100, 100, 3*wrap + 1<<31 - 1, 3 * wrap},         // nearest below
		{100, 100, 3*wrap + 1<<31 + 1, 3*wrap + 1<<32},   // nearest above
		{0x7fffffff, 0, 7*wrap + 5, 7*wrap + 0x7fffffff}, // within half the space
	} {
		require.Equal(t, c.want, c.s.Expand(c.base, c.ref), "%v", c)
	}
}
