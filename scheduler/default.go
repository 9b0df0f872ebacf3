package scheduler

import "math/bits"

// Default is the scheduler of a connection that names none.
const Default = "default"

// Reasons of default.
const (
	ReasonWindow   Reason = "the window is worth more to faster subflows"
	ReasonOvertake Reason = "overtakes a slower subflow"
)

// inOrder is the policy "default". See newDefault.
type inOrder struct {
	model  []pathModel // of each subflow, for the decision being made
	queues PerSubflow[pathQueue]
}

// newDefault makes the default. It is ours, and the default because in random
// environments (drawn as for the experiment "schedulers" of package bench, other
// ones than those that it was tuned on) no other policy compared gained more
// over the best subflow alone on average. Schedulers lose when a slow subflow
// holds up a window that the fast one could use. Against that
//
//   - the fastest subflow that has room sends from the head of the queue. A
//     slower one sends what lies as far behind as the faster ones will have
//     delivered when it arrives, so that it arrives in order and is waited for
//     by nobody, as in STMS. If that is all there is, it sends nothing, as in
//     ECF;
//   - where all congestion windows together would fill more than the
//     connection's window, it is tight. Then no subflow has more on its way
//     than its path holds, a quarter of that, and what 5 ms bring: the rest
//     would only wait in queues, and be lost there. And of the subflows only those are used
//     that make the whole faster: the best one alone, and in order of their
//     RTTs those with which the rate, the sum of theirs but no more than the
//     window over the time that it takes to turn around, is greater;
//   - when nothing new can be sent, a subflow with room repeats what a slower
//     one carries, if it will deliver it sooner.
//
// Without the size of the flow, an end is what is unsent in a send buffer that
// is not full.
func newDefault() Scheduler { return &inOrder{} }

func (o *inOrder) Pick(v *View) Decision {
	if v.Ask == Spare {
		return v.overtake()
	}
	set, d, done := v.forFresh()
	if done {
		return d
	}
	queues := o.queues.Sync(v)
	used, tight := o.worthwhile(v, set, queues)
	if d = o.choose(v, used, tight); d.Send != 0 {
		i := bits.TrailingZeros64(d.Send)
		n := v.Subflows[i].Room
		if d.Bytes > 0 {
			n = min(n, d.Bytes)
		}
		queues[i].bytes += float64(min(int64(n), v.Run))
	}
	return d
}

// choose picks a subflow of used that has room, and the place of what it sends.
func (o *inOrder) choose(v *View, used uint64, tight bool) Decision {
	free, grant := v.Free(used), 0
	if tight {
		free = o.unfilled(v, free)
	}
	best, fastest := v.Fastest(free), v.Fastest(used)
	if best < 0 {
		return wait(ReasonWindow)
	}
	s := &v.Subflows[best]
	if tight {
		grant = o.space(v, best)
	}
	gap := int64(0)
	if best != fastest {
		gap = o.inTime(v, used, best)
		// On multiples of a segment no odd pieces are left between.
		gap -= (v.First + gap) % int64(v.Subflows[fastest].segment())
	}
	if gap <= 0 {
		d := v.leastRTT(1<<best, "")
		d.Bytes = grant
		return d
	}
	seg := int64(s.segment())
	if gap >= v.Unsent {
		if v.atEnd() {
			return wait(ReasonWait)
		}
		gap = max(v.Unsent-seg, 0)
	}
	if v.First+gap+seg > v.Sent+v.SendWindow {
		return wait(ReasonWindow)
	}
	d := v.one(best, ReasonAhead)
	d.Offset = gap
	return d
}

// atEnd reports whether nothing more seems to be written soon.
func (v *View) atEnd() bool {
	return v.Unacked+v.Unsent < v.SendBuffer-v.SendBuffer/4 || v.FlowSize > 0 && v.Sent+v.Unsent >= v.FlowSize
}

// overtake repeats, on the fastest subflow with room, the first range that
// only slower ones carry and that will arrive sooner that way.
func (v *View) overtake() Decision {
	set, _ := v.Eligible()
	best := v.Fastest(v.Free(set))
	if best < 0 || v.Holders == nil || v.Unsent == 0 && !v.atEnd() && !v.Blocked() || v.Unsent > 0 && !v.Blocked() {
		return wait(ReasonNoNeed)
	}
	f := &v.Subflows[best]
	for off, n := v.Acked, 0; off < v.Sent && n < mostRounds; n++ {
		holders, run := v.Holders(off)
		if run <= 0 {
			break
		}
		if holders != 0 && holders>>best&1 == 0 && v.overdue(holders, f) {
			return Decision{
				Send: 1 << best, Again: true, Offset: off - v.Acked, Bytes: int(min(run, int64(f.Room))), Reason: ReasonOvertake,
			}
		}
		off += run
	}
	return wait(ReasonNoNeed)
}

// overdue reports whether all of holders will take longer to deliver what they
// carry than f would.
func (v *View) overdue(holders uint64, f *Subflow) bool {
	for ; holders != 0; holders &= holders - 1 {
		s := &v.Subflows[bits.TrailingZeros64(holders)]
		if s.Stale || s.Recovering {
			continue
		}
		if s.OldestSend+s.rtt()-v.Now <= f.rtt() {
			return false
		}
	}
	return true
}
