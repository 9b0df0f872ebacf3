package stream

// Block is memory for outgoing bytes.
type Block struct {
	// Bytes is the whole of the block's writable memory, of which all len
	// bytes are used.
	Bytes []byte
	// Owner is the allocator's handle. It travels beside each view of the
	// block, so that an adapter can share the memory instead of copying.
	Owner any
}

// Allocator supplies blocks. After Free the queue does not touch a block
// again; views handed out before may still be in use by packets under way, so
// an allocator that reuses memory must know when they are done.
type Allocator interface {
	// Alloc returns a block with at least one byte.
	Alloc() Block
	// Free takes the block back.
	Free(Block)
}

// DefaultBlock is the block size of Heap in bytes, unless told otherwise.
const DefaultBlock = 64 << 10

// Heap is an Allocator that makes blocks and leaves freed ones to the garbage
// collector.
type Heap struct {
	// Size of a block in bytes; 0 means DefaultBlock.
	Size int
}

// Alloc makes a block.
func (h Heap) Alloc() Block {
	size := h.Size
	if size <= 0 {
		size = DefaultBlock
	}
	return Block{Bytes: make([]byte, size)}
}

// Free does nothing: whoever still has a view keeps the memory alive.
func (h Heap) Free(Block) {}

// Owner is a reference on the memory behind received bytes. DecRef gives it
// back.
type Owner interface{ DecRef() }
