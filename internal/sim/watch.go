package sim

import (
	"fmt"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// watch looks at everything a connection sends and receives, and checks what
// must hold whatever the network does: no byte is sent beyond a window, at
// either level, no window is taken back, no mapping changes.
type watch struct {
	conn  *Conn
	flows map[flowKey]*watchedFlow

	// The connection's data sequence numbers by their low halves, which are
	// exact as long as less than 2 GiB lie between those compared.
	dataEdge edge // DATA_ACK + window that the peer has granted
	ourEdge  edge // DATA_ACK + window that we have granted
}

type flowKey struct{ local, remote netip.AddrPort }

// watchedFlow is one subflow under watch.
type watchedFlow struct {
	syn   uint32     // our initial number
	early uint32     // bytes on our SYN that were acknowledged, which no mapping counts
	ours  synOptions // of our SYN
	peer  synOptions // of the peer's
	heard synOptions // of a SYN that the peer sent, perhaps for another subflow to come

	edge     edge              // ACK + window that the peer has granted
	mappings map[uint32]mapped // by relative SSN
}

// synOptions are the options of a SYN that matter later.
type synOptions struct {
	mss    uint16
	shift  uint8
	scales bool
}

func synOf(seg *wire.Segment) synOptions {
	return synOptions{mss: seg.MSS, shift: min(seg.WScale, 14), scales: seg.Has&wire.OptWScale != 0}
}

// mapped is the mapping that was declared at some subflow sequence number.
type mapped struct {
	dsn uint32
	n   uint16
}

// edge is the right edge of a window as far as it is known.
type edge struct {
	at    uint32
	known bool
}

// extend moves the edge to the right.
func (e *edge) extend(to uint32) {
	if !e.known || int32(to-e.at) > 0 {
		e.at, e.known = to, true
	}
}

// beyond returns how far n lies right of the edge; less than 1 if it does not.
func (e *edge) beyond(n uint32) int {
	if !e.known {
		return 0
	}
	return int(int32(n - e.at))
}

func newWatch(c *Conn) *watch {
	return &watch{conn: c, flows: make(map[flowKey]*watchedFlow)}
}

func (w *watch) flow(local, remote netip.AddrPort) *watchedFlow {
	k := flowKey{local, remote}
	f := w.flows[k]
	if f == nil {
		f = &watchedFlow{mappings: make(map[uint32]mapped)}
		w.flows[k] = f
	}
	return f
}

// begin notes a SYN that the connection sends. One with a new number begins
// another subflow, even where there was one before.
func (w *watch) begin(f *watchedFlow, seg *wire.Segment) *watchedFlow {
	if f.syn != uint32(seg.Seq) {
		f = &watchedFlow{mappings: make(map[uint32]mapped), syn: uint32(seg.Seq), heard: f.heard}
		w.flows[flowKey{seg.Src, seg.Dst}] = f
	}
	f.ours = synOf(seg)
	if seg.Flags.Has(wire.ACK) {
		f.peer = f.heard
	}
	return f
}

// window returns SEG.WND. Windows of SYNs are never scaled; others only if
// both sides sent the option.
func window(seg *wire.Segment, sender, receiver synOptions) int {
	if seg.Flags.Has(wire.SYN) || !sender.scales || !receiver.scales {
		return int(seg.Wnd)
	}
	return int(seg.Wnd) << sender.shift
}

// received takes note of what a segment for the connection grants it.
func (w *watch) received(seg *wire.Segment) {
	if w == nil {
		return
	}
	f := w.flow(seg.Dst, seg.Src)
	switch seg.Flags & (wire.SYN | wire.ACK) {
	case wire.SYN:
		f.heard = synOf(seg)
	case wire.SYN | wire.ACK:
		f.peer = synOf(seg)
		f.early = uint32(seg.Ack) - f.syn - 1
	}
	if !seg.Flags.Has(wire.ACK) || seg.Flags.Has(wire.RST) {
		return
	}
	wnd := window(seg, f.peer, f.ours)
	f.edge.extend(uint32(seg.Ack.Add(wnd)))
	if seg.Has&wire.OptDSS != 0 && seg.DSS.Flags&wire.DSSAck != 0 {
		w.dataEdge.extend(uint32(seg.DSS.Ack) + uint32(wnd))
	}
}

// sent checks a segment that the connection sends.
func (w *watch) sent(seg *wire.Segment) {
	if w == nil {
		return
	}
	f := w.flow(seg.Src, seg.Dst)
	if seg.Flags.Has(wire.SYN) {
		f = w.begin(f, seg)
	}
	if seg.Flags.Has(wire.RST) {
		return
	}
	if n := seg.PayloadLen(); n > 0 {
		if over := f.edge.beyond(uint32(seg.Seq.Add(n))); over > 0 {
			w.violate(seg, "%d bytes beyond the subflow's window", over)
		}
	}
	if seg.Has&wire.OptDSS == 0 {
		return
	}
	if seg.DSS.Flags&wire.DSSAck != 0 && seg.Flags.Has(wire.ACK) {
		w.checkGrant(f, seg)
	}
	if seg.DSS.Flags&wire.DSSMap != 0 && seg.DSS.Len > 0 {
		w.checkMapping(f, seg)
	}
}

// checkGrant checks that the data-level window never shrinks.
//
// RFC 8684, Section 3.3.4: its right edge is DATA_ACK + window. Scaling rounds
// it down, by less than its granularity, and a FIN takes a number of the
// subflow's window. A subflow that moves its own edge in steps of a segment
// only (RFC 9293, Section 3.8.6.2.2) may lag behind the connection's by less
// than that.
func (w *watch) checkGrant(f *watchedFlow, seg *wire.Segment) {
	to := uint32(seg.DSS.Ack) + uint32(window(seg, f.ours, f.peer))
	slack := 1 + int(f.peer.mss)
	if f.ours.scales {
		slack += 1 << f.ours.shift
	}
	if w.ourEdge.known && -w.ourEdge.beyond(to) > slack {
		w.violate(seg, "%d bytes of the window taken back", -w.ourEdge.beyond(to))
	}
	w.ourEdge.extend(to)
}

// checkMapping checks a declared mapping.
func (w *watch) checkMapping(f *watchedFlow, seg *wire.Segment) {
	m := mapped{uint32(seg.DSS.DSN), seg.DSS.Len}
	n := uint32(m.n)
	if seg.DSS.Flags&wire.DSSFin != 0 {
		n--
	}
	if over := w.dataEdge.beyond(m.dsn + n); n > 0 && over > 0 {
		w.violate(seg, "%d bytes beyond the connection's window", over)
	}
	if seg.PayloadLen() == 0 {
		return
	}
	// RFC 8684, Section 3.3.1: "Once a mapping is declared, it MUST NOT be
	// changed", only repeated.
	if old, ok := f.mappings[seg.DSS.SSN]; ok && old != m {
		w.violate(seg, "a declared mapping changed")
	}
	f.mappings[seg.DSS.SSN] = m
	if uint32(seg.Seq)-f.syn-f.early-seg.DSS.SSN >= uint32(m.n) {
		w.violate(seg, "a mapping of other bytes than the segment's")
	}
}

func (w *watch) violate(seg *wire.Segment, format string, args ...any) {
	w.conn.node.sim.violate("%s: %s: %v", w.conn.node.Name, fmt.Sprintf(format, args...), seg)
}
