package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// placeAlone puts a subflow that the connection opened after its only one was
// closed by a RST with MP_FAIL in single-path mode.
//
// RFC 8684, Section 3.7: "The sender MAY attempt to create a new subflow
// belonging to the same connection and, if it chooses to do so, SHOULD
// immediately place the single subflow in single-path mode by setting an
// infinite Data Sequence Mapping. This mapping will begin from the data-level
// sequence number that was declared in the MP_FAIL." What is missing before
// that number, if anything, is covered as well, for nothing else would bring it.
//
// Until the peer acknowledges data that came so, the connection stays MPTCP:
// stacks that know no infinite mapping on a joined subflow reset it, and then
// the next one is an ordinary one.
func (c *Conn) placeAlone(now mono.Time, f *flow) {
	c.single = false
	if f.join.active && !c.cfg.RequireMPTCP && c.onlyPath(f) && c.beginsInLine(f) {
		c.stopJoins(now, f)
		f.inTrouble().fail.alone = true
		f.startInfinite(c)
	}
}

// beginsInLine reports whether a new subflow, the only one, can carry both
// streams from where the connection stands. What would go out on it again
// counts as never sent from now on, so that it goes in order; what came beyond a
// hole will come again.
//
// RFC 8684, Section 3.7: "The receiver MUST discard all data that follows the
// data sequence number specified."
func (c *Conn) beginsInLine(f *flow) bool {
	s := &c.snd
	at := s.una
	if !f.out.empty() {
		at = f.runEnd
	}
	s.reinject.Remove(0, at)
	if s.holes.Len() == 0 && at < s.nxt && s.reinject.Len() == 1 && s.reinject.At(0).Lo == at && s.reinject.At(0).Hi == s.nxt {
		s.nxt, s.lostTo = at, 0
		s.reinject.Clear()
	}
	c.stats.BytesReceived -= uint64(c.rcv.q.Truncate())
	return c.sendsInLine(f) && c.receivesInLine(f)
}

// aloneAnswered makes the connection plain TCP once the peer has acknowledged
// data that came with our infinite mapping.
func (c *Conn) aloneAnswered(now mono.Time, f *flow) {
	if f.tcp.Acked() > f.lead.out {
		c.fallBack(now, f, reason.FallbackChecksum)
	}
}

// beginAlone acts on an infinite mapping of the first byte of a joined subflow.
// It reports whether the subflow can go on so; the peer opens an ordinary one
// after a reset.
func (c *Conn) beginAlone(f *flow) bool {
	return !c.cfg.RequireMPTCP && c.beginsInLine(f)
}

// lineOf returns, for what comes on a flow, data offset minus subflow offset.
func (c *Conn) lineOf(f *flow) uint64 {
	if f.fail.lined {
		return f.fail.line
	}
	return c.rcv.q.Next() - f.heldFrom()
}

// noteLine keeps what a mapping of the peer says of lineOf while our infinite
// mapping waits for an ACK. What the peer sends again may have arrived before.
func (f *flow) noteLine(m mapping) {
	if f.fail.alone {
		f.fail.line, f.fail.lined = m.data-m.off, true
	}
}

// adoptStart takes the place of the peer's stream from its first mapping, on a
// joined subflow of a plain connection that has brought nothing yet.
func (c *Conn) adoptStart(f *flow, d *wire.DSS) {
	place := c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, c.rcv.q.Next())
	delta := uint64(place) - f.offsetOf(d.SSN)
	if f.join != nil && f.got == f.lead.in && !f.fail.lined && int64(f.got+delta) <= int64(c.rcv.q.Next()) {
		f.inTrouble().infiniteDelta = delta
	}
}
