package seq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/seq"
)

func TestDSNOrderAcrossWrap(t *testing.T) {
	const top = seq.DSN(1<<64 - 1)
	require.True(t, top.Less(0))
	require.False(t, seq.DSN(0).Less(top))
	require.False(t, top.Less(top))
	require.True(t, top.LessEq(top))
	require.True(t, top.LessEq(7))
	require.Equal(t, seq.DSN(4), top.Add(5))
	require.Equal(t, top, seq.DSN(4).Add(-5))
	require.Equal(t, int64(5), seq.DSN(4).Diff(top))
	require.Equal(t, int64(-5), top.Diff(4))
	require.Equal(t, seq.DSN(4), top.Max(4))
	require.Equal(t, seq.DSN(4), seq.DSN(4).Max(top))
	require.Equal(t, top, top.Min(4))
	require.Equal(t, top, seq.DSN(4).Min(top))
}

// RFC 8684, Section 3.3.1: "Implementations MUST accept a 32-bit DSN and
// implicitly promote it to a 64-bit quantity". Near a wrap of the low half,
// numbers from before and after it both find their place.
func TestExpandAroundWrapOfLowHalf(t *testing.T) {
	for _, c := range []struct {
		low       uint32
		ref, want seq.DSN
	}{
		{0x00000005, 0x00000007_00000000, 0x00000007_00000005},
		{0x00000005, 0x00000006_fffffff0, 0x00000007_00000005}, // ahead, over the wrap
		{0xfffffff0, 0x00000007_00000005, 0x00000006_fffffff0}, // behind, over the wrap
		{0xd29d6f73, 0xf5a101d3_d29d6f72, 0xf5a101d3_d29d6f73},
		{0x00000003, 0xffffffff_fffffffe, 0x00000000_00000003}, // over the wrap of all 64 bits
		{0xfffffffe, 0x00000000_00000003, 0xffffffff_fffffffe},
		{0x7fffffff, 0x00000001_00000000, 0x00000001_7fffffff},
		{0x80000001, 0x00000001_00000000, 0x00000000_80000001}, // nearer below
	} {
		require.Equal(t, c.want, seq.Expand(c.low, c.ref), "%x near %x", c.low, uint64(c.ref))
	}
}
