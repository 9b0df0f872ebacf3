package sim

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Relength changes the length of outgoing payload, as the application level
// gateway of FTP does when it rewrites an address in the text: once in every
// flow, at bytes behind its beginning, it puts by bytes in, or takes -by out. It
// makes up for that in the numbers of what follows and of the acknowledgments,
// but knows nothing of MPTCP.
func Relength(at, by int) Middlebox {
	r := relength{at: at, by: by, flows: make(map[flowKey]seq.SSN)}
	return Middlebox{Out: r.out, In: r.in}
}

type relength struct {
	at, by int
	flows  map[flowKey]seq.SSN // by inside, outside: where the change is made
}

func (r *relength) out(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	k := flowKey{seg.Src, seg.Dst}
	spot, known := r.flows[k]
	if IsSYN(seg) || !known && seg.PayloadLen() > 0 {
		spot = seg.Seq.Add(r.at)
		r.flows[k] = spot
	} else if !known {
		forward(seg)
		return
	}
	// Where the segment begins and ends, counted from the spot.
	lo := int(int32(seg.Seq - spot))
	hi := lo + seg.PayloadLen()
	out := own(seg)
	out.Seq = seg.Seq.Add(r.shift(lo))
	switch cut := -r.by; {
	case r.by > 0 && lo <= 0 && hi > 0:
		head, rest := cutViews(out.Payload, -lo)
		out.Payload = append(append(head, make([]byte, r.by)), rest...)
	case cut > 0 && lo < cut && hi > 0:
		head, rest := cutViews(out.Payload, max(-lo, 0))
		_, rest = cutViews(rest, min(hi, cut)-max(lo, 0))
		out.Payload = append(head, rest...)
	}
	forward(out)
}

// shift returns how far what begins n bytes behind the spot is moved.
func (r *relength) shift(n int) int {
	if n <= 0 {
		return 0
	}
	return max(r.by, -n)
}

func (r *relength) in(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	if spot, known := r.flows[flowKey{seg.Dst, seg.Src}]; known {
		if seg.Flags.Has(wire.ACK) {
			seg.Ack = r.restore(spot, seg.Ack)
		}
		if seg.Has&wire.OptSACK != 0 {
			for i := range seg.SACK[:min(int(seg.NumSACK), len(seg.SACK))] {
				b := &seg.SACK[i]
				b.Left, b.Right = r.restore(spot, b.Left), r.restore(spot, b.Right)
			}
		}
	}
	forward(seg)
}

// restore returns the number of the inside for one of the outside.
func (r *relength) restore(spot, n seq.SSN) seq.SSN {
	past := int(int32(n - spot))
	switch {
	case past <= 0:
		return n
	case past < r.by:
		return spot // in the midst of what was put in
	}
	return n.Add(-r.by)
}
