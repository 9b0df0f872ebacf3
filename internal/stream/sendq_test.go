package stream_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/stream"
)

// pool is an allocator that hands freed blocks out again, as a real one may,
// and overwrites them first, so that use after Free shows. It panics when a
// block is freed twice.
type pool struct {
	size int
	free []stream.Block
	live map[*byte]bool
}

func newPool(size int) *pool { return &pool{size: size, live: map[*byte]bool{}} }

func (p *pool) Alloc() stream.Block {
	var b stream.Block
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
	} else {
		// Slack beyond len, as a block inside a larger buffer has, must
		// not be used.
		b.Bytes = make([]byte, p.size, p.size+3)
		b.Owner = &b.Bytes[0]
	}
	p.live[&b.Bytes[0]] = true
	return b
}

func (p *pool) Free(b stream.Block) {
	if !p.live[&b.Bytes[0]] {
		panic("block freed twice")
	}
	delete(p.live, &b.Bytes[0])
	for i := range b.Bytes {
		b.Bytes[i] = 0xee
	}
	p.free = append(p.free, b)
}

func join(views [][]byte) []byte { return bytes.Join(views, nil) }

func TestSendQFillsTailBlock(t *testing.T) {
	p := newPool(10)
	q := stream.NewSendQ(p, 100)
	require.Equal(t, 4, q.Append([]byte("abcd")))
	require.Equal(t, 4, q.Append([]byte("efgh")))
	require.Len(t, p.live, 1)
	q.Append([]byte("ijklmnopqrstuvw"))
	require.Equal(t, uint64(100), q.Start())
	require.Equal(t, uint64(123), q.End())
	require.Equal(t, 23, q.Len())
	require.Equal(t, 30, q.Memory())
	require.Len(t, p.live, 3)
}

func TestSendQViewsShareMemoryAndTellTheirPlace(t *testing.T) {
	q := stream.NewSendQ(newPool(10), 100)
	q.Append([]byte("abcdefghijklmnopqrstuvw"))
	views, blocks := q.Views(108, 13, nil, nil)
	require.Equal(t, [][]byte{[]byte("ij"), []byte("klmnopqrst"), []byte("u")}, views)
	require.Len(t, blocks, 3)
	for i, off := range []int{8, 0, 0} {
		first := blocks[i].(*byte)
		require.Equal(t, off, 13-cap(views[i]), "distance from the start of the block")
		require.Equal(t, unsafe.Add(unsafe.Pointer(first), off), unsafe.Pointer(&views[i][0]))
	}
	more, _ := q.Views(100, 0, views, blocks)
	require.Len(t, more, 3, "an empty range has no views")
}

func TestSendQFreesBlocksOneByOne(t *testing.T) {
	p := newPool(10)
	q := stream.NewSendQ(p, 0)
	q.Append(make([]byte, 35))
	q.Ref(5, 10)  // blocks 0 and 1
	q.Ref(12, 20) // blocks 1 to 3, from another subflow
	q.Release(30)
	require.Len(t, p.live, 4)

	q.Unref(12, 20)
	require.Equal(t, 30, q.Memory(), "block 2 is free though earlier ones are not")
	require.Zero(t, q.Start())
	views, _ := q.Views(5, 10, nil, nil)
	require.Equal(t, make([]byte, 10), join(views))
	require.Panics(t, func() { q.Views(15, 10, nil, nil) }, "block 2 is gone")

	q.Unref(10, 5) // the pieces need not be those of Ref
	require.Equal(t, 20, q.Memory())
	q.Unref(5, 5)
	require.Equal(t, 10, q.Memory())
	require.Equal(t, uint64(30), q.Start())
	require.Equal(t, 5, q.Len())

	q.Release(35)
	require.Empty(t, p.live, "the tail block goes as well")
	require.Equal(t, uint64(35), q.Start())
	q.Append([]byte("more"))
	views, _ = q.Views(35, 4, nil, nil)
	require.Equal(t, "more", string(join(views)))
}

func TestSendQStartFollowsReleaseWithinABlock(t *testing.T) {
	q := stream.NewSendQ(newPool(10), 50)
	q.Append(make([]byte, 8))
	q.Release(53)
	require.Equal(t, uint64(53), q.Start())
	q.Release(51)
	require.Equal(t, uint64(53), q.Start(), "a release never moves backwards")
	q.Ref(53, 2)
	require.Equal(t, uint64(50), q.Start(), "a reference keeps the whole block")
	q.Unref(53, 2)
	q.Release(59)
	require.Equal(t, uint64(58), q.Start(), "the number of a DATA_FIN is no byte")
	require.Zero(t, q.Len())
}

