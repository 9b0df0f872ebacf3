package sim

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Offset rewrites sequence numbers as a firewall does that does not trust a
// host's initial ones: out is added to those of the inside's bytes, in to
// those of the outside's, and taken off again in acknowledgments and SACK.
func Offset(out, in uint32) Middlebox {
	return Middlebox{Out: offset(out, in), In: offset(in, out)}
}

// offset adds own to the numbers of a segment's bytes and takes theirs off the
// numbers it acknowledges.
func offset(own, theirs uint32) Box {
	return func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		seg.Seq += seq.SSN(own)
		if seg.Flags.Has(wire.ACK) {
			seg.Ack -= seq.SSN(theirs)
		}
		if seg.Has&wire.OptSACK != 0 {
			for i := range seg.SACK[:min(int(seg.NumSACK), len(seg.SACK))] {
				seg.SACK[i].Left -= seq.SSN(theirs)
				seg.SACK[i].Right -= seq.SSN(theirs)
			}
		}
		forward(seg)
	}
}
