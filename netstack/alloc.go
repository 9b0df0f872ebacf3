package netstack

import (
	"sync"

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
// the block's memory is used again when the queue and the last packet have let
// go of it.
//
// gVisor clears the memory of a new view, which costs as much as a copy. So
// blocks that queues gave back wait until no packet shares them, and serve
// again as they are, mostly one that was let go lately, whose memory is likely
// to be in a cache.
type allocator struct{}

// ring holds views of blocks in the order in which they were given back, while
// packets may share them.
type ring struct {
	views [ringSize]*buffer.View
	head  int // of the one that has waited longest
	n     int
}

// ringSize is how many blocks wait at most, 4 MiB: what a receiver in the same
// process may well have yet to read.
const ringSize = 64

// drainMost is how many blocks are looked at whenever one is taken or given
// back: more than one, so that a ring gets empty.
const drainMost = 2

var (
	// rings drop what they hold when the garbage collector finds them idle.
	rings = sync.Pool{New: func() any { return new(ring) }}
	// unshared are the views, each *buffer.View, that are ready to serve.
	unshared sync.Pool
)

// Alloc returns a block of blockSize bytes, whatever they are.
func (allocator) Alloc() mptcp.Block {
	v := takeBlock()
	return mptcp.Block{Bytes: v.AsSlice(), Owner: v}
}

// Free gives up the queue's share of a block.
func (allocator) Free(b mptcp.Block) { leaveBlock(b.Owner.(*buffer.View)) }

// takeBlock returns a view of blockSize bytes, whatever they are, which nobody
// shares.
func takeBlock() *buffer.View {
	r := rings.Get().(*ring)
	r.drain()
	rings.Put(r)
	if v, ok := unshared.Get().(*buffer.View); ok {
		return v
	}
	return buffer.NewViewSize(blockSize)
}

// leaveBlock takes over a view from takeBlock, which others may share.
func leaveBlock(v *buffer.View) {
	r := rings.Get().(*ring)
	r.put(v)
	r.drain()
	rings.Put(r)
}

// drain makes views ready to serve that nobody shares any more.
func (r *ring) drain() {
	for range drainMost {
		if r.n == 0 || !exclusive(r.views[r.head]) {
			return
		}
		unshared.Put(r.views[r.head])
		r.views[r.head] = nil
		r.head = (r.head + 1) % ringSize
		r.n--
	}
}

func (r *ring) put(v *buffer.View) {
	if r.n == ringSize {
		v.Release()
		return
	}
	r.views[(r.head+r.n)%ringSize] = v
	r.n++
}

// exclusive reports whether no other view shares the memory of v, which is as
// large as its chunk. gVisor says so only by what it does: a Buffer writes into
// the room behind its last view if that is alone, and appends a view if not.
func exclusive(v *buffer.View) bool {
	v.CapLength(blockSize - 1)
	buf := buffer.MakeWithView(v)
	_ = buf.Append(buffer.NewViewSize(1)) // fails never
	alone := v.Size() == blockSize
	if !alone {
		list := buf.AsViewList()
		list.Back().Release()
		v.SetNext(nil)
		v.Grow(1)
	}
	return alone
}

// share returns a view of its own of the bytes of piece, which lies in whole.
func share(whole *buffer.View, piece []byte) *buffer.View {
	v := whole.Clone()
	v.TrimFront(cap(v.AsSlice()) - cap(piece))
	v.CapLength(len(piece))
	return v
}
