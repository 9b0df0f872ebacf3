package reason_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// names checks that each of n values has a name of its own and that one
// beyond them still prints.
func names[R interface {
	~uint8
	fmt.Stringer
}](t *testing.T, n R, beyond string) {
	t.Helper()
	seen := map[string]R{}
	for r := range n {
		require.NotEmpty(t, r.String(), "value %d", uint8(r))
		other, twice := seen[r.String()]
		require.False(t, twice, "%d and %d are both %q", uint8(r), uint8(other), r)
		seen[r.String()] = r
	}
	require.Equal(t, beyond, n.String())
}

func TestEveryReasonHasAName(t *testing.T) {
	names(t, reason.NumDrops, fmt.Sprintf("drop(%d)", reason.NumDrops))
	names(t, reason.NumFallbacks, fmt.Sprintf("fallback(%d)", reason.NumFallbacks))
	names(t, reason.NumCloses, fmt.Sprintf("close(%d)", reason.NumCloses))
	names(t, reason.NumLimits, fmt.Sprintf("limit(%d)", reason.NumLimits))
	names(t, reason.ResetMiddlebox+1, "reset(7)")
}

// TestResetCodes has the registry of RFC 8684, Section 3.6.
func TestResetCodes(t *testing.T) {
	require.EqualValues(t, 1, reason.ResetMPTCP)
	require.EqualValues(t, 2, reason.ResetResources)
	require.EqualValues(t, 3, reason.ResetProhibited)
	require.EqualValues(t, 4, reason.ResetOutstanding)
	require.EqualValues(t, 5, reason.ResetPerformance)
	require.EqualValues(t, 6, reason.ResetMiddlebox)
}
