package scheduler

// ReasonArrival says that data arrives first over the subflow.
const ReasonArrival Reason = "least arrival time"

// otias sends each segment where it is thought to arrive first (Yang et al.,
// WAINA 2014; mptcp_otias.c): after half an RTT, and a whole one more for each
// window that must be acknowledged before. A full subflow may be that one: the
// segment is then queued there and can't be taken back, whatever happens.
func otias(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	taking := uint64(0)
	for i := range v.Subflows {
		if set>>i&1 != 0 && max(v.Subflows[i].Room, v.Subflows[i].QueueRoom) > 0 {
			taking |= 1 << i
		}
	}
	best, _ := v.least(taking, func(i int) float64 {
		return v.Subflows[i].arrival(1).Seconds()
	})
	d = Decision{Send: 1 << best, Bytes: v.Subflows[best].segment(), Reason: ReasonArrival}
	d.Queue = v.Subflows[best].Room == 0
	return d
}

func newOTIAS() Scheduler { return Func(otias) }
