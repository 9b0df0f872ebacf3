package mptcp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Waits that are long teach a call to park at once, and to try again ever less
// often.
func TestPatienceEnds(t *testing.T) {
	var p patience
	never := make(chan struct{}, 1)
	tries := 0
	for range 1000 {
		if p.skips == 0 {
			tries++
		}
		p.linger(never)
	}
	// After the first, each is followed by 0, 1, 3, 7, 15, 31, 63 and then 64
	// waits without a try.
	require.Equal(t, 7+(1000-(1+2+4+8+16+32+64)+64)/65, tries)
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
	var p patience
	for range 1000 { // a busy machine may be slow at times
		p.failed = 5
		p.skips = 0
		ask <- struct{}{}
		p.linger(ready)
		if rewarded := p.failed == 0; rewarded {
			require.Zero(t, p.skips)
			require.Len(t, ready, 1, "the token is the caller's")
			return
		}
		<-ready
	}
	t.Fatal("never rewarded")
}
