package host

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// maxReplies bounds the answers to segments without a connection that wait
// for PollSegment. A flood that outruns the network is not worth answering.
const maxReplies = 256

// reply is an answer to a segment that no connection takes.
type reply struct {
	src, dst netip.AddrPort
	header   wire.Header
	options  wire.Options
}

// replyQueue holds replies in order.
type replyQueue struct {
	items []reply
	head  int
}

// push appends r. It reports false if the queue is full.
func (q *replyQueue) push(r reply) bool {
	if len(q.items)-q.head >= maxReplies {
		return false
	}
	if q.head > maxReplies {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.items = append(q.items, r)
	return true
}

// pop takes the oldest reply.
func (q *replyQueue) pop() (r reply, ok bool) {
	if q.head == len(q.items) {
		return reply{}, false
	}
	r = q.items[q.head]
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return r, true
}

// fill writes r into an empty segment.
func (r *reply) fill(seg *wire.Segment) {
	seg.Src, seg.Dst = r.src, r.dst
	seg.Header = r.header
	seg.Options = r.options
}

// stray answers a segment that belongs to no connection as if from a CLOSED
// one, and says what became of it.
func (h *Host) stray(seg *wire.Segment, drop reason.Drop) Verdict {
	r, ok := resetFor(seg)
	return h.answer(r, ok, drop)
}

// refuseJoin answers a SYN with MP_JOIN that no connection accepts.
//
// RFC 8684, Section 3.2: "If the token is unknown or the host wants to refuse
// subflow establishment [...], the receiver will send back a reset (RST)
// signal, analogous to an unknown port in TCP, containing an MP_TCPRST option".
func (h *Host) refuseJoin(seg *wire.Segment, code reason.Reset, drop reason.Drop) Verdict {
	r, ok := resetFor(seg)
	r.options.Has = wire.OptMPTCPRst
	r.options.TCPRst = wire.TCPRst{Reason: code}
	return h.answer(r, ok, drop)
}

// answer queues r unless there is none to send, and counts what happened.
func (h *Host) answer(r reply, ok bool, drop reason.Drop) Verdict {
	h.counters.Drops[drop]++
	if !ok {
		return Verdict{Kind: VerdictDrop, Drop: drop}
	}
	if !h.replies.push(r) {
		h.counters.RepliesLost++
		return Verdict{Kind: VerdictDrop, Drop: drop}
	}
	if r.header.Flags.Has(wire.RST) {
		h.counters.ResetsSent++
		if r.options.Has&wire.OptMPTCPRst != 0 {
			h.count(MIBMPRstTx)
		}
	}
	return Verdict{Kind: VerdictReply, Drop: drop}
}

// resetFor returns the RST that answers seg in state CLOSED.
//
// RFC 9293, Section 3.10.7.1: "An incoming segment containing a RST is
// discarded. An incoming segment not containing a RST causes a RST to be sent
// in response."
func resetFor(seg *wire.Segment) (r reply, ok bool) {
	r.src, r.dst = seg.Dst, seg.Src
	switch {
	case seg.Flags.Has(wire.RST):
		return r, false
	case seg.Flags.Has(wire.ACK): // "<SEQ=SEG.ACK><CTL=RST>"
		r.header = wire.Header{Seq: seg.Ack, Flags: wire.RST}
	default: // "<SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>"
		r.header = wire.Header{Ack: seg.Seq.Add(seg.Len()), Flags: wire.RST | wire.ACK}
	}
	return r, true
}

// peerAddr reports whether a segment from src to dst may come from a peer and
// be answered.
//
// RFC 9293, Section 3.9.2.3: "A TCP implementation MUST silently discard an
// incoming SYN segment that is addressed to a broadcast or multicast address
// (MUST-57)"; nor is there anyone to answer at such a source.
func peerAddr(src, dst netip.AddrPort) bool {
	for _, a := range [2]netip.AddrPort{src, dst} {
		if ip := a.Addr(); !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() || ip == broadcast || a.Port() == 0 {
			return false
		}
	}
	return src.Addr().Is4() == dst.Addr().Is4()
}

// broadcast is the limited broadcast address; those of subnets are known to
// the network below only.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
