package mpconn

import (
	"math"
	"time"

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
	proven := c.joinable
	c.mode, c.fallback = modePlain, why
	c.checksum, c.joinable = false, false
	c.addrs.announce, c.addrs.echoes, c.addrs.withdraw = nil, nil, nil
	c.snd.edge = noEdge
	for _, f := range c.flows {
		if f.tcp != nil {
			f.tcp.SetRoom(subflow.Room{})
		}
	}
	c.snd.reinject.Clear()
	c.emit(pending{kind: EventFallback, fallback: why, proven: proven})
}

// fallBack makes an MPTCP connection plain TCP: from here on the subflow's
// stream is the connection's.
//
// RFC 8684, Section 3.7: "Once MPTCP falls back to regular TCP, it MUST NOT
// revert to MPTCP later in the connection." For lost options it is allowed on
// the first subflow only, before any other was added; after a failed checksum,
// and at the peer's bidding, on whichever is the only one. The decision, the
// end of all joins and the refusal of new ones happen within one call, so that
// nothing can come in between.
func (c *Conn) fallBack(now mono.Time, f *flow, why reason.Fallback) {
	delta := c.lineOf(f)
	inLine := c.sendsInLine(f) && c.receivesInLine(f)
	if why != reason.FallbackChecksum && why != reason.FallbackInfinite {
		inLine = c.plainSoFar(f)
	}
	if c.cfg.RequireMPTCP {
		c.fallback = why
		c.emit(pending{kind: EventFallback, fallback: why})
		c.abort(now, reason.CloseLocalReset)
		return
	}
	if !inLine {
		// What the subflow carries is not the stream in order: going on would
		// deliver wrong bytes.
		c.oddity().FallbacksFailed++
		c.abort(now, reason.CloseLocalReset)
		return
	}
	c.stopJoins(now, f)
	f.startInfinite(c)
	c.startPlain(why)
	f.inTrouble().infiniteDelta = delta
	if f.fail != (failure{}) {
		f.fail.waiting, f.fail.due, f.fail.alone, f.fail.retry = false, false, false, 0
	}
	f.tcp.SetRoom(subflow.Room{Data: roomData}) // for the infinite mapping
	if c.rcv.hasFin && !c.rcv.eof() {
		c.rcv.hasFin = false // the subflow's FIN tells the end
	}
	held := f.held.all()
	f.held, f.in = nil, mappings{}
	for i := range held {
		p := &held[i]
		c.deliver(f, p.off+f.infiniteDelta, p.view[:], p.owner)
	}
	c.timers.Stop(timerDataRexmit)
	c.timers.Stop(timerAddAddr)
	c.timers.Stop(timerOrphan)
	c.flowAcked(f)
	c.snd.idle = false
}

// mayFallBack reports whether lost options make the connection plain TCP.
//
// RFC 8684, Section 3.7: "before any additional subflows are added, the
// implementation MUST drop out of MPTCP mode and fall back to regular TCP." A join
// that is under way does not count, lest one side fall back and the other go on
// with MPTCP, unless the peer may have had its third ACK already.
func (c *Conn) mayFallBack(f *flow) bool { return !c.added && c.onlyPath(f) }

// plainSoFar reports whether all that the only flow there ever was carried, both
// ways, is what plain TCP would have carried: no byte twice, and none left out.
func (c *Conn) plainSoFar(f *flow) bool {
	return c.rcv.q.Next() == f.heldFrom() && c.stats.BytesReinjected == 0
}

// heldFrom returns the subflow offset of the first byte not delivered.
func (f *flow) heldFrom() uint64 {
	if !f.held.empty() {
		return f.held.first().off
	}
	return f.got
}

// bareACKs is how many segments in a row without any option mean that the
// peer has fallen back, where options came from it before: a box that strips
// some segments must not make one end plain and leave the other MPTCP.
const bareACKs = 3