func TestSendQKeepsReferencedTailOpen(t *testing.T) {
	p := newPool(10)
	q := stream.NewSendQ(p, 0)
	q.Append(make([]byte, 4))
	q.Ref(0, 4)
	q.Release(4)
	q.Append([]byte("xyz"))
	require.Len(t, p.live, 1)
	q.Unref(0, 4)
	require.Len(t, p.live, 1, "new bytes keep the block")
	q.Release(7)
	require.Empty(t, p.live)
}

func TestSendQRefusesWhatItDoesNotHold(t *testing.T) {
	q := stream.NewSendQ(newPool(10), 100)
	q.Append(make([]byte, 25))
	q.Release(110)
	for name, call := range map[string]func(){
		"views beyond the end": func() { q.Views(120, 6, nil, nil) },
		"views before start":   func() { q.Views(95, 3, nil, nil) },
		"views of released":    func() { q.Views(100, 3, nil, nil) },
		"negative length":      func() { q.Views(112, -1, nil, nil) },
		"ref beyond the end":   func() { q.Ref(120, 6) },
		"unref without a ref":  func() { q.Unref(115, 1) },
	} {
		require.Panics(t, call, name)
	}
}

func TestSendQCloseFreesEverything(t *testing.T) {
	p := newPool(10)
	q := stream.NewSendQ(p, 7)
	q.Append(make([]byte, 25))
	q.Ref(7, 25)
	q.Close()
	require.Empty(t, p.live)
	require.Zero(t, q.Memory())
	require.Zero(t, q.Len())
	require.Equal(t, uint64(32), q.End())
	q.Close()
}

func TestHeapMakesBlocks(t *testing.T) {
	require.Len(t, stream.Heap{}.Alloc().Bytes, stream.DefaultBlock)
	q := stream.NewSendQ(stream.Heap{Size: 4}, 0)
	q.Append([]byte("abcdef"))
	require.Equal(t, 8, q.Memory())
	q.Close()
}

// sendModel does to a SendQ what bytes tell it and compares it with one
// record for each byte ever appended.
type sendModel struct {
	t        testing.TB
	pool     *pool
	q        *stream.SendQ
	base     uint64
	bytes    []byte
	block    []*byte // the block of each byte
	refs     []int
	ranges   [][2]int // referenced, to be given back in any order and pieces
	released int
}

func runSendQ(t testing.TB, program []byte) {
	if len(program) < 2 {
		return
	}
	// Begin shortly before the wrap of numbers in many runs.
	m := &sendModel{t: t, pool: newPool(1 + int(program[0]%40)), base: -uint64(program[1])}
	m.q = stream.NewSendQ(m.pool, m.base)
	for p := program[2:]; len(p) >= 3; p = p[3:] {
		m.step(p[0], int(p[1]), int(p[2]))
		m.check()
	}
	for _, r := range m.ranges {
		m.unref(r[0], r[1])
	}
	m.released = len(m.bytes)
	m.q.Release(m.base + uint64(len(m.bytes)))
	m.check()
	require.Empty(t, m.pool.live)
}

func (m *sendModel) step(op byte, x, y int) {
	n := len(m.bytes)
	switch op % 6 {
	case 0:
		m.append(x % 90)
	case 1: // reference a range of unreleased bytes
		lo := m.released + x*(n-m.released)/256
		if k := min(y, n-lo); k > 0 {
			m.q.Ref(m.base+uint64(lo), k)
			m.ranges = append(m.ranges, [2]int{lo, k})
			for i := range k {
				m.refs[lo+i]++
			}
		}
	case 2, 3: // give a range back, or a part of it
		if len(m.ranges) == 0 {
			return
		}
		i := x % len(m.ranges)
		lo, k := m.ranges[i][0], m.ranges[i][1]
		cut := k
		if op%6 == 3 {
			cut = y % (k + 1)
		}
		m.ranges[i] = [2]int{lo + cut, k - cut}
		if cut == k {
			m.ranges = append(m.ranges[:i], m.ranges[i+1:]...)
		}
		m.unref(lo, cut)
	case 4:
		m.released += x * (n - m.released) / 255
		m.q.Release(m.base + uint64(m.released))
	case 5: // views of whatever is needed
		lo := x * n / 256
		k := min(y, n-lo)
		for i := range k {
			if lo+i < m.released && m.refs[lo+i] == 0 {
				k = i
				break
			}
		}
		views, _ := m.q.Views(m.base+uint64(lo), k, nil, nil)
		require.Equal(m.t, string(m.bytes[lo:lo+k]), string(join(views)))
	}
}

