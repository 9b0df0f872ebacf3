package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// DEMS: 1000 KB at 4 and 1 KB/ms with delays of 10 and 60 ms are 840 and 160
// KB, which both end at 220 ms.
func TestTailShare(t *testing.T) {
	s2 := tailShare(1000, 4, 1, 10, 60)
	require.InDelta(t, 160, s2, 1e-9)
	require.InDelta(t, 220, (1000-s2)/4+10, 1e-9)
	require.InDelta(t, 220, s2/1+60, 1e-9)
	require.Zero(t, tailShare(200, 4, 1, 10, 60))
	require.Positive(t, tailShare(201, 4, 1, 10, 60))
}

// Linux: an average of 3 MB/s over 30000 bytes, now 1 MB/s for 65428.
func TestAveragePace(t *testing.T) {
	require.InDelta(t, 1.6287, averagePace(3.0, 1.0, 30_000, 65_428), 5e-5)
}
