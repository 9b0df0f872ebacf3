package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// pipe estimates the bytes in the network.
func (s *Subflow) pipe() int { return max(s.queue.pipe()-s.rec.guessed, 0) }

// cwnd returns the congestion window in force: PRR's in fast recovery,
// otherwise the controller's, bounded after a restart. It is at least one
// segment.
func (s *Subflow) cwnd() int {
	if s.rec.phase == phaseFast {
		return max(s.rec.prr.cwnd, s.snd.mss)
	}
	c := int(min(s.ctl.State().Cwnd, 1<<40))
	if s.rec.ceiling > 0 {
		c = min(c, s.rec.ceiling)
	}
	return max(c, s.snd.mss)
}

// restart bounds the congestion window after idleness.
//
// RFC 5681, Section 4.1: "a TCP SHOULD set cwnd to no more than RW before
// beginning transmission if the TCP has not sent data in an interval exceeding
// the retransmission timeout", where RW = min(IW, cwnd).
// Deviation: the controller's window is kept. What may be used of it grows
// from RW by the bytes acknowledged, as in slow start, until it is reached.
func (s *Subflow) restart(now mono.Time) {
	if s.queue.total > 0 || !s.snd.lastAt.Set() || now.Sub(s.snd.lastAt) <= s.rtt.timeout() {
		return
	}
	if rw := s.cfg.InitialWindow * s.snd.mss; s.rec.ceiling == 0 || s.rec.ceiling > rw {
		s.moves++
		s.rec.ceiling, s.rec.creeps = rw, false
	}
}

// Penalise halves the window in force, because the connection waits for what
// this subflow carries. As with a restart the controller's window is kept. The
// bound grows back as the window would: by what is acknowledged in slow start,
// otherwise by a segment a round trip.
func (s *Subflow) Penalise() {
	s.stir()
	st := s.ctl.State()
	s.rec.ceiling, s.rec.creeps = max(s.cwnd()/2, s.snd.mss), st.Cwnd >= st.Ssthresh
}

// Bequeath has another subflow on the same path take the place of this one, if
// the congestion control can do that.
func (s *Subflow) Bequeath(to *Subflow) {
	from, ok := s.ctl.(cc.Heir)
	heir, fits := to.ctl.(cc.Heir)
	if !ok || !fits {
		return
	}
	s.stir()
	to.stir()
	heir.Inherit(from.Bequeath(s.pipe() + s.snd.queued()))
}

// raiseCeiling lets the bound of a restart or a penalty grow.
func (s *Subflow) raiseCeiling(acked int) {
	if s.rec.ceiling == 0 {
		return
	}
	if s.rec.creeps {
		acked = acked * s.snd.mss / s.rec.ceiling
	}
	s.rec.ceiling += acked
	if float64(s.rec.ceiling) >= s.ctl.State().Cwnd {
		s.rec.ceiling = 0
	}
}

// Room returns how many of the connection's waiting bytes should be pushed
// now: what the congestion window and the peer's window leave beside what is
// queued and what must be sent again, in full segments unless it is all that
// waits. It is 0 while silly-window avoidance or Nagle's algorithm say so.
func (s *Subflow) Room(now mono.Time, waiting int) int {
	if s.Full() && waiting >= s.snd.mss && !s.timers.Next().Reached(now) {
		// The usual answer, many of which there are for each segment of a
		// connection with many subflows.
		s.snd.waiting = waiting
		return 0
	}
	waiting = max(waiting, 0)
	// What may be lost goes out again while nothing new waits.
	if s.snd.refused || s.rec.phase == phaseFast && (waiting > 0) != (s.snd.waiting > 0) {
		s.stir()
	}
	s.snd.waiting = waiting
	s.snd.refused = false
	if waiting == 0 || !s.CanSend() {
		return 0
	}
	s.restart(now)
	mss, queued := s.snd.mss, s.snd.queued()
	idle := s.queue.total == 0 && queued == 0
	window := s.snd.usable()
	n := min(waiting, window, s.budget(now)-queued-s.queue.pending)
	if first := s.frtoData(); first > 0 {
		n = min(waiting, window, s.budget(now)-queued, first-queued)
	}
	if probe := s.probeWanted(now); probe > 0 && queued == 0 && waiting >= probe {
		// A probe is one packet, and must not be cut by a border.
		switch {
		case n >= probe:
			return max(probe, n-n%mss)
		case !idle:
			return 0
		}
	}
	// RFC 9293, Section 3.7.4: "If there is unacknowledged data (i.e., SND.NXT
	// > SND.UNA), then the sending TCP endpoint buffers all user data [...]
	// until the outstanding data has been acknowledged or until the TCP
	// endpoint can send a full-sized segment".
	all := n == waiting && (idle || !s.cfg.Nagle)
	switch {
	case all:
		return n
	case n >= mss:
		return n - n%mss
	case n > 0 && idle && !s.silly(n):
		return n
	}
	if n < waiting && waiting >= mss && s.queue.total > 0 {
		s.full = s.moves
	}
	// The window alone holds us back and no ACK is on its way to open it.
	s.snd.refused = idle && min(waiting, window) < mss
	s.setPersist(now)
	return 0
}

