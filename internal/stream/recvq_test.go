package stream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// packet owns the memory of views that a test gives to a queue. Releasing it
// overwrites the memory, so that a queue that reads it later shows it.
type packet struct {
	mem      []byte
	released bool
}

func (p *packet) DecRef() {
	if p.released {
		panic("packet released twice")
	}
	p.released = true
	for i := range p.mem {
		p.mem[i] = 0xee
	}
}

// letters returns n bytes that count up from number off.
func letters(off, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(off+i) ^ byte((off+i)>>8)
	}
	return b
}

func newPacket(off, n int) *packet { return &packet{mem: letters(off, n)} }

// insert puts n bytes in one view into q and returns their packet.
func insert(q *stream.RecvQ, off, n int) (p *packet, fresh int, kept bool) {
	p = newPacket(off, n)
	fresh, kept = q.Insert(uint64(off), [][]byte{p.mem}, p)
	return p, fresh, kept
}

func readAll(q *stream.RecvQ) []byte {
	p := make([]byte, q.Readable())
	return p[:q.Read(p)]
}

func TestRecvQInOrder(t *testing.T) {
	q := stream.NewRecvQ(100)
	p, fresh, kept := insert(q, 100, 1000)
	require.Equal(t, 1000, fresh)
	require.True(t, kept)
	require.Equal(t, uint64(1100), q.Next())
	require.Equal(t, 1000, q.Readable())
	require.Equal(t, 1000, q.Buffered())

	buf := make([]byte, 600)
	require.Equal(t, 600, q.Read(buf))
	require.Equal(t, letters(100, 600), buf)
	require.False(t, p.released, "400 bytes are still needed")
	require.Equal(t, letters(700, 400), q.Peek())
	require.Equal(t, 400, q.Discard(1000))
	require.True(t, p.released)
	require.Zero(t, q.Memory())
	require.Nil(t, q.Peek())
	require.Zero(t, q.Read(buf))
}

func TestRecvQJoinsRuns(t *testing.T) {
	q := stream.NewRecvQ(0)
	for _, off := range []int{2000, 6000, 4000, 3000} {
		_, fresh, kept := insert(q, off, 1000)
		require.Equal(t, 1000, fresh)
		require.True(t, kept)
	}
	require.Equal(t, []interval.Range{{Lo: 2000, Hi: 5000}, {Lo: 6000, Hi: 7000}}, q.Ranges(nil))
	require.Zero(t, q.Readable())
	require.Equal(t, 4000, q.Buffered())
	for x, want := range map[uint64]interval.Range{
		1999: {}, 2000: {Lo: 2000, Hi: 5000}, 4999: {Lo: 2000, Hi: 5000}, 5000: {}, 6500: {Lo: 6000, Hi: 7000}, 7000: {},
	} {
		r, ok := q.RangeOf(x)
		require.Equal(t, want, r, "range of %d", x)
		require.Equal(t, want.Hi != 0, ok)
	}

	insert(q, 5000, 1000)
	require.Equal(t, []interval.Range{{Lo: 2000, Hi: 7000}}, q.Ranges(nil))
	insert(q, 0, 1000)
	insert(q, 1000, 1000)
	require.Empty(t, q.Ranges(nil))
	require.Equal(t, uint64(7000), q.Next())
	require.Equal(t, letters(0, 7000), readAll(q))
	require.Zero(t, q.Memory())
}

func TestRecvQFirstCopyWins(t *testing.T) {
	q := stream.NewRecvQ(0)
	insert(q, 1000, 600)
	other := make([]byte, 3000)
	p := &packet{mem: other}
	fresh, kept := q.Insert(0, [][]byte{other[:700], other[700:]}, p)
	require.Equal(t, 2400, fresh)
	require.False(t, kept, "neither part is half of the packet and has a reference of its own")
	p.DecRef()
	got := readAll(q)
	require.Equal(t, letters(1000, 600), got[1000:1600])
	require.Equal(t, make([]byte, 1000), got[:1000])
	require.Equal(t, make([]byte, 1400), got[1600:])
}

func TestRecvQDuplicatesLeaveOwnerAlone(t *testing.T) {
	q := stream.NewRecvQ(0)
	insert(q, 0, 600)
	insert(q, 1000, 600)
	for _, c := range [][2]int{{0, 600}, {1000, 600}, {1100, 100}, {300, 300}, {5, 0}, {2000, 0}} {
		_, fresh, kept := insert(q, c[0], c[1])
		require.Zero(t, fresh)
		require.False(t, kept)
	}
	require.Equal(t, 1200, q.Buffered())
}

func TestRecvQTrimsWhatItKeeps(t *testing.T) {
	q := stream.NewRecvQ(0)
	insert(q, 0, 1000)
	p, fresh, kept := insert(q, 500, 2000) // three quarters are new
	require.Equal(t, 1500, fresh)
	require.True(t, kept)
	require.Equal(t, letters(0, 2500), readAll(q))
	require.True(t, p.released)

	_, fresh, kept = insert(q, 1000, 2100) // 600 of 2100 are: copied
	require.Equal(t, 600, fresh)
	require.False(t, kept)
	require.Equal(t, letters(2500, 600), readAll(q))
}

