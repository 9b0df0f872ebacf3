package scheduler

import "math/bits"

// Reasons of dems.
const (
	ReasonHead  Reason = "from the head"
	ReasonTail  Reason = "from the tail"
	ReasonAlone Reason = "the other would end later"
)

// dems sends a chunk on two subflows, one from its head, the other from its
// tail backwards, until they meet, so that both end at the same time and only
// once does one wait for the other (Guo et al., MobiCom 2017). With rates b
// and one-way delays d the tail deserves
//
//	S2 = S - b1*(S + b2*(d2-d1))/(b1+b2), nothing if S <= b1*(d2-d1)
//
// of S bytes. After that each repeats what the other has not got acknowledged,
// up to a share of the chunk, in case one is slower than thought.
//
// Reconstruction from the abstract. A chunk is what is unsent when it begins
// and the window allows; the head takes the subflow with the lesser RTT, and
// the two are those with the least RTTs if there are more. What the tail
// deserves is computed anew at each decision, of what is left.
type dems struct {
	end      int64 // of the chunk
	size     int64
	repeated int64 // bytes of the chunk
	cursors  redundantIdle
}

// demsRedundancy is the share of a chunk that may be repeated.
const demsRedundancy = 0.1

func newDEMS() Scheduler { return &dems{} }

func (m *dems) Pick(v *View) Decision {
	if v.Ask == Spare {
		return m.repeat(v)
	}
	set, d, done := v.forFresh()
	if done {
		return d
	}
	set = v.fastest(set, 2)
	head := v.Fastest(set)
	tail := v.Fastest(set &^ (1 << head))
	if v.First >= m.end {
		m.size = v.Unsent
		if v.FlowSize > v.First {
			m.size = min(m.size, v.FlowSize-v.First)
		}
		m.end, m.repeated = v.First+min(m.size, v.SendWindow+max(v.Sent-v.First, 0)), 0
	}
	h, t := &v.Subflows[head], &v.Subflows[tail]
	left := min(v.Run, m.end-v.First)
	if h.Room > 0 {
		return Decision{Send: 1 << head, Bytes: int(min(left, 1<<30)), Reason: ReasonHead}
	}
	if t.Room == 0 {
		return wait(ReasonNoRoom)
	}
	if tailShare(float64(left), h.Rate(), t.Rate(), (h.SRTT/2).Seconds(), (t.SRTT/2).Seconds()) <= 0 {
		return wait(ReasonAlone)
	}
	n := min(int64(min(t.segment(), t.Room)), left)
	return Decision{Send: 1 << tail, Offset: left - n, Bytes: int(n), Reason: ReasonTail}
}

// tailShare returns S2 of size bytes, for rates in bytes/s and delays in
// seconds.
func tailShare(size, b1, b2, d1, d2 float64) float64 {
	if size <= b1*(d2-d1) {
		return 0
	}
	return size - b1*(size+b2*(d2-d1))/(b1+b2)
}

func (m *dems) repeat(v *View) Decision {
	set, _ := v.Eligible()
	budget := int64(demsRedundancy*float64(m.size)) - m.repeated
	if v.Unsent > 0 || budget <= 0 {
		return wait(ReasonNoNeed)
	}
	for free := v.Free(v.fastest(set, 2)); free != 0; free &= free - 1 {
		i := bits.TrailingZeros64(free)
		if from, n := m.cursors.missing(v, i); n > 0 {
			n = min(n, budget, int64(v.Subflows[i].Room))
			m.repeated += n
			return Decision{Send: 1 << i, Again: true, Offset: from - v.Acked, Bytes: int(n), Reason: ReasonCatchUp}
		}
	}
	return wait(ReasonNoNeed)
}
