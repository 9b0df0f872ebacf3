package stream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// recvModel does to a RecvQ what bytes tell it and compares it with one
// record for each byte of the stream. No two inserts bring the same value for
// a byte, so that it shows which copy was kept.
type recvModel struct {
	t       testing.TB
	q       *stream.RecvQ
	base    uint64
	value   []byte
	have    []bool
	read    int
	next    int
	kept    []*packet // those whose reference the queue took
	popped  []popped
	inserts int
	views   int // inserted since the queue was last empty
}

// popped is a piece that left the queue with its reference.
type popped struct {
	off   int
	views [][]byte
	owner stream.Owner
}

// largest is more than what one insert of the model brings.
const largest = 4096

func runRecvQ(t testing.TB, program []byte) {
	if len(program) < 1 {
		return
	}
	m := &recvModel{t: t, base: -uint64(program[0]) * 16}
	m.q = stream.NewRecvQ(m.base)
	for p := program[1:]; len(p) >= 4; p = p[4:] {
		m.step(p[0], int(p[1]), int(p[2]), int(p[3]))
		m.check()
	}
	m.q.Close()
	for len(m.popped) > 0 {
		m.giveBack(0)
	}
	for _, p := range m.kept {
		require.True(t, p.released, "a packet was leaked")
	}
}

func (m *recvModel) step(op byte, x, y, z int) {
	switch op % 16 {
	case 0, 1, 2: // in order, large
		m.insert(m.next, 400+8*y, z)
	case 3, 4: // in order, small
		m.insert(m.next, 1+y, z)
	case 5, 6: // beyond a hole, large
		m.insert(m.next+40*x, 300+12*y, z)
	case 7: // beyond a hole, small
		m.insert(m.next+40*x, 1+y%100, z)
	case 8, 9: // near, with all sorts of overlap
		m.insert(m.next-1000+10*x, 10*y, z)
	case 10: // close to the last hole
		lo := m.next
		for i := m.next; i < len(m.have); i++ {
			if !m.have[i] {
				lo = i
			}
		}
		m.insert(lo, 1+y*(z+1)/40, z)
	case 11:
		m.readBytes(x * 20)
	case 12:
		m.discard(x * 20)
	case 13, 14:
		m.pop()
	case 15:
		if z%8 == 7 {
			m.truncate()
		}
		if len(m.popped) > 0 {
			m.giveBack(x % len(m.popped))
		}
	}
}

func (m *recvModel) truncate() {
	n := 0
	for i := m.next; i < len(m.have); i++ {
		if m.have[i] {
			m.have[i] = false
			n++
		}
	}
	require.Equal(m.t, n, m.q.Truncate())
}

// insert brings n bytes in up to four views; how decides about those and the
// owner.
func (m *recvModel) insert(lo, n, how int) {
	if lo < 0 {
		n += lo
		lo = 0
	}
	n = min(max(n, 0), largest)
	m.inserts++
	p := &packet{mem: make([]byte, n)}
	for i := range p.mem {
		p.mem[i] = byte(m.inserts*31 + (lo + i) + (lo+i)>>8)
	}
	value := append([]byte(nil), p.mem...)
	views := split(p.mem, how)
	m.views += len(views)

	var fresh int
	var kept bool
	switch off := m.base + uint64(lo); how % 8 {
	case 6:
		fresh = m.q.InsertCopy(off, views)
	case 7:
		fresh, kept = m.q.Insert(off, views, nil)
		require.False(m.t, kept)
	default:
		fresh, kept = m.q.Insert(off, views, p)
	}
	if kept {
		m.kept = append(m.kept, p)
	} else if how%8 != 7 {
		p.DecRef() // overwrites the memory
	}
	require.Equal(m.t, m.record(lo, value), fresh)
}

// split cuts mem into one to four views of uneven size.
func split(mem []byte, how int) [][]byte {
	var views [][]byte
	for i := how / 8 % 4; i > 0; i-- {
		k := len(mem) * (how%5 + 1) / 8
		views = append(views, mem[:k])
		mem = mem[k:]
	}
	return append(views, mem)
}

