package mptcp

import (
	"testing"

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
	require.LessOrEqual(t, p.turns.Load()+firstTurns, int32(0))
	for range retryTurns - p.tired.Load() {
		p.linger(never)
	}
	require.Positive(t, p.turns.Load()+firstTurns, "it has tried again")
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
		if rewarded := p.turns.Load() > 0; rewarded {
			require.Equal(t, int32(mostTurns-firstTurns), p.turns.Load())
			require.Len(t, ready, 1, "the token is the caller's")
			return
		}
		<-ready
	}
	t.Fatal("never rewarded")
}