func TestRecvQPopMovesWholePackets(t *testing.T) {
	q := stream.NewRecvQ(0)
	_, _, _, ok := q.Pop()
	require.False(t, ok)

	p := newPacket(0, 1500)
	q.Insert(0, [][]byte{p.mem[:100], nil, p.mem[100:700], p.mem[700:]}, p)
	insert(q, 1500, 1000)
	insert(q, 9000, 1000)
	q.Discard(150)

	off, views, owner, ok := q.Pop()
	require.True(t, ok)
	require.Equal(t, uint64(150), off)
	require.Equal(t, [][]byte{letters(150, 550), letters(700, 800)}, views)
	require.Same(t, p, owner)
	require.False(t, p.released, "the reference moved, it was not given back")
	require.Equal(t, 1000, q.Readable())

	off, views, _, ok = q.Pop()
	require.True(t, ok)
	require.Equal(t, uint64(1500), off)
	require.Equal(t, [][]byte{letters(1500, 1000)}, views)
	_, _, _, ok = q.Pop()
	require.False(t, ok, "the rest lies beyond a hole")
	require.Equal(t, 1000, q.Buffered())
}

func TestRecvQCopiesSmallPacketsTogether(t *testing.T) {
	q := stream.NewRecvQ(0)
	for i := range 40 {
		_, fresh, kept := insert(q, i*100, 100)
		require.Equal(t, 100, fresh)
		require.False(t, kept)
	}
	require.LessOrEqual(t, q.Memory(), 2*4000)

	_, views, owner, ok := q.Pop()
	require.True(t, ok)
	require.Len(t, views, 1)
	require.Greater(t, len(views[0]), 300, "several packets leave in one piece")
	insert(q, 4000, 100)
	require.Equal(t, letters(0, len(views[0])), views[0], "a popped buffer is not reused while it is owned")
	owner.DecRef()
	require.Panics(t, owner.DecRef)
}

// TestRecvQMemoryBeyondAHole allows twice the bytes and, for bookkeeping, 100
// bytes a packet.
func TestRecvQMemoryBeyondAHole(t *testing.T) {
	for name, step := range map[string]int{"contiguous": 100, "scattered": 150} {
		q := stream.NewRecvQ(0)
		for i := range 50 {
			insert(q, 1000+i*step, 100)
			require.LessOrEqual(t, q.Memory(), (i+1)*(2*100+100), "%s, packet %d", name, i)
		}
	}
}

func TestRecvQPeekSurvivesInsert(t *testing.T) {
	q := stream.NewRecvQ(0)
	insert(q, 0, 100)
	view := q.Peek()
	for i := 1; i < 60; i++ {
		insert(q, i*100, 100)
	}
	require.Equal(t, letters(0, 100), view)
}

func TestRecvQInsertCopyLeavesMemoryAlone(t *testing.T) {
	q := stream.NewRecvQ(0)
	mem := letters(0, 3000)
	require.Equal(t, 3000, q.InsertCopy(0, [][]byte{mem[:1], mem[1:]}))
	clear(mem)
	require.Equal(t, letters(0, 3000), readAll(q))
}

func TestRecvQWithoutOwner(t *testing.T) {
	q := stream.NewRecvQ(0)
	fresh, kept := q.Insert(0, [][]byte{letters(0, 800)}, nil)
	require.Equal(t, 800, fresh)
	require.False(t, kept)
	_, views, owner, ok := q.Pop()
	require.True(t, ok)
	require.Nil(t, owner)
	require.Equal(t, letters(0, 800), views[0])
}

func TestRecvQCloseReleasesEverything(t *testing.T) {
	q := stream.NewRecvQ(0)
	var all []*packet
	for _, off := range []int{0, 1000, 3000, 5000, 6000} {
		p, _, kept := insert(q, off, 1000)
		require.True(t, kept)
		all = append(all, p)
	}
	insert(q, 2000, 100)
	insert(q, 8000, 100)
	q.Read(make([]byte, 1500))
	q.Close()
	for i, p := range all {
		require.True(t, p.released, "packet %d", i)
	}
	require.Zero(t, q.Memory())
	require.Zero(t, q.Buffered())
	require.Zero(t, q.Readable())
	require.Equal(t, uint64(2100), q.Next())
	q.Close()
}

