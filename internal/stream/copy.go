package stream

const (
	// copyBelow is the payload size in bytes below which a packet is copied:
	// at that size the copy costs less than what keeping a packet buffer,
	// with its headers and its own allocation, would pin.
	copyBelow = 512
	// chunkSize is the size in bytes of the buffers that are recycled: enough
	// for nearly any payload that is copied, small enough for an idle
	// connection to keep one. With what stands beside it a chunk has 512 bytes.
	chunkSize = 496
	// shareMost is the size in bytes of the largest buffer that copies share.
	shareMost = 2 << 10
)

// chunk is a buffer for copies, recycled by its queue.
type chunk struct {
	mem  [chunkSize]byte
	home *RecvQ
	free bool
}

// DecRef makes the chunk its queue's spare one, or leaves it to the garbage
// collector if there is one.
func (c *chunk) DecRef() {
	if c.free {
		panic("stream: chunk freed twice")
	}
	c.free = true
	c.home.lent--
	if c.home.spare == nil {
		c.home.spare = c
	}
}

// store appends the bytes [lo, hi) of a packet to a chain and reports whether
// the packet's reference was taken.
//
// At most one gap of a packet can be half of it or more, as what divides two
// gaps is part of the packet too. Only that one may keep the packet, so one
// reference is all it takes, and never more than twice the bytes are pinned.
func (q *RecvQ) store(c *chain, lo, hi uint64, p *packet) (kept bool) {
	skip, n := int(lo-p.lo), int(hi-lo)
	keep := !p.fleeting && n >= copyBelow && 2*n >= p.size
	for _, v := range p.views {
		if skip >= len(v) {
			skip -= len(v)
			continue
		}
		v = v[skip:min(len(v), skip+n)]
		skip = 0
		if keep {
			q.nodes.push(c, piece{data: v})
		} else {
			q.copy(c, v, n)
		}
		n -= len(v)
		if n == 0 {
			break
		}
	}
	if !keep {
		return false
	}
	t := q.nodes.at(c.tail)
	t.owner, t.pinned, t.last = p.owner, p.size, true
	q.pinned += p.size
	return p.owner != nil
}

// copy appends a copy of v, the first of n bytes that will follow, to a
// chain, in the buffer of its last piece as far as that has room.
func (q *RecvQ) copy(c *chain, v []byte, n int) {
	for len(v) > 0 {
		room := 0
		if c.tail != 0 {
			if t := q.nodes.at(c.tail); t.grows {
				room = cap(t.data) - len(t.data)
			}
		}
		if room == 0 {
			q.extend(c, n)
			continue
		}
		t := q.nodes.at(c.tail)
		k := min(len(v), room)
		t.data = append(t.data, v[:k]...)
		v = v[k:]
		n -= k
	}
}

// extend appends a piece with an empty buffer to a chain, of which n bytes are
// about to be used.
//
// What a buffer offers beyond those is never more than the buffer before it
// holds. Only the first bytes in an empty queue get a whole chunk at once:
// that one chunk is what a connection with small messages needs.
func (q *RecvQ) extend(c *chain, n int) {
	size := n
	if c.tail == 0 {
		if c == &q.ready {
			size = max(n, chunkSize)
		}
	} else if t := q.nodes.at(c.tail); t.grows {
		size = max(n, min(shareMost, t.pinned+n))
	}
	if size < chunkSize && (q.spare != nil || 2*size >= chunkSize || q.lent == 0 && c == &q.ready) {
		// One that is there costs nothing, one that is half full little, and one
		// there always may be: the last bytes of each message come here.
		size = chunkSize
	}
	p := piece{last: true, grows: true, pinned: size}
	if size == chunkSize {
		ch := q.chunk()
		p.data, p.owner = ch.mem[:0], ch
	} else {
		p.data = make([]byte, 0, size)
	}
	q.pinned += size
	q.nodes.push(c, p)
}

// chunk returns an empty chunk.
func (q *RecvQ) chunk() *chunk {
	c := q.spare
	q.lent++
	if c == nil {
		return &chunk{home: q}
	}
	q.spare, c.free = nil, false
	return c
}