// checkProof looks for signs that the path loses options.
func (c *Conn) checkProof(now mono.Time, f *flow, seg *wire.Segment) {
	if f.fail.waiting || f.failed != reason.CloseNone {
		return
	}
	if f.fail.alone {
		c.aloneAnswered(now, f)
		return
	}
	acks := f.tcp.Acked() > f.lead.out
	if seg.Has&wire.OptMPTCP != 0 {
		f.bare = 0
		f.dataAcked = f.dataAcked || acks && seg.Has&wire.OptDSS != 0 && seg.DSS.Flags&wire.DSSAck != 0
		return
	}
	f.bare++
	f.bareFIN = f.bareFIN || seg.Flags&wire.FIN != 0
	// A joiner's first pure ACK is judged at once: to lose that subflow is
	// cheap. A segment with payload may lack the option because its mapping came
	// before.
	patient := c.joinable && (f.join == nil || seg.PayloadLen() > 0)
	if !acks || f.dataAcked || patient && f.bare < bareACKs {
		return
	}
	if c.mayFallBack(f) {
		c.followBare(now, f)
	} else if f.join != nil || c.otherUsable(f) {
		// RFC 8684, Section 3.7: on a later subflow "the host MUST close the
		// subflow with a RST"; once there are several, the first is treated alike.
		c.giveUpBare(now, f)
	}
}

// followBare falls back where data on the first subflow was acknowledged without
// a DATA_ACK, if that is safe.
//
// RFC 8684, Section 3.7: "the sender determines the path is not MPTCP capable."
//
// The peer may still speak MPTCP, only that nothing shows it any more. Bytes that
// came without a mapping may then be some that it sent again at the data level,
// which happens after a retransmission timeout, so that only young ones are known
// to be new; half of that, lest they were delayed more than what follows them.
func (c *Conn) followBare(now mono.Time, f *flow) {
	young := max(leastRTO, f.tcp.Snapshot().MinRTT) / 2
	if s := &f.stuck; s.since.Set() && now.Sub(s.since) >= young || !c.plainSoFar(f) {
		c.giveUpBare(now, f)
		return
	}
	c.fallBack(now, f, reason.FallbackNoDataACK)
}

// leastRTO is the least retransmission timeout in use, ours and Linux's.
const leastRTO = 200 * time.Millisecond

// giveUpBare resets a subflow that loses options when it is too late to fall
// back.
func (c *Conn) giveUpBare(now mono.Time, f *flow) {
	c.oddity().FallbacksFailed++
	c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMiddlebox)
}

// checkPlain guards the stream after a fallback: should the peer, against
// expectation, still speak MPTCP, its subflow's stream may not be the
// connection's any more.
func (c *Conn) checkPlain(now mono.Time, f *flow, seg *wire.Segment) {
	if seg.Has&wire.OptMPFail != 0 && c.fallback == reason.FallbackChecksum {
		f.answerFail()
	}
	d := &seg.DSS
	if seg.Has&wire.OptDSS == 0 || d.Flags&wire.DSSMap == 0 || d.SSN == 0 || c.remoteKey == (key.Key{}) {
		return
	}
	c.adoptStart(f, d)
	if d.Len == 0 {
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

// unmappedTimeout is how long payload waits for its mapping: longer than a
// sender takes to send it again with one, but not for ever, should the sender
// be plain TCP by now and have nothing more to say.
const unmappedTimeout = 10 * time.Second

// stuck is held payload that waits for its mapping.
type stuck struct {
	off   uint64
	since mono.Time // when it came; 0 = there is none
}

// until returns when the wait ends; 0 = there is none.
func (s *stuck) until() mono.Time {
	if !s.since.Set() {
		return 0
	}
	return s.since.Add(unmappedTimeout)
}

// unmapped acts on in-order payload for which no mapping is known.
func (c *Conn) unmapped(now mono.Time, f *flow) {
	if !c.joinable && f.in.empty() {
		// Not a single mapping has come: options do not pass.
		c.fallBack(now, f, reason.FallbackNoMapping)
		return
	}
	c.stats.Drops.Count(reason.DropUnmapped)
	if !f.stuck.since.Set() || f.stuck.off != f.heldFrom() {
		f.inTrouble().stuck = stuck{f.heldFrom(), now}
	}
	// RFC 8684, Section 3.3.1: a mapping may yet come; after a receive window
	// of data without one, the subflow SHOULD be reset. Section 3.7: with the
	// code for middlebox interference. The longest mapping has passed before.
	if f.got-f.heldFrom() >= min(uint64(c.rcv.buffer.limit)/2, maxMapping) {
		c.giveUpBare(now, f)
	}
}

// unmappedTooLong resets a subflow whose payload has waited for a mapping for
// too long.
func (c *Conn) unmappedTooLong(now mono.Time, f *flow) {
	f.stuck = stuck{}
	if f.failed == reason.CloseNone {
		c.giveUpBare(now, f)
	}
}

// infiniteMapping acts on a DSS with a length of 0: the peer falls back.
func (c *Conn) infiniteMapping(now mono.Time, f *flow, d *wire.DSS) {
	place := c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, c.rcv.q.Next())
	delta := uint64(place) - f.offsetOf(d.SSN)
	// The subflow's stream must be the connection's from here on, which it is
	// only if nothing went another way.
	f.noteLine(mapping{off: f.offsetOf(d.SSN), data: uint64(place)})
	fits := f.heldFrom()+delta == c.rcv.q.Next() || f.fail.alone && int64(f.heldFrom()+delta) < int64(c.rcv.q.Next())
	fresh := f.join != nil && f.offsetOf(d.SSN) == f.lead.in && !f.fail.alone
	if place < 0 || !c.onlyPath(f) || !fits || fresh && !c.beginAlone(f) {
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMPTCP)
		return
	}
	why := reason.FallbackInfinite
	if f.fail.waiting {
		why = reason.FallbackChecksum
	}
	c.fallBack(now, f, why)
}

