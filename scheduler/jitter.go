package scheduler

import "time"

// jitterAware sends where data is estimated to arrive first, the variation of
// the RTT counted as delay: SRTT/2 + queued/rate + RTTVar. If a subflow that is
// full would be better by more than the time until it has room again, it
// waits.
//
// Reconstruction of Chan et al. (WCNC 2016) from its abstract.
func jitterAware(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	arrival := func(i int) float64 {
		s := &v.Subflows[i]
		return (s.rtt()/2 + s.RTTVar).Seconds() + float64(s.Queued)/float64(max(s.Cwnd, 1))*s.rtt().Seconds()
	}
	best, a := v.least(v.Free(set), arrival)
	fast, b := v.least(set, arrival)
	if fast != best && a > b+v.untilRoom(fast).Seconds() {
		return wait(ReasonFastSooner)
	}
	return Decision{Send: 1 << best, Bytes: v.Subflows[best].segment(), Reason: ReasonArrival}
}

func newJitterAware() Scheduler { return Func(jitterAware) }

// untilRoom estimates when the next ACK frees room on a full subflow: an RTT
// after its oldest byte was sent, at most an RTT from now.
func (v *View) untilRoom(i int) time.Duration {
	s := &v.Subflows[i]
	if s.OldestSend <= 0 {
		return 0
	}
	return min(max(s.OldestSend+s.SRTT-v.Now, 0), s.SRTT)
}
