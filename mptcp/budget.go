package mptcp

import "sync/atomic"

// budget is the memory that the buffers of a Stack's connections share.
type budget struct{ left atomic.Int64 }

func newBudget(n int) *budget {
	if n == 0 {
		n = defaultMemory
	}
	b := &budget{}
	b.left.Store(int64(n))
	return b
}

// Reserve takes n bytes and reports whether they were there.
func (b *budget) Reserve(n int) bool {
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.Release(n)
	return false
}

// Release gives n bytes back.
func (b *budget) Release(n int) { b.left.Add(int64(n)) }
