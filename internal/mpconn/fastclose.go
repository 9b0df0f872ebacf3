package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Abort ends the connection at once, dropping what was not delivered: RST
// with MP_FASTCLOSE on every subflow (RFC 8684, Section 3.5, the form that
// needs no answer), RST alone on plain TCP.
func (c *Conn) Abort(now mono.Time) { c.abort(now, reason.CloseLocalReset) }

// abort resets every subflow and ends the connection with a reason.
func (c *Conn) abort(now mono.Time, why reason.Close) {
	if c.over || c.ending != reason.CloseNone {
		return
	}
	c.ending = why
	if len(c.flows) == 0 {
		c.finish(why)
		return
	}
	for _, f := range c.flows {
		if f.failed == reason.CloseNone {
			c.abortFlow(now, f, why, reason.ResetUnspecified)
		}
	}
}

// handleFastClose acts on MP_FASTCLOSE, on an ACK or a RST.
//
// RFC 8684, Section 3.5: with a valid key the receiver resets all subflows
// and closes the connection; with another the option has no effect.
func (c *Conn) handleFastClose(now mono.Time, seg *wire.Segment) {
	if !key.Equal(seg.FastClose[:], c.localKey[:]) {
		c.drop(reason.DropKey)
		return
	}
	c.abort(now, reason.CloseFastClose)
}

// handleReset acts on the options of a RST; the subflow itself reports its
// end.
func (c *Conn) handleReset(now mono.Time, f *flow, seg *wire.Segment) {
	// A middlebox resets without MP_TCPRST; its mind may change.
	f.peerTransient = true
	if seg.Has&wire.OptMPTCPRst != 0 {
		f.peerReset, f.peerTransient = seg.TCPRst.Reason, seg.TCPRst.Transient
	}
	if seg.Has&wire.OptMPFail != 0 {
		c.handleFailReset(f, seg)
	}
	if seg.Has&wire.OptFastClose != 0 {
		c.handleFastClose(now, seg)
	}
}

// putReset adds what a RST of ours has to say.
func (c *Conn) putReset(f *flow, seg *wire.Segment) {
	if c.mode != modeMPTCP && (f.join == nil || f.phase == phaseUp) {
		return
	}
	// RFC 8684, Section 3.6: flags U, V and W "MUST be set to 0"; the writer
	// knows no others.
	seg.Has |= wire.OptMPTCPRst
	seg.TCPRst = f.reset
	switch {
	case c.ending == reason.CloseLocalReset && f.phase == phaseUp:
		seg.Has |= wire.OptFastClose
		seg.FastClose = c.remoteKey
	case f.fail.onReset:
		seg.Has |= wire.OptMPFail
		seg.FailDSN = f.fail.dsn
	}
}
