package scheduler

import (
	"math/bits"
	"time"
)

// Default is the scheduler of a connection that names none.
const Default = "default"

// Reasons of default.
const (
	ReasonWindow   Reason = "the window is worth more to faster subflows"
	ReasonOvertake Reason = "overtakes a slower subflow"
)

// inOrder is the policy "default". See newDefault.
type inOrder struct {
	// Of each subflow, for the decision being made.
	estimates []estimate
}

// estimate is what one subflow is reckoned with.
type estimate struct{ rtt, rate float64 }

// newDefault makes the default. It is ours, and the default because on 40
// environments of the experiment "schedulers" (see package bench), on which it
// was also tuned, no other policy of those compared (minrtt, ecf and stms among
// them) lost less often to the best subflow alone or gained more over it.
// Schedulers lose when a slow subflow holds up a window that the fast one could
// use. Against that
//
//   - the fastest subflow that has room sends from the head of the queue. A
//     slower one sends what lies as far behind as the faster ones will have
//     delivered when it arrives, so that it arrives in order and is waited for
//     by nobody, as in STMS. If that is all there is, it sends nothing, as in
//     ECF;
//   - of the subflows in order of their RTTs, so many are used at all that the
//     rate they can have together is greatest: the sum of theirs, but no more
//     than the window over the greatest RTT among them. With a window that is
//     large enough these are all;
//   - when nothing new can be sent, a subflow with room repeats what a slower
//     one carries, if it will deliver it sooner.
//
// A forward delay is the RTT less half of the
// least RTT: queues are assumed on the way of the data. Without the size of
// the flow, an end is what is unsent in a send buffer that is not full.
func newDefault() Scheduler { return &inOrder{} }

func (o *inOrder) Pick(v *View) Decision {
	if v.Ask == Spare {
		return v.overtake()
	}
	set, d, done := v.forFresh()
	if done {
		return d
	}
	used := o.worthwhile(v, set)
	best, fastest := v.Fastest(v.Free(used)), v.Fastest(used)
	if best < 0 {
		return wait(ReasonWindow)
	}
	if best == fastest {
		return v.leastRTT(1<<best, "")
	}
	s := &v.Subflows[best]
	gap := v.inTime(used, best)
	gap -= gap % int64(v.Subflows[fastest].segment()) // leave whole segments
	if gap == 0 {
		return v.leastRTT(1<<best, "")
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
	d = v.one(best, ReasonAhead)
	d.Offset = gap
	return d
}

// atEnd reports whether nothing more seems to be written soon.
func (v *View) atEnd() bool {
	return v.Unacked+v.Unsent < v.SendBuffer-v.SendBuffer/4 || v.FlowSize > 0 && v.Sent+v.Unsent >= v.FlowSize
}

// roundTrip returns the RTT to reckon with: the smoothed one, which holds the
// queue that the subflow's own data makes, or the least one if it has none.
func (s *Subflow) roundTrip() time.Duration {
	if s.InFlight == 0 && s.MinRTT > 0 {
		return s.MinRTT
	}
	return s.rtt()
}

// forward returns the delay to the peer.
func (s *Subflow) forward() time.Duration { return s.roundTrip() - min(s.MinRTT, s.roundTrip())/2 }

// capacity estimates the bytes/s that a subflow could deliver: what it did, or
// what its window allows while that is in use, or nothing is known.
func (s *Subflow) capacity() float64 {
	if s.DeliveryRate > 0 && s.InFlight < s.Cwnd-s.Cwnd/4 {
		return s.DeliveryRate
	}
	return max(float64(s.Cwnd)/s.roundTrip().Seconds(), s.DeliveryRate)
}

// windowSlack is how much more window several subflows need together than the
// sum of their rates over the greatest RTT, since data never arrives quite in
// order.
const windowSlack = 1.1

// worthwhile returns those of set that are worth using with the window that
// there is: the fastest few, or one alone.
func (o *inOrder) worthwhile(v *View, set uint64) uint64 {
	window := float64(min(v.Unacked+v.SendWindow, max(v.BufferMax, v.SendBuffer)))
	for len(o.estimates) < len(v.Subflows) {
		o.estimates = append(o.estimates, estimate{})
	}
	est := o.estimates
	sum, longest := 0.0, 0.0
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		est[i].rtt = float64(v.Subflows[i].roundTrip()) / float64(time.Second)
		est[i].rate = v.Subflows[i].capacity()
		sum, longest = sum+est[i].rate, max(longest, est[i].rtt)
	}
	if sum*longest*windowSlack <= window {
		return set
	}
	used, best := uint64(0), uint64(0)
	most := -1.0
	sum = 0
	for rest := set; rest != 0; {
		next := -1
		for r := rest; r != 0; r &= r - 1 {
			if i := bits.TrailingZeros64(r); next < 0 || est[i].rtt < est[next].rtt {
				next = i
			}
		}
		rest &^= 1 << next
		used |= 1 << next
		alone, limit := est[next].rate, window/est[next].rtt
		sum += alone
		if together := min(sum, limit/windowSlack); together >= most {
			best, most = used, together
		}
		if single := min(alone, limit); single > most {
			best, most = 1<<next, single
		}
	}
	return best
}

// inTime returns how many bytes those of set that are faster than
// Subflows[than] will have delivered, beyond what they have in flight, when a
// segment sent there now arrives.
func (v *View) inTime(set uint64, than int) int64 {
	limit := v.Subflows[than].forward()
	sum := 0.0
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		f := &v.Subflows[i]
		left := (limit - f.forward()).Seconds()
		if i == than || left <= 0 {
			continue
		}
		rtt, w := f.roundTrip().Seconds(), float64(f.Cwnd)
		for n := 0; left > 0 && n < mostRounds; n++ {
			sum += w * min(left/rtt, 1)
			left -= rtt
			if w < float64(f.Ssthresh) {
				w = min(2*w, float64(f.Ssthresh))
			}
		}
	}
	return int64(sum)
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