// Full reports whether Room said 0 because a window is in use, whatever waits,
// and nothing has happened since.
func (s *Subflow) Full() bool { return s.full == s.moves }

// QueueRoom returns how many bytes beyond Room may be pushed, so that the
// subflow has two windows at most.
func (s *Subflow) QueueRoom() int {
	if !s.CanSend() {
		return 0
	}
	return max(min(s.snd.usable(), 2*s.cwnd()-s.pipe()-s.snd.queued()-s.queue.pending), 0)
}

// silly reports whether n bytes, less than a segment and less than what
// waits, are too few to be sent.
//
// RFC 9293, Section 3.8.6.2.1: send "if at least a fraction Fs of the maximum
// window can be sent", with Fs = 1/2, when nothing is outstanding, "or if the
// override timeout occurs".
func (s *Subflow) silly(n int) bool {
	if s.queue.total > 0 {
		return true
	}
	return 2*n < s.snd.maxWnd && !s.snd.override
}

// SetBlocked tells whether the connection has data that it can't push because
// a window is closed, this subflow's or its own. While it has, and nothing is
// in flight whose ACK would tell of a change, the window is probed.
func (s *Subflow) SetBlocked(now mono.Time, blocked bool) {
	blocked = blocked && s.CanSend()
	if blocked == s.snd.blocked {
		return
	}
	s.stir()
	s.snd.blocked = blocked
	s.setPersist(now)
}

// setPersist starts or stops the persist timer.
//
// RFC 9293, Section 3.8.6.1: "The transmitting host SHOULD send the first
// zero-window probe when a zero window has existed for the retransmission
// timeout period (SHLD-29) [...], and SHOULD increase exponentially the
// interval between successive probes (SHLD-30)." The same timer is the
// override timeout of Section 3.8.6.2.1.
func (s *Subflow) setPersist(now mono.Time) {
	waits := s.snd.blocked || s.snd.refused || s.snd.queued() > 0
	if !waits || s.queue.total > 0 || !s.state.Synchronized() || s.state.over() {
		s.timers.Stop(timerPersist)
		return
	}
	if !s.timers.At(timerPersist).Set() {
		s.timers.Set(timerPersist, now.Add(s.persistAfter()))
	}
}

// persistAfter returns how long the next persist timer runs.
func (s *Subflow) persistAfter() time.Duration {
	return min(s.rtt.timeout()<<min(s.snd.persists, 16), s.cfg.MaxRTO)
}

// onPersist sends what little the window allows, or probes it.
//
// RFC 9293, Section 3.8.6.1: "As long as the receiving TCP peer continues to
// send acknowledgments in response to the probe segments, the sending TCP peer
// MUST allow the connection to stay open (MUST-37)."
func (s *Subflow) onPersist(now mono.Time) {
	if int(s.alive.unanswered) > s.cfg.Retries ||
		s.cfg.UserTimeout > 0 && s.alive.unanswered > 0 && now.Sub(s.alive.lastHeard) >= s.cfg.UserTimeout {
		s.giveUp()
		return
	}
	s.snd.persists++
	s.snd.override = s.snd.wnd > 0
	if s.snd.blocked || s.snd.wnd == 0 {
		s.alive.unanswered++
		s.alive.probe = true
		s.count.trouble().windowProbes++
	}
	s.snd.refused = false // Room tells again
	s.setPersist(now)
}

