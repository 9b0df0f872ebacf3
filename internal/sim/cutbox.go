package sim

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Split cuts outgoing payload into packets of at most size bytes, as offload
// in a network card does: options are the same on each.
func Split(size int) Middlebox {
	var cut wire.Segment
	return Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		whole := own(seg)
		whole.SegSize = size
		for c := wire.Split(whole); c.Next(&cut); {
			forward(&cut)
		}
	}}
}

// joinWait is how long a box that joins segments waits for the next one.
const joinWait = time.Millisecond

// Coalesce joins outgoing segments that follow each other up to limit bytes,
// as offload in a receiving network card does: only if they agree in their
// options, timestamps aside, so that a mapping on one covers all.
func Coalesce(s *Sim, limit int) Middlebox {
	j := joiner{sim: s, limit: limit, agree: sameOptions}
	return Middlebox{Out: j.box}
}

// CoalesceBlindly joins outgoing segments whatever their options, of which
// those of the first stay: mappings get lost.
func CoalesceBlindly(s *Sim, limit int) Middlebox {
	j := joiner{sim: s, limit: limit, agree: func(_, _ *wire.Segment) bool { return true }}
	return Middlebox{Out: j.box}
}

// Resegment cuts the outgoing stream anew into packets of size bytes, whatever
// it came in. A packet has the options of the segment in which it begins.
func Resegment(s *Sim, size int) Middlebox {
	j := joiner{sim: s, limit: 2 * size, cut: size, agree: func(_, _ *wire.Segment) bool { return true }}
	return Middlebox{Out: j.box}
}

func sameOptions(a, b *wire.Segment) bool {
	x, y := a.Options, b.Options
	x.TSVal, x.TSEcr = y.TSVal, y.TSEcr
	return x.Equal(&y)
}

// joiner joins segments that follow each other.
type joiner struct {
	sim   *Sim
	limit int // bytes of payload held
	cut   int // bytes of a packet sent on; 0 = all that is held
	agree func(a, b *wire.Segment) bool

	held  *wire.Segment
	turn  uint64 // of held, so that a timer finds only its own
	tails []tail // cut: later segments whose payload begins within held
}

// tail is where in the held payload another segment's begins.
type tail struct {
	at   int
	from *wire.Segment
}

// box implements Box.
func (j *joiner) box(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	const plain = wire.ACK | wire.PSH
	if seg.PayloadLen() == 0 || seg.Flags&^plain != 0 {
		// Others do not wait, and stay in order.
		j.flush(forward)
		forward(seg)
		return
	}
	if j.joins(seg) {
		if j.cut > 0 {
			j.tails = append(j.tails, tail{j.held.PayloadLen(), own(seg)})
		}
		j.join(seg)
	} else {
		j.flush(forward)
		j.hold(seg, forward)
	}
	for j.cut > 0 && j.held != nil && j.held.PayloadLen() >= j.cut {
		j.emit(j.cut, forward)
	}
}

func (j *joiner) joins(seg *wire.Segment) bool {
	h := j.held
	if h == nil || h.Src != seg.Src || h.Dst != seg.Dst || h.ECN != seg.ECN || h.Has&wire.OptTimestamps != seg.Has&wire.OptTimestamps {
		return false
	}
	n := h.PayloadLen()
	return h.Seq.Add(n) == seg.Seq && n+seg.PayloadLen() <= j.limit && j.agree(h, seg)
}

// join takes a segment's payload, and what is newer in its header.
func (j *joiner) join(seg *wire.Segment) {
	h := j.held
	h.Payload = append(h.Payload, seg.Payload...)
	h.Flags |= seg.Flags
	h.Ack, h.Wnd, h.TSVal, h.TSEcr = seg.Ack, seg.Wnd, seg.TSVal, seg.TSEcr
}

func (j *joiner) hold(seg *wire.Segment, forward func(*wire.Segment)) {
	j.held = own(seg)
	j.turn++
	turn := j.turn
	j.sim.After(joinWait, func() {
		if j.turn == turn {
			j.flush(forward)
		}
	})
}

// flush sends on what is held.
func (j *joiner) flush(forward func(*wire.Segment)) {
	for j.held != nil {
		n := j.held.PayloadLen()
		if j.cut > 0 {
			n = min(n, j.cut)
		}
		j.emit(n, forward)
	}
}

// emit sends on the first n bytes held.
func (j *joiner) emit(n int, forward func(*wire.Segment)) {
	h := j.held
	rest := h.PayloadLen() - n
	if rest == 0 {
		j.held, j.tails = nil, j.tails[:0]
		forward(h)
		return
	}
	head := own(h)
	head.Payload, h.Payload = cutViews(h.Payload, n)
	h.Seq = h.Seq.Add(n)
	for len(j.tails) > 0 && j.tails[0].at <= n {
		h.Options = j.tails[0].from.Options
		j.tails = j.tails[1:]
	}
	for i := range j.tails {
		j.tails[i].at -= n
	}
	forward(head)
}

// cutViews divides payload after n bytes.
func cutViews(views [][]byte, n int) (head, rest [][]byte) {
	for i, v := range views {
		if n < len(v) {
			if n > 0 {
				head = append(head, v[:n])
			}
			return head, append([][]byte{v[n:]}, views[i+1:]...)
		}
		head, n = append(head, v), n-len(v)
	}
	return head, nil
}
