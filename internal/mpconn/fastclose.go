package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// fastClose is an end of the connection that waits for the peer's RST (RFC 8684,
// Section 3.5, option A).
type fastClose struct {
	on    *flow // the subflow whose ACK carries MP_FASTCLOSE; nil = not that way
	due   bool
	tries int
}

// maxFastCloses is how often MP_FASTCLOSE on an ACK is sent again.
//
// RFC 8684, Section 3.5: "the number of retransmissions SHOULD be limited;
// this limit is implementation specific. A RECOMMENDED number is 3."
const maxFastCloses = 3

// Abort ends the connection at once, dropping what was not delivered: RST
// with MP_FASTCLOSE on every subflow (RFC 8684, Section 3.5, option R), RST
// alone on plain TCP. With Config.FastCloseByACK, one subflow says it on an ACK
// instead (option A), and the connection is over when the peer answers.
func (c *Conn) Abort(now mono.Time) { c.abort(now, reason.CloseLocalReset) }

// abort resets every subflow and ends the connection with a reason.
func (c *Conn) abort(now mono.Time, why reason.Close) {
	if c.over || c.ending != reason.CloseNone {
		return
	}
	c.ending, c.held = why, false
	c.timers.Stop(timerDataRexmit)
	if len(c.flows) == 0 {
		c.finish(why)
		return
	}
	if c.cfg.FastCloseByACK && c.mode == modeMPTCP && why == reason.CloseLocalReset {
		if f := c.bestFlow(nil); f != nil && c.joinable {
			c.closing = fastClose{on: f, due: true}
			f.leaving = true
			c.rcv.discard = true
		}
	}
	for _, f := range c.flows {
		if f.failed == reason.CloseNone && f != c.closing.on {
			c.abortFlow(now, f, why, reason.ResetUnspecified)
		}
	}
}

// pollFastClose builds the ACK that carries MP_FASTCLOSE.
func (c *Conn) pollFastClose(now mono.Time, seg *wire.Segment) bool {
	f := c.closing.on
	if f == nil || !c.closing.due || f.phase != phaseUp || !c.forceACK(now, f, seg, roomACK) {
		return false
	}
	c.closing.due = false
	seg.Has |= wire.OptFastClose
	seg.FastClose = c.remoteKey
	c.timers.Set(timerFastClose, now.Add(f.tcp.RTO()<<c.closing.tries))
	return true
}

// fastCloseTimeout acts on an MP_FASTCLOSE that stayed unanswered.
//
// RFC 8684, Section 3.5: "If no TCP RST is received in response, Host A SHOULD
// send a TCP RST with the MP_FASTCLOSE option itself when it releases state".
func (c *Conn) fastCloseTimeout(now mono.Time) {
	f := c.closing.on
	switch {
	case f == nil || f.phase != phaseUp:
	case c.closing.tries < maxFastCloses:
		c.closing.tries++
		c.closing.due = true
	default:
		c.abortFlow(now, f, c.ending, reason.ResetUnspecified)
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
	if f := c.closing.on; f != nil && f.failed == reason.CloseNone {
		// RFC 8684, Section 3.5: "If Host A receives an MP_FASTCLOSE instead of a
		// TCP RST, both hosts attempted fast closure simultaneously. Host A should
		// reply with a TCP RST and tear down the connection."
		c.abortFlow(now, f, c.ending, reason.ResetUnspecified)
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
	// RFC 8684, Section 3.6, of the flags U, V and W: "An implementation of this
	// specification MUST set these flags to 0"; the writer does not know them.
	seg.Has |= wire.OptMPTCPRst
	seg.TCPRst = f.reset
	switch {
	case c.ending == reason.CloseLocalReset && f.phase == phaseUp && (c.closing.on == nil || c.closing.on == f):
		seg.Has |= wire.OptFastClose
		seg.FastClose = c.remoteKey
	case f.fail.onReset:
		seg.Has |= wire.OptMPFail
		seg.FailDSN = f.fail.dsn
	}
}