func TestRecvQCrossesTheWrap(t *testing.T) {
	start := ^uint64(0) - 999
	q := stream.NewRecvQ(start)
	late := newPacket(2000, 1000)
	q.Insert(start+2000, [][]byte{late.mem}, late) // begins at 1000, after the wrap
	require.Equal(t, []interval.Range{{Lo: 1000, Hi: 2000}}, q.Ranges(nil))
	_, ok := q.RangeOf(1500)
	require.True(t, ok)
	early := newPacket(0, 2000)
	q.Insert(start, [][]byte{early.mem}, early)
	require.Equal(t, uint64(2000), q.Next())
	require.Equal(t, letters(0, 3000), readAll(q))
	fresh, _ := q.Insert(start-5, [][]byte{make([]byte, 10)}, nil)
	require.Zero(t, fresh, "numbers before the start are old")
}

// TestRecvQManyRuns has every second byte of a large window arrive, in three
// orders, and then the rest: the work of a peer that wants to be costly.
func TestRecvQManyRuns(t *testing.T) {
	const n = 200_000
	for name, place := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n/2 - 1 - i },
		"scattered":  func(i int) int { return i * 31_337 % (n / 2) }, // 31337 and 100000 have no common factor
	} {
		t.Run(name, func(t *testing.T) {
			q := stream.NewRecvQ(0)
			want := letters(0, n)
			for i := range n / 2 {
				off := 2*place(i) + 1
				q.InsertCopy(uint64(off), [][]byte{want[off : off+1]})
			}
			require.Len(t, q.Ranges(nil), n/2)
			for i := range n / 2 {
				off := 2 * place(i)
				q.InsertCopy(uint64(off), [][]byte{want[off : off+1]})
			}
			require.Equal(t, want, readAll(q))
			require.Zero(t, q.Memory())
		})
	}
}

// deliver returns a round that inserts burst packets of size bytes and reads
// them with a queue that always holds one burst.
func deliver(q *stream.RecvQ, size, burst int) func() {
	views := [][]byte{make([]byte, size)}
	buf := make([]byte, size*burst)
	off := q.Next()
	owner := nopOwner{}
	round := func() {
		for range burst {
			q.Insert(off, views, owner)
			off += uint64(size)
		}
	}
	round()
	return func() {
		round()
		q.Read(buf)
	}
}

type nopOwner struct{}

func (nopOwner) DecRef() {}

func TestRecvQSteadyStateDoesNotAllocate(t *testing.T) {
	for _, size := range []int{1, 100, 511, 1448, 65000} {
		round := deliver(stream.NewRecvQ(0), size, 1)
		for range 100 {
			round()
		}
		require.Zero(t, testing.AllocsPerRun(1000, round), "packets of %d bytes", size)
	}
	round := deliver(stream.NewRecvQ(0), 1448, 200)
	round()
	require.Zero(t, testing.AllocsPerRun(100, round), "bursts")
}

func TestRecvQPopDoesNotAllocate(t *testing.T) {
	for _, size := range []int{100, 1448} {
		q := stream.NewRecvQ(0)
		views := [][]byte{make([]byte, size)}
		round := func() {
			q.Insert(q.Next(), views, nopOwner{})
			_, _, owner, _ := q.Pop()
			owner.DecRef()
		}
		round()
		require.Zero(t, testing.AllocsPerRun(1000, round), "packets of %d bytes", size)
	}
}

func TestRecvQHoleDoesNotAllocate(t *testing.T) {
	q := stream.NewRecvQ(0)
	views := [][]byte{make([]byte, 1448)}
	buf := make([]byte, 100*1448)
	round := func() {
		lo := q.Next()
		for i := range 99 {
			q.Insert(lo+uint64(99-i)*1448, views, nopOwner{})
		}
		q.Insert(lo, views, nopOwner{})
		q.Read(buf)
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

func BenchmarkRecvQInOrder(b *testing.B) {
	round := deliver(stream.NewRecvQ(0), 1448, 1)
	b.SetBytes(1448)
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

func BenchmarkRecvQSmall(b *testing.B) {
	round := deliver(stream.NewRecvQ(0), 100, 1)
	b.SetBytes(100)
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// BenchmarkRecvQInterleaved is two paths of one connection that each bring a
// contiguous stretch of 500 packets, taking turns.
func BenchmarkRecvQInterleaved(b *testing.B) {
	const size, n = 1448, 500
	q := stream.NewRecvQ(0)
	views := [][]byte{make([]byte, size)}
	buf := make([]byte, size*2*n)
	b.SetBytes(size * 2 * n)
	b.ReportAllocs()
	for b.Loop() {
		lo := q.Next()
		for i := range uint64(n) {
			q.Insert(lo+(n+i)*size, views, nopOwner{})
			q.Insert(lo+i*size, views, nopOwner{})
		}
		q.Read(buf)
	}
}

// BenchmarkRecvQScattered inserts into the middle of 100 000 runs.
func BenchmarkRecvQScattered(b *testing.B) {
	const n = 100_000
	view := [][]byte{make([]byte, 1)}
	b.ReportAllocs()
	i, q := 0, stream.NewRecvQ(0)
	for b.Loop() {
		if i == n {
			i, q = 0, stream.NewRecvQ(0)
		}
		q.InsertCopy(uint64(2*(i*31_337%n)+1), view)
		i++
	}
}
