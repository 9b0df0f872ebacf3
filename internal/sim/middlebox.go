package sim

import (
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// End is an end of a link, or of a Pair.
type End uint8

// The ends.
const (
	EndA End = iota
	EndB
)

// Other returns the opposite end.
func (e End) Other() End { return 1 - e }

// Middlebox is what stands in the way on a link: a Box for what comes from the
// end at its inside, and one for what goes there. One that is nil lets all
// pass.
type Middlebox struct{ Out, In Box }

// Insert puts a middlebox on the link with the given end at its inside, in
// place of any other. The zero Middlebox takes it away.
func (l *Link) Insert(inside End, m Middlebox) {
	if inside == EndB {
		m.Out, m.In = m.In, m.Out
	}
	l.AB.SetBox(m.Out)
	l.BA.SetBox(m.In)
}

// From returns the direction that begins at an end.
func (l *Link) From(e End) *Direction {
	if e == EndA {
		return l.AB
	}
	return l.BA
}

// Match chooses segments.
type Match func(*wire.Segment) bool

// Any matches every segment.
func Any(*wire.Segment) bool { return true }

// IsSYN matches segments with SYN.
func IsSYN(seg *wire.Segment) bool { return seg.Flags.Has(wire.SYN) }

// IsThirdACK returns a Match for the first segment of each flow without SYN.
func IsThirdACK() Match {
	seen := make(map[flowKey]bool)
	return func(seg *wire.Segment) bool {
		k := flowKey{seg.Src, seg.Dst}
		if IsSYN(seg) {
			delete(seen, k)
			return false
		}
		first := !seen[k]
		seen[k] = true
		return first
	}
}

// From returns a middlebox that does nothing before begun says so, which is
// asked for every segment, in either direction.
func From(begun Match, m Middlebox) Middlebox {
	gate := func(b Box) Box {
		return func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
			if !begun(seg) || b == nil {
				forward(seg)
				return
			}
			b(now, seg, forward)
		}
	}
	return Middlebox{Out: gate(m.Out), In: gate(m.In)}
}

// Chain returns a middlebox made of others, of which the first is next to the
// inside.
func Chain(boxes ...Middlebox) Middlebox {
	var out, in []Box
	for _, m := range boxes {
		if m.Out != nil {
			out = append(out, m.Out)
		}
		if m.In != nil {
			in = append(in, m.In)
		}
	}
	slices.Reverse(in)
	return Middlebox{Out: chain(out), In: chain(in)}
}

func chain(boxes []Box) Box {
	if len(boxes) == 0 {
		return nil
	}
	rest := chain(boxes[1:])
	return func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		next := forward
		if rest != nil {
			next = func(seg *wire.Segment) { rest(now, seg, forward) }
		}
		boxes[0](now, seg, next)
	}
}

// Strip takes options away from outgoing segments that match.
func Strip(opts wire.OptionSet, match Match) Middlebox {
	return Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if match(seg) {
			seg.Has &^= opts
		}
		forward(seg)
	}}
}

// Drop drops outgoing segments that match.
func Drop(match Match) Middlebox {
	return Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if !match(seg) {
			forward(seg)
		}
	}}
}

// HasUnknown matches SYNs with an option that a middlebox of old does not know:
// any of MPTCP.
func HasUnknown(seg *wire.Segment) bool { return IsSYN(seg) && seg.Has&wire.OptMPTCP != 0 }

// own returns a copy of a segment that a box may keep. Payload bytes are
// shared.
func own(seg *wire.Segment) *wire.Segment {
	c := *seg
	c.Payload, c.Blocks, c.Owner = slices.Clone(seg.Payload), nil, nil
	return &c
}

// packetSize returns the bytes of the IP packet that a segment makes.
func packetSize(seg *wire.Segment) int { return headersSize(seg) + seg.PayloadLen() }

// headersSize returns the bytes of its IP and TCP headers.
func headersSize(seg *wire.Segment) int {
	if seg.Src.Addr().Is4() {
		return headerIPv4 + wire.HeaderSize + seg.Size()
	}
	return headerIPv6 + wire.HeaderSize + seg.Size()
}

// publish makes a an address at which the interface is reached, by way of a
// translator.
func (i *Iface) publish(a netip.Addr) {
	if !slices.Contains(i.public, a) {
		i.public = append(i.public, a)
	}
}
