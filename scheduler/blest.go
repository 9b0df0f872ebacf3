package scheduler

import "time"

// Reasons of blest.
const (
	ReasonWouldBlock Reason = "the window would block"
	ReasonFits       Reason = "the window suffices"
)

// blest avoids to block the window (Ferlin et al., IFIP Networking 2016;
// Linux mptcp_blest.c): while a slow subflow s delivers a segment, the fastest
// one, f, could send for several of its round trips. If the window has no
// space for that beside what s has in flight, it would be blocked by then, and
// it is better to leave s idle and wait for f. What would fit is multiplied by
// lambda, which grows when that was not enough and shrinks otherwise.
//
// The window is the smaller one of what the peer offers and what the send
// buffer holds; the kernel looks at the former only.
type blest struct {
	unblock unblock
	lambda  float64
	blocked bool          // the window has blocked since lambda was last changed
	changed time.Duration // when it was
	rtts    PerSubflow[rttRange]
}

// rttRange is between which values the smoothed RTT has been.
type rttRange struct{ least, most time.Duration }

const (
	leastLambda = 1.0
	startLambda = 1.2
	mostLambda  = 1.3
	lambdaUp    = 0.04
	lambdaDown  = 0.01
	// mostDoublings bounds the exponent of a window in slow start.
	mostDoublings = 16
)

func newBLEST() Scheduler { return &blest{lambda: startLambda} }

func (b *blest) Pick(v *View) Decision {
	rtts := b.rtts.Sync(v)
	for i := range rtts {
		rtts[i].take(&v.Subflows[i])
	}
	if v.Ask == Spare {
		d := b.unblock.pick(v)
		b.blocked = b.blocked || d.Send != 0
		return d
	}
	set, d, done := v.forFresh()
	if done {
		return d
	}
	fast, slow := v.Fastest(set), v.Fastest(v.Free(set))
	if fast == slow {
		return v.leastRTT(set, "")
	}
	b.adapt(v, &v.Subflows[slow])
	s := &v.Subflows[slow]
	space := min(v.Unacked+v.SendWindow, v.SendBuffer) - int64(s.InFlight+s.segment())
	if b.ahead(&v.Subflows[fast], s, rtts[fast], rtts[slow]) > float64(space) {
		return wait(ReasonWouldBlock)
	}
	return v.one(slow, ReasonFits)
}

// take notes a smoothed RTT. After a loss the range begins anew.
func (r *rttRange) take(s *Subflow) {
	if s.SRTT <= 0 {
		return
	}
	if r.least == 0 || s.Recovering {
		*r = rttRange{s.SRTT, s.SRTT}
	}
	r.least, r.most = min(r.least, s.SRTT), max(r.most, s.SRTT)
}

// linger returns how long a segment given to s stays: between its least and
// its greatest RTT according to how full its window is.
func (r rttRange) linger(s *Subflow) time.Duration {
	full := min(float64(s.InFlight+s.segment())/float64(max(s.Cwnd, 1)), 1)
	return max(s.SRTT, r.least+time.Duration(float64(r.most-r.least)*full))
}

// ahead returns how many bytes f could send while s delivers one segment,
// times lambda.
func (b *blest) ahead(f, s *Subflow, rf, rs rttRange) float64 {
	mean := (rf.least + rf.most) / 2
	if mean <= 0 {
		return 0
	}
	rounds := int(rs.linger(s)/mean) + 1
	mss := f.segment()
	segs := 0
	if f.Cwnd < f.Ssthresh {
		segs = f.Cwnd / mss * (1<<min(rounds, mostDoublings) - 1)
	} else {
		segs = rounds * (max(f.Cwnd/mss, f.Ssthresh/mss+1) + (rounds-1)/2)
	}
	return b.lambda * float64(segs) * float64(mss)
}

// adapt changes lambda, at most once in the least RTT of the slow subflow.
func (b *blest) adapt(v *View, s *Subflow) {
	if v.Now-b.changed < s.MinRTT {
		return
	}
	if b.changed > 0 {
		if b.blocked {
			b.lambda = min(b.lambda+lambdaUp, mostLambda)
		} else {
			b.lambda = max(b.lambda-lambdaDown, leastLambda)
		}
	}
	b.changed, b.blocked = v.Now, false
}
