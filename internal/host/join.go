package host

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// maxTokenJoins bounds the joins of one connection whose handshake is under
// way: whoever has seen its token could fill its subflows with them.
const maxTokenJoins = 8

// handleJoinSYN finds the connection that a SYN with MP_JOIN wants to join.
//
// RFC 8684, Section 3.2: "Demultiplexing subflow SYNs MUST be done using the
// token; this is unlike traditional TCP, where the destination port is used".
func (h *Host) handleJoinSYN(w *waiting, seg *wire.Segment) Verdict {
	var c *Conn
	if seg.Has&wire.OptMPJoin != 0 {
		h.count(MIBMPJoinSynRx)
		c = h.tokens[key.Token(seg.Join.Token)]
	}
	if c == nil {
		h.count(MIBMPJoinNoTokenFound)
		return h.refuseJoin(seg, reason.ResetMPTCP, reason.DropToken)
	}
	if w != nil && !w.mayReopen(seg, !c.cfg.Subflow.NoTimestamps) {
		return h.drop(reason.DropState)
	}
	return Verdict{Kind: VerdictJoin, Conn: c}
}

// Join lets a SYN with MP_JOIN, for which Lookup returned VerdictJoin, open a
// subflow of c, or refuses it. In both cases there may be something to send:
// from c, or from the host.
func (h *Host) Join(now mono.Time, c *Conn, seg *wire.Segment) (id int, ok bool) {
	t := tuple{seg.Dst, seg.Src}
	if b, live := h.tuples.bindings[t]; live {
		// A copy of the SYN came first. Lookup sends further ones there.
		h.drop(reason.DropState)
		return b.id, false
	}
	if !c.Joinable() {
		h.count(MIBMPJoinRejected)
		c.JoinStopped(seg.Dst, seg.Src, reason.LimitState)
		h.refuseJoin(seg, reason.ResetMPTCP, reason.DropState)
		return 0, false
	}
	if l := h.pendingLimit(c); l != reason.LimitNone {
		h.count(MIBMPJoinRejected)
		c.JoinStopped(seg.Dst, seg.Src, l)
		h.refuseJoin(seg, reason.ResetResources, reason.DropLimit)
		return 0, false
	}
	if id, ok = c.HandleJoin(now, seg); !ok {
		h.count(MIBMPJoinRejected)
		h.refuseJoin(seg, reason.ResetProhibited, reason.DropLimit)
		return 0, false
	}
	h.timeWait.remove(t)
	h.tuples.bind(t, c, id)
	c.joining = append(c.joining, id)
	h.joining++
	h.counters.Joined++
	if seg.Join.Backup {
		h.count(MIBMPJoinSynBackupRx)
	}
	if seg.Dst.Port() != c.first.local.Port() {
		h.count(MIBMPJoinPortSynRx)
	}
	return id, true
}

// pendingLimit says what forbids one more handshake of a join to c. Joins need no
// cookies, as the token must be known (RFC 8684, Section 3.2), but a bound.
func (h *Host) pendingLimit(c *Conn) reason.Limit {
	switch {
	case len(c.joining) >= maxTokenJoins:
		return reason.LimitJoins
	case h.joining >= h.cfg.MaxHalfOpen:
		return reason.LimitHalfOpen
	}
	return reason.LimitNone
}

// joined takes note that the handshake of subflow id is over, one way or the
// other. It reports whether the peer had begun it.
func (h *Host) joined(c *Conn, id int) bool {
	i := slices.Index(c.joining, id)
	if i < 0 {
		return false
	}
	c.joining = slices.Delete(c.joining, i, i+1)
	h.joining--
	return true
}