// infinite is the infinite mapping by which a side says that it fell back. It
// goes on the first segment with new payload and on every copy of that.
type infinite struct {
	mapping mapping // where the range begins that it covers
	due     bool
	summed  bool   // DSS checksums were in use
	to      uint64 // subflow offset behind the segment that carried it first
}

// startInfinite notes what the infinite mapping of a flow says.
//
// RFC 8684, Section 3.7: it "acts retroactively, referring to the start of the
// subflow sequence number of the most recent segment that was known to be
// delivered intact (i.e., was successfully DATA_ACKed)."
func (f *flow) startInfinite(c *Conn) {
	from := min(c.snd.una, c.snd.nxt)
	off := f.tcp.Pushed() - min(c.snd.nxt-from, f.tcp.Pushed())
	f.inTrouble().infinite = infinite{mapping: mapping{off: off, data: from}, due: true, summed: c.checksum}
}

// covers reports whether a segment with the range r carries the infinite
// mapping.
func (i *infinite) covers(r subflow.Range) bool {
	if i.due {
		i.due, i.to = false, r.Off+uint64(r.Len)
	}
	return r.Off < i.to
}

// infiniteAcked gives the option's room back once the peer has it.
func (f *flow) infiniteAcked(acked uint64) {
	if i := &f.infinite; i.to > 0 && acked >= i.to {
		i.to = 0
		f.tcp.SetRoom(subflow.Room{})
	}
}

// putInfinite adds the infinite mapping that announces our fallback.
//
// RFC 8684, Section 3.3.1: "The checksum, in such a case, will also be set to
// 0."
func (c *Conn) putInfinite(f *flow, seg *wire.Segment) {
	i := &f.infinite
	if seg.Has&wire.OptDSS == 0 {
		seg.Has |= wire.OptDSS
		seg.DSS = wire.DSS{}
	}
	d := &seg.DSS
	d.Flags |= wire.DSSMap | wire.DSSDSN8
	d.DSN, d.SSN, d.HasChecksum = uint64(c.snd.dsn(i.mapping.data)), f.lead.ssn(i.mapping.off), i.summed
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
	sum := uint32(0)
	for i, held := 0, f.held.all(); i < len(held) && held[i].off < m.end(); i++ {
		p := &held[i]
		sum = wire.Sum(p.view[0][:min(uint64(len(p.view[0])), m.end()-p.off)], sum)
	}
	if c.sumHolds(f, m, sum) {
		f.inTrouble().verifiedTo = m.end()
		return true
	}
	c.checksumFailed(now, f, m)
	return false
}

// sumHolds reports whether the checksum of a mapping is that of its payload, whose
// Sum is given.
func (c *Conn) sumHolds(f *flow, m *mapping, payloadSum uint32) bool {
	return wire.DSSChecksum(payloadSum, uint64(c.rcv.dsn(m.data)), f.lead.remoteSSN(m.off), m.dssLen) == m.checksum
}
