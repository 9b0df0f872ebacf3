package stream

import "github.com/gomptcp/gomptcp/internal/interval"

// RecvQ puts received bytes in order. It keeps the memory that they arrived
// in and the reference on it, until they are read. Of bytes that arrive
// twice the first copy wins.
//
// Bytes are copied instead where keeping them would pin more than twice as
// much memory: payloads below a threshold, and what is left of a packet that
// was mostly known. Copies share buffers, so Memory stays near twice Buffered
// however small the packets are.
//
// Contiguous bytes are reached in O(1). Beyond the first hole, the queue
// keeps one entry for each run of contiguous bytes, found in O(log n) of the
// number of runs; a packet that extends a run or closes a hole is linked in
// without being searched for or moved.
type RecvQ struct {
	nodes arena   // all pieces
	ready chain   // the pieces from read to next
	runs  runList // what lies beyond next

	base     uint64 // number of position 0; everything below counts positions
	read     uint64 // first byte not yet read
	next     uint64 // first byte not yet contiguous
	buffered int    // bytes held
	pinned   int    // bytes of memory that pieces keep alive

	spare *chunk   // one chunk ready for reuse
	lent  int      // chunks in use
	views [][]byte // scratch of Pop
}

// NewRecvQ returns an empty queue that expects number next first.
func NewRecvQ(next uint64) *RecvQ { return &RecvQ{base: next} }

// Next returns the first number not yet received in order.
func (q *RecvQ) Next() uint64 { return q.base + q.next }

// Readable returns how many contiguous bytes wait to be read.
func (q *RecvQ) Readable() int { return int(q.next - q.read) }

// Buffered returns how many bytes are held, those beyond a hole included.
func (q *RecvQ) Buffered() int { return q.buffered }

// Memory returns the bytes of memory held, those that account for it
// included: small pieces far apart cost many times what they carry. It is 0
// when the queue is empty.
func (q *RecvQ) Memory() int {
	return q.pinned + q.nodes.live*pieceSize + q.runs.n*runSize
}

// Insert puts the bytes of views, the first of which has number off, into the
// queue, and returns how many of them were new. Kept reports whether the
// queue took over the caller's reference, owner; if not, it needs the memory
// no longer. Without an owner the memory must be left to the garbage
// collector: the queue may keep it and the caller must not write to it.
func (q *RecvQ) Insert(off uint64, views [][]byte, owner Owner) (fresh int, kept bool) {
	return q.insert(&packet{lo: off - q.base, views: views, owner: owner})
}

// InsertCopy is Insert for memory that the caller needs again: whatever its
// size, the bytes are copied. It serves for packets of which several ranges
// go to different places, as there is but one reference for all.
func (q *RecvQ) InsertCopy(off uint64, views [][]byte) (fresh int) {
	fresh, _ = q.insert(&packet{lo: off - q.base, views: views, fleeting: true})
	return fresh
}

func (q *RecvQ) insert(p *packet) (fresh int, kept bool) {
	for _, v := range p.views {
		p.size += len(v)
	}
	cur, hi := p.lo, p.lo+uint64(p.size)
	for {
		if int64(cur-q.next) < 0 {
			cur = q.next // all before was received
		}
		if int64(hi-cur) <= 0 {
			break
		}
		at := q.runs.search(cur)
		end := hi
		if r := q.runs.get(at); r != nil {
			if r.hi > cur && r.lo <= cur {
				cur = r.hi
				continue
			}
			if r.hi == cur { // touches from the left; the next one bounds the gap
				r = q.runs.get(q.runs.after(at))
			}
			if r != nil {
				end = min(hi, r.lo)
			}
		}
		kept = q.fill(at, cur, end, p) || kept
		fresh += int(end - cur)
		cur = end
	}
	q.buffered += fresh
	return fresh, kept
}

// packet is what one call of Insert brought.
type packet struct {
	lo       uint64 // position of the first byte
	size     int    // bytes in all views
	views    [][]byte
	owner    Owner
	fleeting bool // the memory may not be kept
}

// fill stores the gap [lo, hi) from a packet and joins it with its
// neighbours. At is the first run that ends at lo or later. It reports whether
// the packet's reference was taken.
func (q *RecvQ) fill(at cursor, lo, hi uint64, p *packet) (kept bool) {
	if lo == q.next {
		kept = q.store(&q.ready, lo, hi, p)
		q.next = hi
		if r := q.runs.get(at); r != nil && r.lo == hi {
			q.nodes.join(&q.ready, r.chain)
			q.next = r.hi
			q.runs.remove(at)
		}
		return kept
	}
	r := q.runs.get(at)
	if r == nil || r.hi != lo { // begins a run, or extends one downwards
		var c chain
		kept = q.store(&c, lo, hi, p)
		if r != nil && r.lo == hi {
			q.nodes.join(&c, r.chain)
			r.lo, r.chain = lo, c
		} else {
			q.runs.insert(at, run{lo: lo, hi: hi, chain: c})
		}
		return kept
	}
	kept = q.store(&r.chain, lo, hi, p)
	r.hi = hi
	after := q.runs.after(at)
	if s := q.runs.get(after); s != nil && s.lo == hi {
		q.nodes.join(&r.chain, s.chain)
		r.hi = s.hi
		q.runs.remove(after)
	}
	return kept
}

// Ranges appends to dst what is held beyond the first hole, in ascending
// order.
func (q *RecvQ) Ranges(dst []interval.Range) []interval.Range {
	for at := (cursor{}); ; at = q.runs.after(at) {
		r := q.runs.get(at)
		if r == nil {
			return dst
		}
		dst = append(dst, interval.Range{Lo: q.base + r.lo, Hi: q.base + r.hi})
	}
}

// RangeOf returns the range beyond the first hole that holds number x.
func (q *RecvQ) RangeOf(x uint64) (r interval.Range, ok bool) {
	pos := x - q.base
	at := q.runs.search(pos)
	f := q.runs.get(at)
	if f != nil && f.hi == pos {
		f = q.runs.get(q.runs.after(at))
	}
	if f == nil || f.lo > pos {
		return interval.Range{}, false
	}
	return interval.Range{Lo: q.base + f.lo, Hi: q.base + f.hi}, true
}

// Close gives back all references. The queue is then empty; Next stays.
func (q *RecvQ) Close() {
	q.drop(q.ready)
	for at := (cursor{}); ; at = q.runs.after(at) {
		r := q.runs.get(at)
		if r == nil {
			break
		}
		q.drop(r.chain)
	}
	*q = RecvQ{base: q.base, read: q.next, next: q.next}
}

// Trim gives up memory that an empty queue keeps for later.
func (q *RecvQ) Trim() {
	if q.buffered == 0 && q.lent == 0 {
		q.nodes, q.runs, q.spare, q.views = arena{}, runList{}, nil, nil
	}
}

// drop gives back the references of a chain that is not used any more.
func (q *RecvQ) drop(c chain) {
	for i := c.head; i != 0; i = q.nodes.at(i).next {
		if o := q.nodes.at(i).owner; o != nil {
			o.DecRef()
		}
	}
}
