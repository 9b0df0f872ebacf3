package stream

// Read copies contiguous bytes to p, gives back the memory that they were in
// and returns their number.
func (q *RecvQ) Read(p []byte) int {
	n := 0
	for n < len(p) && q.ready.head != 0 {
		k := copy(p[n:], q.nodes.at(q.ready.head).data)
		q.consume(k)
		n += k
	}
	return n
}

// Peek returns the next contiguous bytes as far as they lie in one piece of
// memory, nil if there are none. They stay valid until they are read or
// discarded.
func (q *RecvQ) Peek() []byte {
	if q.ready.head == 0 {
		return nil
	}
	return q.nodes.at(q.ready.head).data
}

// Discard drops the next n contiguous bytes, or as many as there are, and
// returns how many it dropped.
func (q *RecvQ) Discard(n int) int {
	n = min(n, q.Readable())
	for left := n; left > 0; {
		k := min(left, len(q.nodes.at(q.ready.head).data))
		q.consume(k)
		left -= k
	}
	return n
}

// Truncate drops what is held beyond the first hole and returns how many bytes
// that was.
func (q *RecvQ) Truncate() int {
	before := q.buffered
	for r := q.runs.get(cursor{}); r != nil; r = q.runs.get(cursor{}) {
		for i := r.head; i != 0; {
			p := q.nodes.at(i)
			owner, next := p.owner, p.next
			q.buffered -= len(p.data)
			q.pinned -= p.pinned
			q.nodes.free(i)
			if owner != nil {
				owner.DecRef()
			}
			i = next
		}
		q.runs.remove(cursor{})
	}
	return before - q.buffered
}

// consume drops the first n bytes of the first piece.
func (q *RecvQ) consume(n int) {
	q.read += uint64(n)
	q.buffered -= n
	p := q.nodes.at(q.ready.head)
	if n < len(p.data) {
		p.data = p.data[n:]
		return
	}
	if owner := q.takeFirst(); owner != nil {
		owner.DecRef()
	}
}

// takeFirst removes the first piece and returns its owner.
func (q *RecvQ) takeFirst() Owner {
	i := q.ready.head
	p := q.nodes.at(i)
	owner := p.owner
	q.pinned -= p.pinned
	q.ready.head = p.next
	if q.ready.head == 0 {
		q.ready.tail = 0
	}
	q.nodes.free(i)
	return owner
}

// Pop removes what is left of the next packet, or of small ones copied
// together, if it is contiguous with what was read before. The reference,
// which may be nil, moves to the caller; it must be given back under the same
// lock that guards the queue, which may reuse the memory. The slice of views
// is valid until the next call.
func (q *RecvQ) Pop() (off uint64, views [][]byte, owner Owner, ok bool) {
	if q.ready.head == 0 {
		return 0, nil, nil, false
	}
	off = q.base + q.read
	clear(q.views)
	q.views = q.views[:0]
	for last := false; !last; {
		p := q.nodes.at(q.ready.head)
		last = p.last
		q.views = append(q.views, p.data)
		q.read += uint64(len(p.data))
		q.buffered -= len(p.data)
		owner = q.takeFirst()
	}
	return off, q.views, owner, true
}
