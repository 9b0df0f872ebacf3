package subflow

import (
	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// undo watches for the proof that a recovery was needless.
type undo struct {
	armed undoState
	by    cc.Loss
	ts    uint32 // RetransmitTS of RFC 3522

	from, to relSSN // what was outstanding when the recovery began
	again    int    // bytes sent again since, less those reported as duplicates
	counted  bool   // anything was sent again
}

type undoState uint8

const (
	undoOff   undoState = iota
	undoWaits           // nothing was sent again yet
	undoArmed           // ts is that of the first retransmission
	undoDSACK           // the first ACK proved nothing; D-SACK still may
)

// beginUndo starts to watch a recovery.
func (s *Subflow) beginUndo(by cc.Loss) {
	s.rec.begin().undo = undo{armed: undoWaits, by: by, from: s.snd.una, to: s.snd.nxt}
}

// noteRetransmit counts a retransmission of n numbers and stores the timestamp
// of the first.
func (u *undo) noteRetransmit(ts uint32, n int) {
	if u.armed == undoWaits {
		u.armed, u.ts = undoArmed, ts
	}
	u.again += n
	u.counted = true
}

// detectSpurious looks for the proof in an ACK.
func (s *Subflow) detectSpurious(a *ack) {
	u := &s.rec.undo
	if u.armed == undoOff {
		return
	}
	if s.eifel(a) || s.frtoAck(a) || s.allTwice(a) {
		s.takeBack(a)
	}
}

// eifel is the Eifel detection algorithm (RFC 3522).
//
// Section 3.2, (4): upon "the first acceptable ACK", compare "the value of the
// Timestamp Echo Reply field" with RetransmitTS: if it is smaller, the original
// was received and the retransmission was needless.
func (s *Subflow) eifel(a *ack) bool {
	u := &s.rec.undo
	if !a.advanced || s.rec.phase == phaseOpen || u.armed == undoDSACK {
		return false
	}
	if u.armed == undoWaits {
		return a.wrong // it arrives before it could be sent again
	}
	if !a.repaired {
		return false
	}
	u.armed = undoDSACK
	return s.ts.on && a.seg.Has&wire.OptTimestamps != 0 && a.seg.TSEcr != 0 && int32(a.seg.TSEcr-u.ts) < 0
}

// allTwice reports whether by this ACK all that was sent again in a recovery
// has been reported as received twice.
//
// RFC 2883, Section 4: a duplicate is reported once, so that the reports can be
// counted against what was sent again. That this proves a recovery needless is
// the idea of RFC 3708.
func (s *Subflow) allTwice(a *ack) bool {
	u := &s.rec.undo
	if a.dsack.hi == 0 || !u.counted || a.dsack.lo < u.from || a.dsack.hi > u.to {
		return false
	}
	u.again -= int(a.dsack.hi - a.dsack.lo)
	return u.again == 0
}

// takeBack undoes a recovery, after RFC 4015. The backoff of a needless
// timeout stays until the next measurement.
//
// After a needless timeout one segment goes out in any case: its ACK tells what
// else was lost while nothing was heard, which the timer would tell late.
func (s *Subflow) takeBack(a *ack) {
	s.count.trouble().spurious++
	s.rec.pass = s.rec.undo.by == cc.LossTimeout && a.advanced
	if s.rec.undo.by == cc.LossFast {
		s.adaptThresh(a)
		s.rack.reordered = true
	}
	s.rec.undo = undo{}
	if s.ecn.sends() && a.seg.Flags.Has(wire.ECE) {
		// RFC 4015, Section 3.4: if "the acceptable ACK signals congestion
		// through the ECN-Echo flag [RFC3168]", then "the TCP sender MUST refrain
		// from reversing congestion control state."
	} else {
		a.restored = s.cwnd()
		s.ecn.until = 0
		s.ctl.Undo()
	}
	if s.rec.phase != phaseOpen {
		s.queue.unlose(func(r *record) {
			if s.rack.on {
				s.queue.mark(r, markAgain, 0)
				s.rec.begin().resent.push(resent{r.lo, r.hi, r.nth})
			}
		})
		s.rec.open()
		s.rack.recovered()
	}
}

// limitBurst bounds what may go out at once after the window was restored, as
// much of which may be free. As with a restart it then grows by what is
// acknowledged, as in slow start, up to the controller's window. What the
// reduced window allowed stays allowed.
//
// RFC 4015, Section 3.4: "cwnd is reset to the sum of the current FlightSize and
// the minimum of bytes_acked and IW." What left the network by SACK is no part of
// the flight here.
func (s *Subflow) limitBurst(a *ack) {
	c := max(s.pipe()+min(a.acked, s.cfg.InitialWindow*s.snd.mss), a.restored)
	if float64(c) < s.ctl.State().Cwnd && (s.rec.ceiling == 0 || s.rec.ceiling > c) {
		s.rec.ceiling, s.rec.creeps = c, false
	}
}

// adaptThresh raises dupThresh to the reordering just seen, so that the same
// does not look like a loss again: the distance from what came late to the
// highest SACKed. It falls back to the configured value on a timeout.
func (s *Subflow) adaptThresh(a *ack) {
	top := s.snd.una
	if n := s.queue.ranges.Len(); n > 0 {
		top = relSSN(s.queue.ranges.At(n - 1).Hi)
	}
	seen := max(int(s.rec.dupThresh)+1, int(top-a.prior)/s.snd.mss)
	s.rec.dupThresh = max(s.rec.dupThresh, int32(min(seen, maxDupThresh)))
}

// frto is how far Forward RTO-Recovery has come (RFC 5682).
type frto uint8

const (
	frtoOff   frto = iota
	frtoFirst      // the first segment was sent again
	frtoNew        // its ACK came: new data goes before more retransmissions
)

// beginFRTO starts the algorithm upon a timeout. Where there are timestamps,
// Eifel detection needs one ACK less.
//
// RFC 5682, Section 3.1, (1): "When the retransmission timer expires,
// retransmit the first unacknowledged segment and set SpuriousRecovery to
// FALSE. If the TCP sender is already in RTO recovery AND "recover" is larger
// than or equal to SND.UNA, do not enter step 2 of this algorithm."
func (s *Subflow) beginFRTO() {
	s.rec.frto = frtoOff
	if !s.ts.on && s.snd.sack && s.rec.timeouts == 1 {
		s.rec.frto = frtoFirst
	}
}

// frtoAck takes an ACK after a timeout and reports whether it proves that the
// timeout was needless: it delivers something that was sent before and not
// again since.
func (s *Subflow) frtoAck(a *ack) bool {
	stage := s.rec.frto
	if stage == frtoOff || s.rec.phase != phaseLoss {
		s.rec.frto = frtoOff
		return false
	}
	if a.original && (stage == frtoNew || !a.advanced) {
		s.rec.frto = frtoOff
		return true
	}
	switch {
	case stage == frtoFirst && a.advanced && s.snd.una < s.rec.until:
		s.rec.frto = frtoNew
		s.rec.frtoLeft = 2 * s.snd.mss
	default:
		s.rec.frto = frtoOff
	}
	return false
}

// frtoData returns how many bytes of new data may go before what is marked
// lost.
//
// RFC 5682, Section 3.1, (2b): "transmit up to two new (previously unsent)
// segments". If there are none, recovery goes on as usual.
func (s *Subflow) frtoData() int {
	if s.rec.frto != frtoNew {
		return 0
	}
	return s.rec.frtoLeft
}
