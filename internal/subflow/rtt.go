package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// granularity is G of RFC 6298, the resolution of the timestamp clock.
const granularity = time.Millisecond

// estimator computes SRTT, RTTVAR and RTO (RFC 6298).
type estimator struct {
	srtt, rttvar time.Duration // 0 before the first measurement
	min          time.Duration // least measurement; 0 before the first
	last         time.Duration // latest measurement; 0 before the first
	lastAt       mono.Time     // when it was taken
	rto          time.Duration // without backoff
	shift        uint8         // backoff: doublings of rto
	knobs        *Knobs        // have the bounds of RTO
}

// sample takes a measurement. perRTT is how many are expected a round trip.
func (e *estimator) sample(r time.Duration, perRTT int) {
	r = max(r, 1)
	if e.min == 0 || r < e.min {
		e.min = r
	}
	if e.srtt == 0 {
		// RFC 6298, Section 2.2: "SRTT <- R, RTTVAR <- R/2".
		e.srtt, e.rttvar = r, r/2
	} else {
		// RFC 6298, Section 2.3, with alpha = 1/8 and beta = 1/4, spread over
		// the measurements of a round trip as RFC 7323, Appendix G suggests,
		// so that the estimator's memory does not shrink as windows grow.
		n := time.Duration(max(perRTT, 1))
		e.rttvar += ((e.srtt - r).Abs() - e.rttvar) / (4 * n)
		e.srtt += (r - e.srtt) / (8 * n)
	}
	// RFC 6298, Section 2.3: "RTO <- SRTT + max (G, K*RTTVAR)".
	e.rto = min(max(e.srtt+max(granularity, 4*e.rttvar), e.knobs.MinRTO), e.knobs.MaxRTO)
	// Section 5: a new measurement ends the backoff (Karn's algorithm).
	e.shift = 0
}

// backOff doubles the timeout.
//
// RFC 6298, Section 5.5: "The host MUST set RTO <- RTO * 2 ("back off the
// timer")."
func (e *estimator) backOff() {
	if e.timeout() < e.knobs.MaxRTO {
		e.shift++
	}
}

// timeout returns RTO with backoff.
func (e *estimator) timeout() time.Duration { return min(e.rto<<e.shift, e.knobs.MaxRTO) }

// timestamps is the state of RFC 7323's option.
type timestamps struct {
	on       bool
	recent   uint32    // TS.Recent
	recentAt mono.Time // when it was set
	based    bool      // base is set
	base     int32     // least difference of the peer's clock and the one it echoed
	last     int64     // tick of the last segment sent
	least    int64     // and the least of the next
}

// recentLife is how long TS.Recent may be relied on.
//
// RFC 7323, Section 5.5: PAWS must include "a mechanism to 'invalidate' the
// TS.Recent value when a connection is idle for more than 24 days", after
// which the peer's clock may have wrapped its sign.
const recentLife = 24 * 24 * time.Hour

// tsTick is our timestamp clock: it ticks once a millisecond.
func tsTick(now mono.Time) int64 { return int64(now) / int64(time.Millisecond) }

// tsVal returns the TSval that belongs to an instant.
func (s *Subflow) tsVal(at mono.Time) uint32 { return uint32(tsTick(at)) + s.tsOffset }

// stamp returns the TSval of a segment sent at now.
func (s *Subflow) stamp(now mono.Time) uint32 {
	s.ts.last = max(tsTick(now), s.ts.least)
	return uint32(s.ts.last) + s.tsOffset
}

// tsAge returns how long ago a TSval of ours was sent, at least 1 ns and
// rounded up to the clock's resolution if it is younger than that.
func (s *Subflow) tsAge(now mono.Time, val uint32) time.Duration {
	age := max(time.Duration(int32(s.tsVal(now)-val)), 1) * time.Millisecond
	return min(age, now.Sub(s.snd.synAt)+granularity) // not older than the connection
}

// pawsFails reports whether a segment is an old duplicate by its timestamp.
//
// RFC 7323, Section 5.3, R1: "If there is a Timestamps option in the arriving
// segment, SEG.TSval < TS.Recent, TS.Recent is valid [...], and if the RST bit
// is not set, then treat the arriving segment as not acceptable".
func (s *Subflow) pawsFails(now mono.Time, seg *wire.Segment) bool {
	return s.ts.on && seg.Has&wire.OptTimestamps != 0 && !seg.Flags.Has(wire.RST) &&
		int32(seg.TSVal-s.ts.recent) < 0 && now.Sub(s.ts.recentAt) <= recentLife
}

// noteTimestamp keeps the timestamp to be echoed.
//
// RFC 7323, Section 4.3: "If: SEG.TSval >= TS.Recent and SEG.SEQ <=
// Last.ACK.sent then SEG.TSval is copied to TS.Recent; otherwise, it is
// ignored."
func (s *Subflow) noteTimestamp(now mono.Time, seg *wire.Segment, num relSSN) {
	if !s.ts.on || seg.Has&wire.OptTimestamps == 0 || num > s.rcv.lastAck {
		return
	}
	if int32(seg.TSVal-s.ts.recent) >= 0 || now.Sub(s.ts.recentAt) > recentLife {
		s.ts.recent, s.ts.recentAt = seg.TSVal, now
	}
}

// sampleRTT takes the measurement that an ACK gives, if any.
//
// RFC 6298, Section 3: "RTT samples MUST NOT be made using segments that were
// retransmitted (and thus for which it is ambiguous whether the reply was for
// the first instance of the packet or a later instance)." Timestamps resolve
// the ambiguity: they serve where all that an ACK covers was sent twice.
// Deviation: where a segment was sent once its own time of sending is used,
// which is finer than the timestamp clock; but not when the same ACK covers a
// retransmission, for the segment may have waited behind that hole.
func (s *Subflow) sampleRTT(a *ack) {
	switch {
	case a.sentAt.Set() && !a.repaired:
		a.rtt = a.now.Sub(a.sentAt)
	case a.advanced && s.ts.on && a.seg.Has&wire.OptTimestamps != 0 && int32(a.seg.TSEcr-s.tsVal(a.newestAt)) >= 0:
		// RFC 7323, Section 4.1: "only if the segment advances the left edge of
		// the send window". An echo from before the retransmission
		// may belong to an ACK that was lost, and would measure the timeout.
		a.rtt = s.tsAge(a.now, a.seg.TSEcr)
	default:
		return
	}
	a.rtt = max(a.rtt, 1)
	s.rack.noteRTT(a.now, a.rtt)
	s.rtt.last, s.rtt.lastAt = a.rtt, a.now
	// Every second segment is acknowledged, and each ACK gives a sample.
	s.rtt.sample(a.rtt, (s.queue.total/s.snd.mss+1)/2)
}
