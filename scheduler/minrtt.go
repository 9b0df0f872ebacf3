package scheduler

import (
	"math/bits"
	"time"
)

// Reasons of minrtt.
const (
	ReasonMinRTT        Reason = "least rtt"
	ReasonOpportunistic Reason = "head of a blocked window"
)

// LeastRTT sends on the subflow with the least smoothed RTT among those that
// have room: the policy "minrtt-plain", and what a policy may fall back to.
//
// A decision grants as much as fits. Nothing that the choice depends on
// changes while a subflow has room left, so deciding segment by segment would
// choose the same and only cost more and cut data into smaller mappings.
//
// When every eligible subflow is full it waits without a time: room comes
// only with an ACK, a window update or a pacing release of some subflow, and
// other subflows become eligible only when one joins, fails or changes its
// priority. All of these are events after which Pick is called again.
func LeastRTT(v *View) Decision {
	if v.Ask == Spare {
		return wait(ReasonNoNeed)
	}
	set, why := v.Eligible()
	return v.leastRTT(set, why)
}

func (v *View) leastRTT(set uint64, why Reason) Decision {
	if set == 0 {
		return wait(why)
	}
	best := v.Fastest(v.Free(set))
	if best < 0 {
		return wait(ReasonNoRoom)
	}
	if why == "" {
		why = ReasonMinRTT
		if v.Ask == Lost {
			why = ReasonLost
		}
	}
	return Decision{Send: 1 << best, Reason: why}
}

func newMinRTTPlain() Scheduler { return Func(LeastRTT) }

// minRTT is LeastRTT with the two mechanisms of Raiciu et al. (NSDI 2012)
// against a shared window that a slow subflow blocks.
type minRTT struct{ unblock unblock }

func newMinRTT() Scheduler { return &minRTT{} }

func (m *minRTT) Pick(v *View) Decision {
	if v.Ask == Spare {
		return m.unblock.pick(v)
	}
	return LeastRTT(v)
}

// unblock acts when the window or the send buffer keeps new data back while a
// subflow f has room (Linux mptcp_sched.c, mptcp_rcv_buf_optimization). Of
// the first byte that is not DATA_ACKed,
//
//   - penalisation halves the window of those that carry it and are slower
//     than f, once in a round trip of f;
//   - opportunistic retransmission sends its segment on f as well, if f does
//     not carry it and those that do are much slower, or have little in flight
//     to learn of a loss from.
type unblock struct {
	last PerSubflow[time.Duration] // when each, as f, last penalised; 0 = never
}

const (
	muchSlower  = 4 // times the RTT
	smallWindow = 4 // segments
)

// Blocked reports whether new data waits for the peer's window or, unless
// there is none to be written, for the send buffer: less than a segment has
// room there.
func (v *View) Blocked() bool {
	most := int64(1)
	for i := range v.Subflows {
		most = max(most, int64(v.Subflows[i].MSS))
	}
	if v.SendWindow < min(v.Unsent, most) {
		return true
	}
	return v.Unsent < most && v.Unacked+v.Unsent+most > v.SendBuffer
}

func (u *unblock) pick(v *View) Decision {
	set, _ := v.Eligible()
	fast := v.Fastest(v.Free(set))
	if fast < 0 || !v.Blocked() || v.Carried == 0 {
		return wait(ReasonNoNeed)
	}
	f, last := &v.Subflows[fast], u.last.Sync(v)
	d := wait(ReasonNoNeed)
	punish := last[fast] == 0 || v.Now-last[fast] >= f.SRTT
	again := v.Carried>>fast&1 == 0
	small, allSlower := false, true
	for rest := v.Carried; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		s := &v.Subflows[i]
		if punish && f.faster(s) && !s.Recovering && !s.Stale {
			d.Penalise |= 1 << i
		}
		small = small || s.Cwnd <= smallWindow*s.MSS
		allSlower = allSlower && s.SRTT > muchSlower*f.SRTT
	}
	if d.Penalise != 0 {
		last[fast] = v.Now
	}
	if again && (small || allSlower) {
		d.Send, d.Again, d.Wait = 1<<fast, true, false
		d.Bytes, d.Reason = f.segment(), ReasonOpportunistic
	}
	return d
}
