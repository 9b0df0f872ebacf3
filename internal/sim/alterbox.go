package sim

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Alter changes outgoing payload without changing its length, as an
// application level gateway does: every byte of a flow whose distance from
// the flow's SYN is a multiple of every, the same again when it is repeated.
func Alter(every int) Middlebox {
	begin := make(map[flowKey]seq.SSN)
	return Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		k := flowKey{seg.Src, seg.Dst}
		from, known := begin[k]
		if IsSYN(seg) || !known && seg.PayloadLen() > 0 {
			from = seg.Seq
			begin[k] = from
		}
		at := int(uint32(seg.Seq - from))
		for i, v := range seg.Payload {
			next := (every - at%every) % every
			if next < len(v) {
				seg.Payload[i] = altered(v, next, every)
			}
			at += len(v)
		}
		forward(seg)
	}}
}

// altered returns a copy of b with each every-th byte changed from first on:
// counted up, since two flips of one bit may cancel out in a checksum.
func altered(b []byte, first, every int) []byte {
	b = slices.Clone(b)
	for i := first; i < len(b); i += every {
		b[i]++
	}
	return b
}