// record notes the bytes that are new and returns how many are.
func (m *recvModel) record(lo int, value []byte) (fresh int) {
	for hi := lo + len(value); len(m.have) < hi; {
		m.have = append(m.have, false)
		m.value = append(m.value, 0)
	}
	for i, v := range value {
		if !m.have[lo+i] {
			m.have[lo+i], m.value[lo+i] = true, v
			fresh++
		}
	}
	for m.next < len(m.have) && m.have[m.next] {
		m.next++
	}
	return fresh
}

func (m *recvModel) readBytes(n int) {
	p := make([]byte, n)
	k := m.q.Read(p)
	require.Equal(m.t, min(n, m.next-m.read), k)
	require.Equal(m.t, string(m.value[m.read:m.read+k]), string(p[:k]))
	m.read += k
}

func (m *recvModel) discard(n int) {
	v := m.q.Peek()
	require.Equal(m.t, m.read < m.next, len(v) > 0)
	require.Equal(m.t, string(m.value[m.read:m.read+len(v)]), string(v))
	k := m.q.Discard(n)
	require.Equal(m.t, min(n, m.next-m.read), k)
	m.read += k
}

func (m *recvModel) pop() {
	off, views, owner, ok := m.q.Pop()
	require.Equal(m.t, m.read < m.next, ok)
	if !ok {
		return
	}
	require.Equal(m.t, m.base+uint64(m.read), off)
	p := popped{off: m.read, views: append([][]byte(nil), views...), owner: owner}
	for _, v := range views {
		require.NotEmpty(m.t, v)
		m.read += len(v)
	}
	require.LessOrEqual(m.t, m.read, m.next)
	m.popped = append(m.popped, p)
}

// giveBack checks that a popped piece is still what it was and releases it.
func (m *recvModel) giveBack(i int) {
	p := m.popped[i]
	got := join(p.views)
	require.Equal(m.t, string(m.value[p.off:p.off+len(got)]), string(got))
	if p.owner != nil {
		p.owner.DecRef()
	}
	m.popped = append(m.popped[:i], m.popped[i+1:]...)
}

func (m *recvModel) check() {
	var ranges []interval.Range
	buffered := m.next - m.read
	for i := m.next; i < len(m.have); i++ {
		if !m.have[i] {
			continue
		}
		buffered++
		x := m.base + uint64(i)
		if !m.have[i-1] {
			ranges = append(ranges, interval.Range{Lo: x})
		}
		ranges[len(ranges)-1].Hi = x + 1
	}
	require.Equal(m.t, m.base+uint64(m.next), m.q.Next())
	require.Equal(m.t, m.next-m.read, m.q.Readable())
	require.Equal(m.t, buffered, m.q.Buffered())
	require.Equal(m.t, ranges, m.q.Ranges(nil))
	for _, r := range ranges {
		got, ok := m.q.RangeOf(r.Lo + (r.Hi-r.Lo)/2)
		require.True(m.t, ok)
		require.Equal(m.t, r, got)
		_, ok = m.q.RangeOf(r.Hi)
		require.False(m.t, ok)
	}
	m.checkMemory(buffered, len(ranges))
}

// checkMemory holds the queue to its promise: about twice the bytes, beyond
// what one packet partly read and one fresh buffer may add. Bookkeeping of
// 100 bytes a view is counted apart.
func (m *recvModel) checkMemory(buffered, ranges int) {
	if buffered == 0 {
		m.views = 0
		require.Zero(m.t, m.q.Memory())
		return
	}
	require.GreaterOrEqual(m.t, m.q.Memory(), buffered)
	require.LessOrEqual(m.t, m.q.Memory(), 2*buffered+2*largest+100*(m.views+2*m.inserts+ranges))
}

func TestRecvQAgainstModel(t *testing.T) {
	for seed := range uint64(150) {
		runRecvQ(t, randomProgram(seed, 401))
	}
}

func FuzzRecvQ(f *testing.F) {
	f.Add([]byte{1, 0, 0, 200, 0, 13, 0, 0, 0, 15, 0, 0, 0})
	f.Add([]byte{0, 5, 50, 100, 9, 5, 20, 200, 17, 8, 120, 255, 8, 11, 255, 0, 0, 13, 0, 0, 0})
	f.Add([]byte{3, 3, 0, 80, 0, 3, 0, 80, 0, 7, 10, 90, 0, 10, 0, 255, 200, 12, 200, 0, 0})
	f.Add(randomProgram(1, 161))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 1000 {
			return
		}
		runRecvQ(t, program)
	})
}
