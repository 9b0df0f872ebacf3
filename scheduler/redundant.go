package scheduler

import "math/bits"

// Reasons of the redundant policies.
const (
	ReasonCatchUp   Reason = "not yet sent here"
	ReasonRedundant Reason = "on all with room"
)

// cursors remember, for each subflow, up to where it was given the stream.
type cursors struct{ at PerSubflow[int64] }

// sync brings the cursors up to date. What is DATA_ACKed needs no sending, so
// that a subflow that lags jumps ahead.
func (c *cursors) sync(v *View) []int64 {
	at := c.at.Sync(v)
	for i := range at {
		at[i] = max(at[i], v.Subflows[i].Reach, v.Acked)
	}
	return at
}

// repeat sends on subflow i what it was not given.
func (v *View) repeat(i int, from int64, why Reason) Decision {
	return Decision{Send: 1 << i, Again: true, Offset: from - v.Acked, Bytes: int(min(v.Sent-from, 1<<30)), Reason: why}
}

// redundant sends everything on every subflow that is no backup (ReMP;
// Linux mptcp_redundant.c): each has a cursor over the bytes that are not
// DATA_ACKed and goes on from there when it has room; the one that is ahead
// takes new bytes. The connection is as fast as its best subflow and loses
// what all of them lose.
type redundant struct{ cursors cursors }

func newRedundant() Scheduler { return &redundant{} }

func (r *redundant) Pick(v *View) Decision {
	set, why := v.Eligible()
	if v.Ask == Lost || set == 0 {
		return v.leastRTT(set, why)
	}
	at := r.cursors.sync(v)
	best := v.Fastest(v.Free(set))
	switch {
	case best < 0:
		return wait(ReasonNoRoom)
	case at[best] < v.Sent && set&(set-1) != 0:
		return v.repeat(best, at[best], ReasonCatchUp)
	case v.Ask == Fresh:
		return v.leastRTT(1<<best, why)
	}
	for free := v.Free(set); free != 0; free &= free - 1 {
		if i := bits.TrailingZeros64(free); at[i] < v.Sent {
			return v.repeat(i, at[i], ReasonCatchUp)
		}
	}
	return wait(ReasonNoNeed)
}

// opportunisticRedundant sends new bytes on every subflow that has room at
// that moment, and never again (the policy "opportunistic redundant" of
// ProgMP).
func opportunisticRedundant(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	free := v.Free(set)
	_, room := v.least(free, func(i int) float64 { return float64(v.Subflows[i].Room) })
	return Decision{Send: free, Bytes: int(room), Reason: ReasonRedundant}
}

func newOpportunisticRedundant() Scheduler { return Func(opportunisticRedundant) }

// redundantIdle sends new bytes as minrtt-plain does. When there are none, it
// uses the room of each subflow to repeat the oldest bytes that it was not
// given (the policy "redundant if no Q" of ProgMP).
type redundantIdle struct{ cursors cursors }

func newRedundantIdle() Scheduler { return &redundantIdle{} }

func (r *redundantIdle) Pick(v *View) Decision {
	if v.Ask != Spare || v.Unsent > 0 {
		return LeastRTT(v)
	}
	set, _ := v.Eligible()
	for free := v.Free(set); free != 0; free &= free - 1 {
		i := bits.TrailingZeros64(free)
		if from, n := r.missing(v, i); n > 0 {
			return Decision{Send: 1 << i, Again: true, Offset: from - v.Acked, Bytes: int(n), Reason: ReasonCatchUp}
		}
	}
	return wait(ReasonNoNeed)
}

// missing returns the first range that subflow i was not given. The cursor
// passes what it carries already.
func (r *redundantIdle) missing(v *View, i int) (from, n int64) {
	if v.Holders == nil {
		return v.Acked, v.Unacked
	}
	at := r.cursors.at.Sync(v)
	at[i] = max(at[i], v.Acked)
	for at[i] < v.Sent {
		set, n := v.Holders(at[i])
		if n <= 0 {
			return 0, 0
		}
		if set != 0 && set>>i&1 == 0 {
			return at[i], n
		}
		at[i] += n
	}
	return 0, 0
}
