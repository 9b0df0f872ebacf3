package stream

// SendQ keeps outgoing bytes, addressed by number, in blocks. A block is
// freed as soon as all its bytes are released (nobody can ask for them at the
// data level) and none is referenced (no subflow may have to retransmit
// them), whatever happened to the blocks around it. The tail block is freed
// as well, so that an idle connection holds no memory.
type SendQ struct {
	alloc Allocator

	// blocks[head:] are the blocks in ascending order, without gaps between
	// them. Those freed before an earlier one stay as entries without memory;
	// the first entry always has memory.
	blocks []sendBlock
	head   int

	base     uint64 // number of position 0; everything below counts positions
	released uint64 // all before this is released
	end      uint64 // one past the last byte appended
	mem      int    // bytes of the blocks held
}

// sendBlock is one block and its place in the queue.
type sendBlock struct {
	Block        // no Bytes: freed
	start uint64 // position of the first byte
	used  int    // bytes filled
	refs  int64  // referenced bytes, each counted once a reference
}

func (b *sendBlock) end() uint64 { return b.start + uint64(b.used) }

// NewSendQ returns an empty queue whose first byte will have the number
// start.
func NewSendQ(a Allocator, start uint64) *SendQ {
	return &SendQ{alloc: a, base: start}
}

// Start returns the number of the first byte still kept, End() if none is.
// It lies before the first unreleased byte while a reference holds back the
// block of an earlier one.
func (q *SendQ) Start() uint64 {
	if q.head == len(q.blocks) {
		return q.base + q.end
	}
	first := &q.blocks[q.head]
	if first.refs > 0 {
		return q.base + first.start
	}
	return q.base + max(first.start, q.released)
}

// End returns the number that the next byte appended will have.
func (q *SendQ) End() uint64 { return q.base + q.end }

// Len returns End() - Start().
func (q *SendQ) Len() int { return int(q.End() - q.Start()) }

// Memory returns the bytes of memory of all blocks held, used or not.
func (q *SendQ) Memory() int { return q.mem }

// Append copies p to the end of the queue and returns its length.
func (q *SendQ) Append(p []byte) int {
	n := len(p)
	for len(p) > 0 {
		b := q.tail()
		k := copy(b.Bytes[b.used:], p)
		b.used += k
		q.end += uint64(k)
		p = p[k:]
	}
	return n
}

// tail returns the block that the next byte goes to, a new one if need be.
func (q *SendQ) tail() *sendBlock {
	if i := len(q.blocks) - 1; i >= q.head && q.blocks[i].used < len(q.blocks[i].Bytes) {
		return &q.blocks[i]
	}
	if len(q.blocks) == cap(q.blocks) && q.head > len(q.blocks)/2 {
		n := copy(q.blocks, q.blocks[q.head:])
		clear(q.blocks[n:])
		q.blocks, q.head = q.blocks[:n], 0
	}
	q.blocks = append(q.blocks, sendBlock{Block: q.alloc.Alloc(), start: q.end})
	b := &q.blocks[len(q.blocks)-1]
	q.mem += len(b.Bytes)
	return b
}

// Views appends to payload views of the n bytes from lo on, and to blocks the
// owner of the block behind each view. A view keeps the capacity of its
// block, so that it lies cap(Block.Bytes) - cap(view) bytes into it. All
// bytes must be kept: unreleased, or covered by a reference.
func (q *SendQ) Views(lo uint64, n int, payload [][]byte, blocks []any) ([][]byte, []any) {
	pos := q.position(lo, n)
	for i := q.find(pos); n > 0; i++ {
		b := &q.blocks[i]
		if b.Bytes == nil {
			panic("stream: view of freed bytes")
		}
		from := int(pos - b.start)
		k := min(n, b.used-from)
		payload = append(payload, b.Bytes[from:from+k])
		blocks = append(blocks, b.Owner)
		pos += uint64(k)
		n -= k
	}
	return payload, blocks
}

// Ref notes that a subflow may have to send the n bytes from lo on again, so
// that they are kept even when they are released. References add up.
func (q *SendQ) Ref(lo uint64, n int) { q.count(lo, n, 1) }

// Unref undoes one Ref of each of the n bytes from lo on. The pieces in which
// a range is given back need not be those in which it was taken.
func (q *SendQ) Unref(lo uint64, n int) { q.count(lo, n, -1) }

// count adds sign to the references of each byte of a range and frees the
// blocks that lose their last.
func (q *SendQ) count(lo uint64, n int, sign int64) {
	pos := q.position(lo, n)
	for i := q.find(pos); n > 0; i++ {
		b := &q.blocks[i]
		k := min(n, b.used-int(pos-b.start))
		b.refs += sign * int64(k)
		if b.refs < 0 || b.Bytes == nil {
			panic("stream: references do not match")
		}
		q.free(b)
		pos += uint64(k)
		n -= k
	}
	q.trim()
}

// Release notes that everything before to is acknowledged at the data level.
// It never moves backwards, and not beyond End(): the number of a DATA_FIN
// may lie in between.
func (q *SendQ) Release(to uint64) {
	was := q.released
	pos := min(to-q.base, q.end)
	if int64(to-q.base-was) <= 0 {
		return
	}
	q.released = pos
	for i := q.find(was); i < len(q.blocks) && q.blocks[i].end() <= pos; i++ {
		q.free(&q.blocks[i])
	}
	q.trim()
}

// Close frees all blocks, whoever references them. The queue is then empty.
func (q *SendQ) Close() {
	for i := q.head; i < len(q.blocks); i++ {
		if q.blocks[i].Bytes != nil {
			q.alloc.Free(q.blocks[i].Block)
		}
	}
	q.blocks, q.head, q.mem = nil, 0, 0
	q.released = q.end
}

// Trim gives up memory that an empty queue keeps for later.
func (q *SendQ) Trim() {
	if q.head == len(q.blocks) {
		q.blocks, q.head = nil, 0
	}
}

// free gives the memory of b back if nobody needs any of its bytes.
func (q *SendQ) free(b *sendBlock) {
	if b.refs > 0 || b.end() > q.released || b.Bytes == nil {
		return
	}
	q.mem -= len(b.Bytes)
	q.alloc.Free(b.Block)
	b.Block = Block{}
}

// trim drops the entries of freed blocks at the front.
func (q *SendQ) trim() {
	for q.head < len(q.blocks) && q.blocks[q.head].Bytes == nil {
		q.head++
	}
	if q.head == len(q.blocks) {
		q.blocks, q.head = q.blocks[:0], 0
	}
}

// position returns the position of lo, having checked that the n bytes from
// there on are in the queue.
func (q *SendQ) position(lo uint64, n int) uint64 {
	pos := lo - q.base
	if n < 0 || pos > q.end || uint64(n) > q.end-pos ||
		n > 0 && (q.head == len(q.blocks) || pos < q.blocks[q.head].start) {
		panic("stream: range outside the send queue")
	}
	return pos
}

// find returns the index in blocks of the block that holds the position, the
// length of blocks if none does.
func (q *SendQ) find(pos uint64) int {
	lo, hi := q.head, len(q.blocks)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		if q.blocks[m].end() <= pos {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
