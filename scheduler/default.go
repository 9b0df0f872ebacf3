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
	ReasonNew      Reason = "a path to get to know"
	ReasonOvertake Reason = "overtakes a slower subflow"
)

// bulk is how many bytes wait to be sent at least where a few that were sent
// already do not matter.
const bulk = 64 << 10

// wholeShare: a super-segment is little beside so many times as much.
const wholeShare = 4

// inOrder is the policy "default". See newDefault.
type inOrder struct {
	head   int64         // Acked, when it was seen first,
	since  time.Duration // and when that was, or when it was repaired
	slow   uint64        // what carried it then
	mended int64         // offset behind what was repaired; 0 = nothing, lately
	model  []pathModel   // of each subflow, for the decision being made
	window float64       // bytes that may be unacknowledged
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
//   - what any path takes at once, if it is all that there is, goes to the fastest
//     whole; of round trips that differ by less than they vary, the first counts;
//   - where all congestion windows together would fill more than the
//     connection's window, it is tight. Then no subflow has more on its way
//     than its path holds, a quarter of that, and what 5 ms bring: the rest
//     would only wait in queues, and be lost there. And of the subflows only those are used
//     that make the whole faster: the best one alone, and in order of their
//     RTTs those with which the rate, the sum of theirs but no more than the
//     window over the time that it takes to turn around, is greater;
//   - when nothing new can be sent, a subflow with room repeats what a slower
//     one carries, if it will deliver it sooner or that one is late. The first
//     hole is filled so even before, when half of the window is in use, and
//     those behind it that have the same cause;
//   - of a path of which nothing but the round trip is known, nobody has to wait
//     for anything: its subflow begins by repeating what others carry;
//   - no subflow sends a window at once when it opens after a halt, which short
//     queues would lose, but little more than its path delivers.
//
// Without the size of the flow, an end is what is unsent in a send buffer that
// is not full.
func newDefault() Scheduler { return &inOrder{head: -1} }

func (o *inOrder) Pick(v *View) Decision {
	if v.Ask == Spare {
		if v.Blocked() {
			o.halt(v)
		}
		return v.overtake()
	}
	set, d, done := v.forFresh()
	if done {
		return d
	}
	if v.Acked == v.Sent {
		if d = o.message(v, set); d.Send != 0 {
			return d
		}
	}
	if d = o.repair(v, set); d.Send != 0 {
		return d
	}
	if d = v.introduce(set); d.Send != 0 {
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
		given := float64(min(int64(n), v.Run))
		queues[i].bytes += given
		queues[i].burst += given
	}
	return d
}

// message decides about what any path takes at once, if it is all that there is and
// nothing is on its way. It is late when its ACK is.
func (o *inOrder) message(v *View, set uint64) Decision {
	best := v.nearest(set)
	s := &v.Subflows[best]
	if v.Unsent > int64(sureSegments*s.segment()) || v.Run < v.Unsent || int64(s.Room) < v.Unsent || s.InFlight > 0 {
		return wait(ReasonNoNeed)
	}
	d := v.leastRTT(1<<best, "")
	d.Until = v.Now + s.rtt() + hostDelay
	q := &o.queues.Sync(v)[best]
	q.bytes, q.burst, q.at = float64(v.Unsent), float64(v.Unsent), v.Now
	return d
}

// nearest returns the subflow of set with the least RTT, or the first one whose RTT
// differs by no more than it varies, and than hosts make it vary: a message and its
// answer had better take the same, which spares ACKs.
func (v *View) nearest(set uint64) int {
	best := v.Fastest(set)
	most := v.Subflows[best].rtt() + leastLead
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if s := &v.Subflows[i]; s.rtt() <= most && s.rtt()-2*s.RTTVar <= v.Subflows[best].rtt() {
			return i
		}
	}
	return best
}

// halt remembers which subflows the window keeps from sending because of what
// others carry. One that carries the head itself opens it by its own ACKs.
func (o *inOrder) halt(v *View) {
	queues := o.queues.Sync(v)
	for i := range queues {
		if v.Carried>>i&1 == 0 {
			queues[i].halted = v.Now
		}
	}
}

// introduce has a subflow that was never given anything, and of whose path
// nothing but the round trip is known, repeat what others carry: if most of it is
// lost in a short queue, or takes long, nobody waits for it.
func (v *View) introduce(set uint64) Decision {
	if v.Unsent < bulk || v.Acked >= v.Sent {
		return wait(ReasonNoNeed)
	}
	for rest := v.Free(set); rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if s := &v.Subflows[i]; s.Reach == 0 && s.InFlight == 0 {
			return Decision{Send: 1 << i, Again: true, Bytes: s.Room, Reason: ReasonNew}
		}
	}
	return wait(ReasonNoNeed)
}

// repair repeats, on the fastest subflow with room that does not carry it, the first
// range that is not acknowledged when it has been that for longer than a round trip
// there and those that carry it are late: sooner or later it would hold up the window.
// So would what else those carry, which may follow at once.
func (o *inOrder) repair(v *View, set uint64) Decision {
	if v.Acked != o.head {
		if o.head = v.Acked; o.mended == 0 {
			o.since = v.Now
		}
	}
	if v.SendWindow > v.Unacked || v.Acked >= v.Sent || v.Holders == nil {
		return wait(ReasonNoNeed)
	}
	holders, run := v.Holders(v.Acked)
	free := v.Free(set)
	if v.Now != o.since {
		free &^= holders
	}
	best := v.Fastest(free)
	switch {
	case best < 0:
		return wait(ReasonNoNeed)
	case v.Now == o.since:
		return o.mend(v, set, best)
	case v.Now-o.since < v.Subflows[best].rtt():
		return wait(ReasonNoNeed)
	}
	if holders == 0 || v.late(holders, &v.Subflows[best], false) > v.Now {
		o.mended = 0
		return wait(ReasonNoNeed)
	}
	o.since, o.slow = v.Now, holders
	return o.again(v, best, v.Acked, run)
}

