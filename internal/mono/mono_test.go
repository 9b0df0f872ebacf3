package mono_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
)

func TestAddSaturates(t *testing.T) {
	require.Equal(t, mono.Time(1500), mono.Time(500).Add(time.Microsecond))
	require.Equal(t, mono.Time(400), mono.Time(500).Add(-100))
	require.Equal(t, mono.Time(math.MaxInt64), mono.Time(500).Add(math.MaxInt64))
}

func TestZeroIsNoInstant(t *testing.T) {
	require.False(t, mono.Time(0).Set())
	require.True(t, mono.Time(1).Set())
	require.False(t, mono.Time(0).Reached(math.MaxInt64))
	for a, want := range map[mono.Time]mono.Time{0: 7, 3: 3, 7: 7, 9: 7} {
		require.Equal(t, want, mono.Earliest(a, 7))
		require.Equal(t, want, mono.Earliest(7, a))
	}
	require.Zero(t, mono.Earliest(0, 0))
}

func TestOrder(t *testing.T) {
	require.True(t, mono.Time(1).Before(2))
	require.False(t, mono.Time(2).Before(2))
	require.True(t, mono.Time(2).Reached(2))
	require.False(t, mono.Time(3).Reached(2))
	require.Equal(t, -time.Nanosecond, mono.Time(1).Sub(2))
	require.Equal(t, 2*time.Nanosecond, mono.Time(2).Duration())
}