func (m *sendModel) append(k int) {
	n := len(m.bytes)
	for i := range k {
		m.bytes = append(m.bytes, byte((n+i)*7))
		m.refs = append(m.refs, 0)
	}
	p := bytes.Clone(m.bytes[n:])
	require.Equal(m.t, k, m.q.Append(p))
	clear(p) // the queue has its own copy
	views, blocks := m.q.Views(m.base+uint64(n), k, nil, nil)
	for i, v := range views {
		for range v {
			m.block = append(m.block, blocks[i].(*byte))
		}
	}
}

func (m *sendModel) unref(lo, k int) {
	m.q.Unref(m.base+uint64(lo), k)
	for i := range k {
		m.refs[lo+i]--
	}
}

// check compares counters, contents and the exact set of blocks held.
func (m *sendModel) check() {
	n := len(m.bytes)
	want := map[*byte]bool{}
	for i := range n {
		if i < m.released && m.refs[i] == 0 {
			continue
		}
		want[m.block[i]] = true
		views, _ := m.q.Views(m.base+uint64(i), 1, nil, nil)
		if len(views) != 1 || views[0][0] != m.bytes[i] {
			m.t.Fatalf("byte %d is %x, want %x", i, views, m.bytes[i])
		}
	}
	require.Equal(m.t, want, m.pool.live)
	require.Equal(m.t, len(want)*m.pool.size, m.q.Memory())
	require.Equal(m.t, m.base+uint64(n), m.q.End())
	start := int(m.q.Start() - m.base)
	require.Equal(m.t, n-start, m.q.Len())
	require.LessOrEqual(m.t, start, m.released)
	if start < m.released {
		require.Contains(m.t, m.pool.live, m.block[start])
	}
	for i := range start {
		require.Zero(m.t, m.refs[i])
	}
}

func TestSendQAgainstModel(t *testing.T) {
	for seed := range uint64(150) {
		runSendQ(t, randomProgram(seed, 300))
	}
}

func randomProgram(seed uint64, n int) []byte {
	rnd := rand.New(rand.NewPCG(seed, 99))
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	return p
}

func FuzzSendQ(f *testing.F) {
	f.Add([]byte{10, 5, 0, 80, 0, 1, 0, 50, 4, 255, 0, 2, 0, 0})
	f.Add([]byte{3, 0, 0, 40, 0, 1, 100, 20, 4, 255, 0, 0, 9, 0, 3, 0, 7, 2, 0, 0, 5, 0, 255})
	f.Add(randomProgram(1, 120))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 600 {
			return
		}
		runSendQ(t, program)
	})
}

// recycler keeps one freed block, which suffices for a queue of two.
type recycler struct{ free []stream.Block }

func (r *recycler) Alloc() stream.Block {
	if n := len(r.free); n > 0 {
		b := r.free[n-1]
		r.free = r.free[:n-1]
		return b
	}
	return stream.Heap{}.Alloc()
}

func (r *recycler) Free(b stream.Block) { r.free = append(r.free, b) }

// sendSteadily returns one round of a bulk transfer with size bytes a write
// and about a megabyte in flight.
func sendSteadily(size int) func() {
	q := stream.NewSendQ(&recycler{}, 0)
	p := make([]byte, size)
	var views [][]byte
	var blocks []any
	return func() {
		lo := q.End()
		q.Append(p)
		q.Ref(lo, size)
		views, blocks = q.Views(lo, size, views[:0], blocks[:0])
		if lo > 1<<20 {
			done := lo - 1<<20
			q.Unref(done/uint64(size)*uint64(size), size)
			q.Release(done)
		}
	}
}

func TestSendQSteadyStateDoesNotAllocate(t *testing.T) {
	round := sendSteadily(1448)
	for range 10000 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(2000, round))
}

func BenchmarkSendQ(b *testing.B) {
	round := sendSteadily(16 << 10)
	b.SetBytes(16 << 10)
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}