// mend repeats the next of what those carry whose head was repaired just now, on
// a subflow that delivers more than any, to which it is little.
func (o *inOrder) mend(v *View, set uint64, best int) Decision {
	f := &v.Subflows[best]
	for rest := set; rest != 0; rest &= rest - 1 {
		if v.Subflows[bits.TrailingZeros64(rest)].DeliveryRate > f.DeliveryRate {
			return wait(ReasonNoNeed)
		}
	}
	for n := 0; o.mended > v.Acked && o.mended < v.Sent && n < mostRounds; n++ {
		holders, run := v.Holders(o.mended)
		if run <= 0 {
			break
		}
		if holders != 0 && holders&^o.slow == 0 && holders>>best&1 == 0 && v.late(holders, f, false) <= v.Now {
			return o.again(v, best, o.mended, run)
		}
		o.mended += run
	}
	return wait(ReasonNoNeed)
}

// again repeats up to run bytes at off.
func (o *inOrder) again(v *View, best int, off, run int64) Decision {
	size := min(run, int64(v.Subflows[best].Room))
	o.mended = off + size
	return Decision{Send: 1 << best, Again: true, Offset: off - v.Acked, Bytes: int(size), Reason: ReasonOvertake}
}

// choose decides among those of used that have room.
func (o *inOrder) choose(v *View, used uint64, tight bool) Decision {
	free, until := o.unfilled(v, v.Free(used), tight)
	d := o.place(v, used, free)
	if d.Wait && until > 0 && (d.Until == 0 || until < d.Until) {
		d.Until = until
	}
	return d
}

// place picks a subflow of free, and the place of what it sends.
func (o *inOrder) place(v *View, used, free uint64) Decision {
	best, fastest := v.Fastest(free), v.Fastest(used)
	if best < 0 {
		return wait(ReasonWindow)
	}
	s := &v.Subflows[best]
	grant := o.grant(v, best)
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
	// What costs as much as a super-segment had better be one, if that is little.
	seg := int64(s.segment())
	if whole := int64(s.Whole); whole <= v.Unsent/wholeShare {
		seg = max(seg, whole)
	}
	if gap >= v.Unsent {
		if v.atEnd() {
			return wait(ReasonWait)
		}
		gap = max(v.Unsent-seg, 0)
	}
	if v.First+gap+seg > v.Sent+v.SendWindow {
		return wait(ReasonWindow)
	}
	return Decision{Send: 1 << best, Offset: gap, Bytes: int(min(seg, int64(max(s.Room, 1)))), Reason: ReasonAhead}
}

// atEnd reports whether nothing more seems to be written soon.
func (v *View) atEnd() bool {
	return v.Unacked+v.Unsent < v.SendBuffer-v.SendBuffer/4 || v.FlowSize > 0 && v.Sent+v.Unsent >= v.FlowSize
}

// overtake repeats, on the fastest subflow with room that does not carry it, the
// first range that will arrive sooner that way.
func (v *View) overtake() Decision {
	set, _ := v.Eligible()
	free := v.Free(set)
	first := v.Fastest(free)
	if first < 0 || v.Holders == nil || v.Unsent == 0 && !v.atEnd() && !v.Blocked() || v.Unsent > 0 && !v.Blocked() {
		return wait(ReasonNoNeed)
	}
	d := wait(ReasonNoNeed)
	for off, n := v.Acked, 0; off < v.Sent && n < mostRounds; n++ {
		holders, run := v.Holders(off)
		if run <= 0 {
			break
		}
		best := v.Fastest(free &^ holders)
		if holders != 0 && best >= 0 && (best == first || v.Blocked()) {
			f := &v.Subflows[best]
			late := v.late(holders, f, best == first)
			if best != first { // which has room to repeat it itself
				late += v.Subflows[first].rtt()
			}
			if late <= v.Now {
				return Decision{
					Send: 1 << best, Again: true, Offset: off - v.Acked, Bytes: int(min(run, int64(f.Room))), Reason: ReasonOvertake,
				}
			}
			if d.Until == 0 || late < d.Until {
				d.Until = late
			}
		}
		off += run
	}
	return d
}

// late returns when all of holders are late with what they carry, 0 if they are
// already: f would be sooner by more than what is chance, or an ACK of the oldest
// that they carry should have come. What is being recovered is late, too, unless f has better to do and that
// is faster.
func (v *View) late(holders uint64, f *Subflow, idle bool) (at time.Duration) {
	for ; holders != 0; holders &= holders - 1 {
		s := &v.Subflows[bits.TrailingZeros64(holders)]
		if s.Stale || s.Recovering && (idle || !s.faster(f)) {
			continue
		}
		if due := s.OldestSend + s.rtt(); due-v.Now <= f.rtt()+leastLead {
			at = max(at, due+max(min(max(s.rtt()/4, 4*s.RTTVar), f.rtt()), hostDelay))
		}
	}
	return at
}
