package sim

import (
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

const (
	// proxyRetry is how long a proxy waits for the outside to acknowledge
	// before it sends again.
	proxyRetry = 250 * time.Millisecond
	// proxyBurst is how many segments it then sends.
	proxyBurst = 32
	// proxyMemory bounds the segments that a proxy holds of a flow.
	proxyMemory = 64
	// proxyDelay is how far a proxy is from the inside, there and back.
	proxyDelay = time.Millisecond
)

// PreAck returns a proxy that acknowledges outgoing data itself as soon as it
// comes and sees to its arrival from then on, as boxes that hide a long path
// do. It knows nothing of MPTCP: its acknowledgments have no DATA_ACK. back is
// the direction towards the inside, on which they go. It begins when begun
// matches, and watches before.
func PreAck(s *Sim, back *Direction, begun Match) Middlebox {
	p := &preAck{sim: s, back: back, begun: begun, flows: make(map[flowKey]*proxied)}
	return Middlebox{Out: p.out, In: p.in}
}

type preAck struct {
	sim   *Sim
	back  *Direction
	begun Match
	flows map[flowKey]*proxied // by inside, outside
}

// proxied is one flow from inside to outside.
type proxied struct {
	begun   bool
	next    seq.SSN // first byte not acknowledged to the inside
	inside  synOptions
	outside synOptions
	edge    edge         // ACK + window of the outside
	sent    edge         // what the outside has sent
	tsval   uint32       // latest of the outside
	last    wire.Segment // latest of the inside; its header only
	unacked []*wire.Segment
	armed   bool
}

func (p *preAck) flow(k flowKey) *proxied {
	f := p.flows[k]
	if f == nil {
		f = &proxied{}
		p.flows[k] = f
	}
	return f
}

func (p *preAck) out(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	k := flowKey{seg.Src, seg.Dst}
	if IsSYN(seg) {
		f := p.flow(k)
		if !seg.Flags.Has(wire.ACK) {
			*f = proxied{}
		}
		f.inside, f.begun, f.next = synOf(seg), true, seg.Seq.Add(1)
	}
	f := p.flow(k)
	if seg.Flags.Has(wire.RST) {
		delete(p.flows, k)
	}
	f.last.Header, f.last.TSVal, f.last.TSEcr = seg.Header, seg.TSVal, seg.TSEcr
	n := seg.PayloadLen()
	if n == 0 || seg.Flags&(wire.SYN|wire.RST) != 0 {
		forward(seg)
		return
	}
	if !f.begun {
		f.begun, f.next = true, seg.Seq
	}
	fresh := seg.Seq == f.next && len(f.unacked) < proxyMemory && f.edge.known && f.edge.beyond(uint32(seg.Seq.Add(n))) <= 0
	if fresh {
		f.next = seg.Seq.Add(n)
		f.unacked = append(f.unacked, own(seg))
	}
	if !fresh || !p.begun(seg) {
		forward(seg)
		return
	}
	p.arm(f, forward)
	ack := p.ackFor(f, seg)
	forward(seg)
	p.sim.After(proxyDelay, func() {
		if f.sent.beyond(uint32(ack.Seq)) < 0 {
			ack.Seq = seq.SSN(f.sent.at) // behind what is on its way to the inside
		}
		p.back.send(ack)
	})
}

// ackFor returns the acknowledgment of all that came.
func (p *preAck) ackFor(f *proxied, seg *wire.Segment) *wire.Segment {
	ack := &wire.Segment{Src: seg.Dst, Dst: seg.Src}
	ack.Seq, ack.Ack, ack.Flags = seg.Ack, f.next, wire.ACK
	left := uint32(max(0, -f.edge.beyond(uint32(f.next))))
	if f.inside.scales && f.outside.scales {
		left >>= f.outside.shift
	}
	ack.Wnd = uint16(min(left, 1<<16-1))
	if seg.Has&wire.OptTimestamps != 0 {
		ack.Has, ack.TSVal, ack.TSEcr = wire.OptTimestamps, f.tsval, seg.TSVal
	}
	return ack
}

func (p *preAck) in(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	k := flowKey{seg.Dst, seg.Src}
	f := p.flow(k)
	if IsSYN(seg) {
		f.outside = synOf(seg)
	}
	if seg.Flags.Has(wire.RST) {
		delete(p.flows, k)
	} else if seg.Flags.Has(wire.ACK) {
		f.edge.extend(uint32(seg.Ack.Add(window(seg, f.outside, f.inside))))
		f.unacked = slices.DeleteFunc(f.unacked, func(u *wire.Segment) bool {
			return u.Seq.Add(u.PayloadLen()).LessEq(seg.Ack)
		})
	}
	if seg.Has&wire.OptTimestamps != 0 {
		f.tsval = seg.TSVal
	}
	f.sent.extend(uint32(seg.Seq.Add(seg.Len())))
	forward(seg)
}

// arm sees to sending again what the outside does not acknowledge.
func (p *preAck) arm(f *proxied, forward func(*wire.Segment)) {
	if f.armed {
		return
	}
	f.armed = true
	first := f.unacked[0].Seq
	p.sim.After(proxyRetry, func() {
		f.armed = false
		if len(f.unacked) == 0 || p.flows[flowKey{f.unacked[0].Src, f.unacked[0].Dst}] != f {
			return
		}
		if f.unacked[0].Seq == first {
			for _, u := range f.unacked[:min(proxyBurst, len(f.unacked))] {
				forward(f.again(u))
			}
		}
		p.arm(f, forward)
	})
}

// again returns a segment to be sent again, with what in its header must not
// be older than in those sent since (RFC 7323, Section 5).
func (f *proxied) again(u *wire.Segment) *wire.Segment {
	c := own(u)
	c.Ack, c.Wnd, c.TSVal, c.TSEcr = f.last.Ack, f.last.Wnd, f.last.TSVal, f.last.TSEcr
	return c
}
