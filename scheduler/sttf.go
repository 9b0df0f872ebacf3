package scheduler

import (
	"math/bits"
	"time"
)

// Reasons of sttf.
const (
	ReasonAhead Reason = "what comes later"
	ReasonWait  Reason = "faster subflows take all"
)

// sttf sends each segment of the queue where its transfer ends first (Hurtig
// et al., ToN 2019; mptcp_sttf.c). It goes through the queue and gives out
// segments to the subflows, full or not, counting for each the windows that
// must be acknowledged before, which double in slow start; of those that fall
// to a subflow with room, the first one is sent. What faster but full subflows
// will send stays in the queue and is looked at again the next time, so that
// nothing is stuck.
//
// What falls to each is not counted segment by segment: before the first
// segment of subflow s lie those that each faster one delivers in less time
// than s takes for one.
func sttf(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	best := v.Fastest(v.Free(set))
	s := &v.Subflows[best]
	ahead := v.ahead(set, best, s.SRTT/2)
	switch {
	case ahead == 0:
		return v.leastRTT(set, "")
	case ahead >= v.Unsent:
		return wait(ReasonWait)
	}
	d = v.one(best, ReasonAhead)
	d.Offset = ahead
	return d
}

func newSTTF() Scheduler { return Func(sttf) }

// ahead returns how many bytes the subflows of set that are faster than
// Subflows[than] deliver within limit.
func (v *View) ahead(set uint64, than int, limit time.Duration) int64 {
	sum := int64(0)
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if f := &v.Subflows[i]; i != than && f.faster(&v.Subflows[than]) {
			sum += f.delivers(limit)
		}
	}
	return sum
}

// mostRounds bounds how far growth is followed.
const mostRounds = 40

// delivers returns how many bytes beyond those in flight and queued s delivers
// within limit: what fits its window now arrives after half an RTT, and a
// window more after each RTT, which doubles below Ssthresh and grows by a
// segment above.
func (s *Subflow) delivers(limit time.Duration) int64 {
	at := s.SRTT / 2
	if at <= 0 || limit <= at {
		return 0
	}
	w := s.Cwnd
	sum := int64(max(w-s.InFlight, 0))
	for n := 0; n < mostRounds; n++ {
		if at += s.SRTT; at >= limit {
			return max(sum-int64(s.Queued), 0)
		}
		if w < s.Ssthresh {
			w = min(2*w, max(s.Ssthresh, w))
		} else {
			w += s.MSS
		}
		sum += int64(w)
	}
	return max(sum+int64((limit-at)/s.SRTT)*int64(w)-int64(s.Queued), 0)
}
