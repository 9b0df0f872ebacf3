package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Write copies bytes into the send buffer and returns how many it took: fewer
// than len(p) when the buffer is full, none after CloseWrite or the end.
func (c *Conn) Write(_ mono.Time, p []byte) int {
	room := c.WriteRoom()
	n := min(len(p), room)
	c.snd.cut, c.snd.corked = len(p) >= room, 0
	if n == 0 {
		return 0
	}
	c.snd.q.Append(p[:n])
	c.snd.idle, c.held = c.snd.idle && c.snd.full, false
	return n
}

// corkFor is how long bytes wait at most for those of the next Write.
const corkFor = time.Millisecond

// Cork says, right after a Write, that another is to be expected at once. What
// is little beside a super-segment waits for it then, for 1 ms at most: small packets
// cost as much work as large ones, on both sides. It changes nothing on paths whose
// segments are small.
func (c *Conn) Cork(now mono.Time) { c.snd.corked = now.Add(corkFor) }

// WriteRoom returns how many bytes Write would take now.
func (c *Conn) WriteRoom() int {
	if c.over || c.snd.closed || c.ending != reason.CloseNone {
		return 0
	}
	b := &c.snd.buffer
	return max(min(b.limit-c.outstanding(), b.limit+b.spare()+b.pinned+blockSlack-c.snd.q.Memory()), 0)
}

// outstanding returns the bytes written that the peer's connection may lack.
func (c *Conn) outstanding() int { return int(c.snd.q.End() - min(c.snd.una, c.snd.q.End())) }

// moreFollows reports whether bytes never sent that end at hi end there only
// because the peer's window does, or because the send buffer had no room for
// more.
func (s *sendSide) moreFollows(hi uint64) bool {
	end := s.q.End()
	return hi == s.edge && hi < end || hi == end && s.cut && !s.closed
}

const (
	// little is the share of a segment below which bytes wait for another Write that
	// is expected,
	little = 1. / 4
	// leastWhole is the bytes that a segment holds at least where they do: with
	// super-segments, or packets as large.
	leastWhole = 16 << 10
)

// worth returns how many of n bytes never sent, that end at hi, should go out
// on a flow now. What fills no segment waits if more follows and an ACK is on its
// way to make room for it: otherwise, as room comes in the pieces that are
// acknowledged, there would be ever more and smaller ones.
//
// RFC 9293, Section 3.8.6.2.1: "Send data: (1) if a maximum-sized segment can be
// sent", "(2) or if the data is pushed and all queued data can be sent now".
func (s *sendSide) worth(n int, hi uint64, tcp *subflow.Subflow) int {
	if whole := tcp.Largest(); s.isCorked() && hi == s.q.End() && whole >= leastWhole {
		if rest := n % whole; float64(rest) < little*float64(whole) {
			return n - rest
		}
	}
	if s.una < s.nxt && s.moreFollows(hi) {
		return n - n%tcp.MSS()
	}
	return n
}

// isCorked reports whether another Write is expected at once.
func (s *sendSide) isCorked() bool { return s.corked.Set() && !s.closed }

// Unsent returns the bytes written and never sent.
func (c *Conn) Unsent() int { return int(c.snd.q.End() - c.snd.nxt + c.snd.holes.Size()) }

// unsent returns the first range at or behind pos that was never sent, as far
// as the peer's window goes.
func (s *sendSide) unsent(pos uint64) (lo, hi uint64) {
	limit := min(s.q.End(), s.edge)
	for r := range s.holes.All {
		if r.Hi > pos {
			return max(r.Lo, pos), min(r.Hi, limit)
		}
	}
	return min(max(s.nxt, pos), limit), limit
}

// sendable returns how many bytes were never sent and may be.
func (s *sendSide) sendable() int {
	n := int(s.holes.Size())
	if limit := min(s.q.End(), s.edge); limit > s.nxt {
		n += int(limit - s.nxt)
	}
	return n
}

// take notes that [lo, hi) is being sent for the first time.
func (s *sendSide) take(lo, hi uint64) {
	if lo > s.nxt {
		s.holes.Add(s.nxt, lo)
	}
	s.holes.Remove(lo, hi)
	s.nxt = max(s.nxt, hi)
}

// finDue reports whether the DATA_FIN may go out: everything before it was
// sent.
func (s *sendSide) finDue() bool {
	return s.closed && s.nxt == s.q.End() && s.holes.Len() == 0
}

// putDataFin adds a DATA_FIN without payload to an ACK or a FIN.
//
// RFC 8684, Section 3.3.3: such a DSS "MUST" have a subflow sequence number of
// 0 and a data-level length of 1.
func (c *Conn) putDataFin(f *flow, seg *wire.Segment) {
	c.putDataAck(f, seg)
	d := &seg.DSS
	d.Flags |= wire.DSSMap | wire.DSSDSN8 | wire.DSSFin
	d.DSN = uint64(c.snd.dsn(c.snd.q.End()))
	d.SSN, d.Len = 0, 1
	d.HasChecksum = c.checksum
	if c.checksum {
		d.Checksum = wire.DSSChecksum(0, d.DSN, 0, 1)
	}
}
