package mptcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Waits that are long teach a call to park at once; now and then it tries
// again.
func TestPatienceEnds(t *testing.T) {
	var p patience
	never := make(chan struct{}, 1)
	for range 10 {
		p.linger(never)
	}
	require.Less(t, time.Duration(p.limit.Load())+firstPatience, leastPatience)
	for range retryWaits - p.tired.Load() {
		p.linger(never)
	}
	require.GreaterOrEqual(t, time.Duration(p.limit.Load())+firstPatience, leastPatience, "it has tried again")
}

// An answer that another goroutine has ready is not parked for, and makes for
// more patience.
func TestPatienceIsRewarded(t *testing.T) {
	ready, ask := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for range ask {
			ready <- struct{}{}
		}
	}()
	defer close(ask)
	for range 1000 { // a busy machine may be slow at times
		var p patience
		ask <- struct{}{}
		p.linger(ready)
		if rewarded := p.limit.Load() > 0; rewarded {
			require.Equal(t, int64(firstPatience), p.limit.Load(), "twice what it was")
			require.Len(t, ready, 1, "the token is the caller's")
			return
		}
		<-ready
	}
	t.Fatal("never rewarded")
}
