package netstack

import (
	"gvisor.dev/gvisor/pkg/buffer"

	"github.com/gomptcp/gomptcp/mptcp"
)

// blockSize is the size of a block of a send queue: the largest that gVisor
// keeps a pool of.
const blockSize = buffer.MaxChunkSize

// allocator makes the blocks of send queues of views, so that a sent range
// becomes a packet by cloning its block's view and trimming the clone.
//
// gVisor asks that views be written through their methods only, because their
// memory may be shared. The send queue writes through the slice instead, while
// packets share the block, but only beyond what any of those packets covers:
// bytes are written once, before the first packet that holds them is made, and
// the block's memory returns to gVisor's pool when the queue and the last
// packet have let go of it.
type allocator struct{}

// Alloc returns a block of blockSize bytes.
func (allocator) Alloc() mptcp.Block {
	v := buffer.NewViewSize(blockSize)
	return mptcp.Block{Bytes: v.AsSlice(), Owner: v}
}

// Free gives up the queue's share of a block.
func (allocator) Free(b mptcp.Block) { b.Owner.(*buffer.View).Release() }

// share returns a view of its own of the bytes of piece, which lies in whole.
func share(whole *buffer.View, piece []byte) *buffer.View {
	v := whole.Clone()
	v.TrimFront(cap(v.AsSlice()) - cap(piece))
	v.CapLength(len(piece))
	return v
}