// updateWindow takes the peer's window from a segment that begins at num and
// acknowledges ackNum.
//
// RFC 9293, Section 3.10.7.4: "If SND.UNA =< SEG.ACK =< SND.NXT, the send
// window should be updated. If (SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and
// SND.WL2 =< SEG.ACK)), set SND.WND <- SEG.WND, set SND.WL1 <- SEG.SEQ, and
// set SND.WL2 <- SEG.ACK."
// Deviation: a reordered segment that moved SND.UNA, to which SND.WND is
// relative, updates the window in any case, or the two would add up to more
// than the peer ever offered.
func (s *Subflow) updateWindow(seg *wire.Segment, num, ackNum relSSN, moved bool) {
	if ackNum < s.snd.una || !moved && (num < s.snd.wl1 || num == s.snd.wl1 && ackNum < s.snd.wl2) {
		return
	}
	s.snd.wnd = s.PeerWindow(seg)
	s.snd.maxWnd = max(s.snd.maxWnd, s.snd.wnd)
	s.snd.wl1, s.snd.wl2 = num, ackNum
}

// PeerWindow returns SEG.WND of a received segment in bytes.
func (s *Subflow) PeerWindow(seg *wire.Segment) int {
	if seg.Flags.Has(wire.SYN) {
		return int(seg.Wnd)
	}
	return int(seg.Wnd) << s.snd.shift
}

// window returns the window to advertise, as on the wire.
func (r *receiver) window() uint16 {
	return uint16(min(max(r.offer-r.nxt, 0)>>r.shift, 65535))
}

// standing is the window that a peer goes by, and the numbers of the segment
// that had it.
type standing struct {
	ack, seq relSSN
	wnd      uint16 // on the wire
}

// advertise returns the window for a segment that begins at num. One that
// neither acknowledges nor sends anything new must not make it smaller: Linux
// takes no smaller window from it, as RFC 9293, Section 3.10.7.4, would, but does
// take its DATA_ACK, which the larger one would then be relative to. Connections
// see it by OwnWindow and acknowledge less instead.
func (r *receiver) advertise(num relSSN) uint16 {
	w := r.window()
	if r.nxt == r.stands.ack && num <= r.stands.seq && w < r.stands.wnd {
		return r.stands.wnd
	}
	r.stands = standing{ack: r.nxt, seq: max(num, r.stands.seq), wnd: w}
	return w
}

// OwnWindow returns SEG.WND of a segment to be sent, not a SYN, in bytes.
func (s *Subflow) OwnWindow(seg *wire.Segment) int { return int(seg.Wnd) << s.rcv.shift }

// OfferLess takes at least n bytes from the window of a segment to be sent.
func (s *Subflow) OfferLess(seg *wire.Segment, n int) {
	unit := 1 << s.rcv.shift
	seg.Wnd -= uint16(min((n+unit-1)/unit, int(seg.Wnd)))
	s.rcv.stands.wnd = seg.Wnd
}

// unscaled returns the window to advertise in a SYN.
//
// RFC 7323, Section 2.2: "The window field in a segment where the SYN bit is
// set (i.e., a <SYN> or <SYN,ACK>) MUST NOT be scaled."
func (r *receiver) unscaled() uint16 { return uint16(min(max(r.offer-r.nxt, 0), 65535)) }

// SetReceiveWindow sets how many bytes from RCV.NXT on may come. What was
// once offered is accepted ever after. If the peer may be waiting for the news,
// an ACK becomes due.
//
// The caller moves the window by steps worth telling (RFC 9293, Section
// 3.8.6.2.2): it is the connection's, and all its subflows have to offer the
// same (RFC 8684, Section 3.3.4).
// Deviation: RFC 9293, Section 3.8.6, says not to shrink the window (SHLD-14).
// What arrives on other subflows makes it smaller here, with the next segment
// that acknowledges or sends something new.
func (s *Subflow) SetReceiveWindow(bytes int) {
	r := &s.rcv
	bytes = min(max(bytes, 0), s.cfg.MaxWindow)
	old := r.offer
	r.offer = r.nxt + relSSN(bytes)
	if r.told == 0 {
		r.edge, r.space = r.offer, bytes // nothing was promised yet
		return
	}
	r.space = max(r.space, bytes)
	r.edge = max(r.edge, r.offer)
	if r.offer <= old {
		return
	}
	// The ACK is due when the peer knows of less than half of what is open.
	news := r.nxt + relSSN(r.window())<<r.shift
	step := max(relSSN(min(r.space/2, s.snd.mss)), 1)
	if news-r.told >= step && news-r.nxt >= 2*(r.told-r.nxt) {
		s.RequestAck()
	}
}
