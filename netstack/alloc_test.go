package netstack

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Packets share the memory of blocks, keep it alive, and see nothing of what
// is written behind their piece.
func TestBlocksAreSharedWithPackets(t *testing.T) {
	var a allocator
	block := a.Alloc()
	require.Len(t, block.Bytes, 64<<10)

	copy(block.Bytes, "hello world")
	piece := block.Bytes[6:11]
	payload := payloadOf([][]byte{piece}, []any{block.Owner})
	views := payload.AsViewList()
	require.Equal(t, "world", string(views.Front().AsSlice()))
	require.Same(t, &piece[0], &views.Front().AsSlice()[0], "copied")

	copy(block.Bytes[11:], "!")
	require.Equal(t, "world", string(payload.Flatten()))

	a.Free(block)
	other := a.Alloc()
	copy(other.Bytes, bytes.Repeat([]byte("x"), len(other.Bytes)))
	require.Equal(t, "world", string(payload.Flatten()), "memory of a packet was reused")
	payload.Release()
	a.Free(other)
}

// A block is ready to serve again once the last packet has let go of it and
// those given back before it are ready, not before, and as it was.
func TestBlocksServeAgain(t *testing.T) {
	var a allocator
	var r ring
	one, two := a.Alloc(), a.Alloc()
	packet := payloadOf([][]byte{one.Bytes[:9]}, []any{one.Owner})
	r.put(one.Owner.(*buffer.View))
	r.put(two.Owner.(*buffer.View))
	r.drain()
	require.Equal(t, 2, r.n, "a packet shares the first")
	packet.Release()
	r.drain()
	require.Zero(t, r.n)
	for _, b := range []mptcp.Block{one, two} {
		v := b.Owner.(*buffer.View)
		require.Len(t, v.AsSlice(), 64<<10)
		require.Same(t, &b.Bytes[0], &v.AsSlice()[0])
	}
}

// A ring that is full leaves blocks to gVisor, and one that is used gets empty.
func TestBlocksWaitInBoundedNumber(t *testing.T) {
	var r ring
	var held []buffer.Buffer
	for range 2 * ringSize {
		v := takeBlock()
		held = append(held, payloadOf([][]byte{v.AsSlice()[:9]}, []any{v}))
		r.put(v)
		r.drain()
	}
	require.Equal(t, ringSize, r.n)
	for i := range held {
		held[i].Release()
	}
	for range ringSize / drainMost {
		r.drain()
	}
	require.Zero(t, r.n)
}

func TestPayloadsOfSeveralViews(t *testing.T) {
	var a allocator
	one, two := a.Alloc(), a.Alloc()
	defer a.Free(one)
	defer a.Free(two)
	tail := one.Bytes[len(one.Bytes)-3:]
	copy(tail, "abc")
	copy(two.Bytes, "def")
	foreign := []byte("ghi")
	payload := payloadOf([][]byte{tail, two.Bytes[:3], foreign}, []any{one.Owner, two.Owner, nil})
	defer payload.Release()
	require.Equal(t, "abcdefghi", string(payload.Flatten()))
	foreign[0] = '-'
	require.Equal(t, "abcdefghi", string(payload.Flatten()), "foreign memory was shared")
}

// A view of a packet that does not begin at its chunk is shared as well.
func TestShareOfATrimmedView(t *testing.T) {
	v := buffer.NewViewWithData([]byte("0123456789"))
	defer v.Release()
	v.TrimFront(4)
	s := share(v, v.AsSlice()[2:5])
	defer s.Release()
	require.Equal(t, "678", string(s.AsSlice()))
}
