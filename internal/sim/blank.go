package sim

import "github.com/gomptcp/gomptcp/internal/stream"

// blank is the allocator of a fast simulation: every block is the same memory,
// so that the bytes under way, of however many connections, take none.
type blank struct{ memory []byte }

func newBlank() blank { return blank{make([]byte, stream.DefaultBlock)} }

// Alloc returns the one block.
func (b blank) Alloc() stream.Block { return stream.Block{Bytes: b.memory} }

// Free does nothing.
func (b blank) Free(stream.Block) {}
