package mpconn

import (
	"math"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// noEdge is the right edge of a plain connection's window: its subflow keeps
// the peer's window by itself.
const noEdge = math.MaxInt64

// startPlain makes the connection plain TCP before MPTCP ever worked on it.
func (c *Conn) startPlain(why reason.Fallback) {
	c.mode, c.fallback = modePlain, why
	c.checksum = false
	c.snd.edge = noEdge
	for _, f := range c.flows {
		if f.tcp != nil {
			f.tcp.SetRoom(subflow.Room{})
		}
	}
	c.snd.reinject.Clear()
	c.emit(Event{Kind: EventFallback, Fallback: why})
}

// fallBack makes an MPTCP connection plain TCP: from here on the subflow's
// stream is the connection's.
//
// RFC 8684, Section 3.7: allowed on the first subflow only, before any other
// joined; it is final.
func (c *Conn) fallBack(now mono.Time, f *flow, why reason.Fallback) {
	delta := c.rcv.q.Next() - f.heldFrom()
	sendsInOrder := f.tcp.Pushed() == c.snd.nxt && c.stats.BytesReinjected == 0 && c.nextID == 1
	receivesInOrder := c.rcv.q.Buffered() == c.rcv.q.Readable() && (delta == 0 || why == reason.FallbackInfinite)
	if !sendsInOrder || !receivesInOrder {
		// What the subflow carries is not the stream in order: going on would
		// deliver wrong bytes.
		c.abort(now, reason.CloseLocalReset)
		return
	}
	c.startPlain(why)
	f.infiniteDelta = delta
	f.infiniteDue = true
	f.tcp.SetRoom(subflow.Room{Data: roomData}) // for the infinite mapping
	for _, p := range f.held {
		c.deliver(f, p.off+f.infiniteDelta, [][]byte{p.data}, p.owner)
	}
	f.held, f.in = nil, mappings{}
	c.timers.Stop(timerDataRexmit)
	c.flowAcked(f)
	c.snd.idle = false
}

// heldFrom returns the subflow offset of the first byte not delivered.
func (f *flow) heldFrom() uint64 {
	if len(f.held) > 0 {
		return f.held[0].off
	}
	return f.got
}

// bareACKs is how many segments in a row without any option mean that the
// peer has fallen back, where options came from it before: a box that strips
// some segments must not make one end plain and leave the other MPTCP.
const bareACKs = 3

// checkProof looks for signs that the path loses options.
func (c *Conn) checkProof(now mono.Time, f *flow, seg *wire.Segment) {
	acks := f.tcp.Acked() > 0
	if seg.Has&wire.OptMPTCP != 0 {
		f.bare = 0
		f.dataAcked = f.dataAcked || acks && seg.Has&wire.OptDSS != 0 && seg.DSS.Flags&wire.DSSAck != 0
		return
	}
	f.bare++
	f.bareFIN = f.bareFIN || seg.Flags&wire.FIN != 0
	if !acks || f.dataAcked || c.joinable && f.bare < bareACKs {
		return
	}
	switch {
	case c.nextID == 1:
		// RFC 8684, Section 3.7: data on the first subflow acknowledged
		// without a DATA_ACK means that the peer has fallen back.
		c.fallBack(now, f, reason.FallbackNoDataACK)
	case f.join != nil:
		// The same section: a later subflow on which this happens is reset.
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMiddlebox)
	}
}

// checkPlain guards the stream after a fallback: should the peer, against
// expectation, still speak MPTCP, its subflow's stream may not be the
// connection's any more.
func (c *Conn) checkPlain(now mono.Time, f *flow, seg *wire.Segment) {
	d := &seg.DSS
	if seg.Has&wire.OptDSS == 0 || d.Flags&wire.DSSMap == 0 || d.Len == 0 || d.SSN == 0 || c.remoteKey == (key.Key{}) {
		return
	}
	at := f.offsetOf(d.SSN) + f.infiniteDelta
	if c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, at) != int64(at) {
		c.drop(reason.DropMapping)
		c.abort(now, reason.CloseLocalReset)
	}
}

// maxMapping is the length of the longest mapping, the DATA_FIN included.
const maxMapping = 1<<16 - 1

// unmapped acts on in-order payload for which no mapping is known.
func (c *Conn) unmapped(now mono.Time, f *flow) {
	if !c.joinable && f.join == nil && f.in.empty() {
		// Not a single mapping has come: options do not pass.
		c.fallBack(now, f, reason.FallbackNoMapping)
		return
	}
	c.stats.Drops[reason.DropUnmapped]++
	// RFC 8684, Section 3.3.1: a mapping may yet come; after a receive window
	// of data without one, the subflow SHOULD be reset. Section 3.7: with the
	// code for middlebox interference. The longest mapping has passed before.
	if f.got-f.heldFrom() >= min(uint64(c.cfg.ReadBuffer)/2, maxMapping) {
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMiddlebox)
	}
}

// infiniteMapping acts on a DSS with a length of 0: the peer falls back.
func (c *Conn) infiniteMapping(now mono.Time, f *flow, d *wire.DSS) {
	place := c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, c.rcv.q.Next())
	delta := uint64(place) - f.offsetOf(d.SSN)
	// The subflow's stream must be the connection's from here on, which it is
	// only if nothing went another way.
	if place < 0 || len(c.flows) != 1 || f.heldFrom()+delta != c.rcv.q.Next() {
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMPTCP)
		return
	}
	c.fallBack(now, f, reason.FallbackInfinite)
}

// putInfinite adds the infinite mapping that announces our fallback.
func (c *Conn) putInfinite(f *flow, seg *wire.Segment, off, data uint64) {
	f.infiniteDue = false
	f.tcp.SetRoom(subflow.Room{})
	seg.Has |= wire.OptDSS
	seg.DSS = wire.DSS{
		Flags: wire.DSSMap | wire.DSSDSN8, DSN: uint64(c.snd.dsn(data)), SSN: uint32(off + 1),
	}
}

// verified reports whether all of a mapping has arrived and its checksum
// holds.
func (c *Conn) verified(now mono.Time, f *flow, m *mapping) bool {
	if m.end() <= f.verifiedTo {
		return true
	}
	if f.got < m.end() || f.heldFrom() > m.off {
		return false
	}
	var views [][]byte
	for _, p := range f.held {
		if p.off >= m.end() {
			break
		}
		views = append(views, p.data[:min(uint64(len(p.data)), m.end()-p.off)])
	}
	sum := wire.SumViews(views, 0)
	if wire.DSSChecksum(sum, uint64(c.rcv.dsn(m.data)), uint32(m.off+1), m.dssLen) == m.checksum {
		f.verifiedTo = m.end()
		return true
	}
	// RFC 8684, Section 3.7: the subflow "MUST" be closed with a RST that
	// carries MP_FAIL; its data is not DATA_ACKed and comes by another.
	// Deviation: the same on an only subflow, where an infinite mapping could
	// go on with data known to have been altered.
	c.stats.ChecksumErrors++
	f.failDSN, f.failDue = c.rcv.dsn(m.data), true
	c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMiddlebox)
	return false
}
