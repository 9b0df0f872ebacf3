package wire

// Cutter cuts a segment into packets of at most SegSize payload bytes, in
// order, as a network card does with a super-segment. It is a small value that
// refers to the segment, which must not change meanwhile.
type Cutter struct {
	whole *Segment
	off   int // payload bytes cut so far
	view  int // index of the payload view that the next packet starts in
	pos   int // offset in that view
	total int // payload bytes in all
	done  bool
}

// Split prepares to cut seg. A segment with SegSize 0, or with no more payload
// than that, comes out as the one packet that it is.
func Split(seg *Segment) Cutter {
	return Cutter{whole: seg, total: seg.PayloadLen()}
}

// Next puts the next packet into dst, whose slices it reuses and which is not
// the segment being cut, and reports whether there was one.
//
// Options and ECN are the same on each packet, which is how a DSS mapping that
// covers the super-segment is meant to travel (RFC 8684, Section 3.3.1). CWR
// goes with the first packet only (RFC 3168, Section 6.1.2), FIN and PSH with
// the last. Payload views are re-sliced and keep their capacity up to the end
// of their block. Owner stays with the whole.
func (c *Cutter) Next(dst *Segment) bool {
	if c.done {
		return false
	}
	w := c.whole
	n := c.total - c.off
	if w.SegSize > 0 && n > w.SegSize {
		n = w.SegSize
	}
	dst.Reset()
	dst.Src, dst.Dst = w.Src, w.Dst
	dst.Header = w.Header
	dst.Options = w.Options
	dst.ECN = w.ECN
	dst.Seq = w.Seq.Add(c.off)
	if c.off > 0 {
		dst.Flags &^= CWR
	}
	// The urgent pointer counts from the packet's own sequence number.
	if w.Flags&URG != 0 && c.off > 0 {
		if c.off >= int(w.Urgent) {
			dst.Flags &^= URG
			dst.Urgent = 0
		} else {
			dst.Urgent -= uint16(c.off)
		}
	}
	c.off += n
	if c.off == c.total {
		c.done = true
	} else {
		dst.Flags &^= FIN | PSH
	}
	c.take(dst, n)
	return true
}

// take moves views of the next n bytes into dst.
func (c *Cutter) take(dst *Segment, n int) {
	w := c.whole
	for n > 0 {
		v := w.Payload[c.view][c.pos:]
		k := min(n, len(v))
		if k > 0 {
			dst.Payload = append(dst.Payload, v[:k])
			if c.view < len(w.Blocks) {
				dst.Blocks = append(dst.Blocks, w.Blocks[c.view])
			}
		}
		n -= k
		c.pos += k
		if c.pos == len(w.Payload[c.view]) {
			c.view++
			c.pos = 0
		}
	}
}
