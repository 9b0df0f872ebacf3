package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// handleDSS acts on a DSS: DATA_ACK, window, mapping, DATA_FIN.
func (c *Conn) handleDSS(now mono.Time, f *flow, seg *wire.Segment) {
	d := &seg.DSS
	if d.Flags&wire.DSSMap != 0 && d.Len != 0 && d.HasChecksum != c.checksum {
		c.wrongChecksumUse(now, f)
		return
	}
	// RFC 8684, Section 3.1: "the reliable delivery of the ACK + MP_CAPABLE is
	// ensured by the receipt of this data with an MPTCP Data Sequence Signal (DSS)
	// option (Section 3.3) containing a DATA_ACK for the MP_CAPABLE". What the
	// passive side sends before it, after a fast open, has none.
	if !c.active || d.Flags&wire.DSSAck != 0 {
		c.prove(f)
	}
	if d.Flags&wire.DSSAck != 0 {
		c.handleDataAck(now, f, seg)
	}
	if d.Flags&wire.DSSMap != 0 {
		c.handleMapping(now, f, seg)
	}
}

// wrongChecksumUse acts on a mapping without the checksum that was negotiated, or
// with one that was not.
//
// RFC 8684, Section 3.3: "If a checksum is not present when its use has been
// negotiated, the receiver MUST close the subflow with a RST, as it is considered
// broken."
func (c *Conn) wrongChecksumUse(now mono.Time, f *flow) {
	c.drop(reason.DropMapping)
	c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMPTCP)
}

// handleDataAck acts on a DATA_ACK and on the window that comes with it.
//
// RFC 8684, Section 3.3.2: the window of a segment without DATA_ACK "MUST NOT"
// be used at the connection level.
func (c *Conn) handleDataAck(now mono.Time, f *flow, seg *wire.Segment) {
	d := &seg.DSS
	place := c.snd.place(d.Ack, d.Flags&wire.DSSAck8 != 0, c.snd.una)
	limit := c.snd.nxt
	if c.snd.finSent {
		limit = c.snd.q.End() + 1
	}
	if uint64(place) > limit { // or before the stream, where the place is negative
		c.drop(reason.DropBadAck)
		return
	}
	ack := uint64(place)
	// RFC 8684, Section 3.3.5: a sender only lets the right edge grow.
	if edge := ack + uint64(f.tcp.PeerWindow(seg)); edge > c.snd.edge {
		c.snd.edge = edge
	}
	c.tuneSend()
	if ack > c.snd.una {
		c.timers.Stop(timerDataRexmit)
		c.timers.Stop(timerOrphan)
		c.backoff, c.snd.overdue = 0, overdueNot
		c.dataAcked(ack)
		c.armDataRexmit(now)
	}
}

// dataAcked frees what lies before an acknowledged offset.
func (c *Conn) dataAcked(ack uint64) {
	if ack <= c.snd.una {
		return
	}
	data := min(ack, c.snd.q.End())
	c.stats.BytesAcked += data - min(c.snd.una, data)
	c.snd.una = ack
	c.snd.q.Release(data)
}

// putDataAck adds a DSS with a DATA_ACK.
//
// RFC 8684, Section 3.3.2: a DSN of 8 bytes "MUST" be answered by a DATA_ACK
// of 8; sending 8 always satisfies it.
//
// The segment's window counts from there and must not lead beyond what is
// accepted: where the subflow kept an older, larger one, less is acknowledged,
// or at the end of the stream, which must be, less offered.
func (c *Conn) putDataAck(f *flow, seg *wire.Segment) {
	ack, next := c.rcv.ack(), c.rcv.q.Next()
	switch over := int64(next) + int64(f.tcp.OwnWindow(seg)) - int64(max(c.rcv.adv, next)); {
	case over <= 0:
	case c.rcv.eof():
		f.tcp.OfferLess(seg, int(over))
	default:
		ack -= uint64(over)
	}
	f.told = c.rcv.adv
	seg.Has |= wire.OptDSS
	seg.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: uint64(c.rcv.dsn(ack))}
}

// window returns the bytes to advertise from the DATA_ACK on and moves the
// advertised edge.
//
// RFC 8684, Section 3.3.4: the right edge "MUST NOT" move left. RFC 9293,
// Section 3.8.6.2.2: it moves right by worthwhile steps only.
func (c *Conn) window() int {
	if edge := c.freeEdge(); edge >= c.rcv.adv+uint64(c.worthwhile()) {
		c.rcv.adv = edge
	}
	next := c.rcv.q.Next()
	if c.rcv.adv < next {
		return 0
	}
	return int(c.rcv.adv - next)
}

// freeEdge is where the window would end if all free buffer were advertised.
func (c *Conn) freeEdge() uint64 {
	free := c.rcv.buffer.limit - c.rcv.q.Readable()
	return c.rcv.q.Next() + uint64(max(free, 0))
}

// worthwhile is the least step of the window's edge.
func (c *Conn) worthwhile() int { return min(c.rcv.buffer.limit/2, 1460) }

// windowOpened sends the peer a window update when reading has freed much.
func (c *Conn) windowOpened(now mono.Time) {
	c.tuneReceive(now)
	edge := c.freeEdge()
	c.spreadNews(edge)
	gain := int64(edge) - int64(c.rcv.adv)
	left := int64(c.rcv.adv) - int64(c.rcv.q.Next())
	small := left < int64(c.rcv.buffer.limit/4) && gain >= int64(c.worthwhile()) && gain >= left/2
	if gain < int64(c.rcv.buffer.limit/2) && !small {
		return
	}
	f := c.rcv.lastOn
	if f == nil || f.phase != phaseUp {
		for _, g := range c.flows {
			if g.phase == phaseUp && !g.stale {
				f = g
				break
			}
		}
	}
	if f != nil {
		f.tcp.RequestAck()
	}
}

// newsSteps is how many times a window the sender hears of it on the fastest
// subflow.
const newsSteps = 8

// spreadNews makes an ACK due on the fastest subflow when the window has opened
// by much since one said so there, because what comes on slower ones is read:
// so the window turns around sooner than by their way back. Such an ACK looks
// like a duplicate, which only a peer without SACK takes for a loss.
//
// RFC 8684, Section 3.3.4: the window is the connection's, whatever subflow
// tells of it.
func (c *Conn) spreadNews(edge uint64) {
	f := c.rcv.lastOn
	if f == nil || len(c.flows) < 2 || c.mode != modeMPTCP {
		return
	}
	best, least := f, f.tcp.MinRTT()
	for _, g := range c.flows {
		if g.phase != phaseUp || g.stale || g.standby() || !g.tcp.SACK() {
			continue
		}
		if rtt := g.tcp.MinRTT(); rtt > 0 && rtt < least {
			best, least = g, rtt
		}
	}
	if step := uint64(c.rcv.buffer.limit / newsSteps); best != f && edge >= best.told+step {
		best.told = edge
		best.tcp.RequestAck()
	}
}
