package scheduler

import "math/bits"

// ReasonMinRTT says that the subflow has the least smoothed RTT.
const ReasonMinRTT Reason = "least rtt"

// minRTT sends on the subflow with the least smoothed RTT among those that
// have room, the default of Raiciu et al. (NSDI 2012), without opportunistic
// retransmission and penalisation.
//
// A decision grants as much as fits. Nothing that the choice depends on
// changes while a subflow has room left, so deciding segment by segment would
// choose the same and only cost more and cut data into smaller mappings.
//
// When every eligible subflow is full it waits without a time: room comes
// only with an ACK, a window update or a pacing release of some subflow, and
// other subflows become eligible only when one joins, fails or changes its
// priority. All of these are events after which Pick is called again.
type minRTT struct{}

func newMinRTT() Scheduler { return minRTT{} }

func (minRTT) Pick(v *View) Decision {
	set, why := v.eligible()
	if set == 0 {
		return wait(why)
	}
	best := -1
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if v.Subflows[i].Room > 0 && (best < 0 || v.Subflows[i].faster(&v.Subflows[best])) {
			best = i
		}
	}
	if best < 0 {
		return wait(ReasonNoRoom)
	}
	if why == "" {
		why = ReasonMinRTT
	}
	return Decision{Send: 1 << best, Reason: why}
}

// faster reports whether s has the lesser smoothed RTT. One that is not known
// yet is greater than any, and equal ones keep the order of establishment.
func (s *Subflow) faster(o *Subflow) bool {
	return s.SRTT > 0 && (o.SRTT == 0 || s.SRTT < o.SRTT)
}
