package scheduler

import "time"

// Reasons of ecf.
const (
	ReasonFastSooner Reason = "the fast subflow ends sooner"
	ReasonHelps      Reason = "the slow subflow helps"
)

// ecf sends on a slower subflow only if that ends the transfer of what waits
// earlier (Lim et al., CoNEXT 2017; Linux mptcp_ecf.c). With k segments
// unsent, f the fastest subflow, s the fastest with room, and windows w in
// segments, it waits for f if
//
//	T_f*(1 + max(k,w_f)/w_f) < (1+beta)*(T_s + d)  and  T_s*max(k,w_s)/w_s >= 2*T_f + d
//
// where d is the greater RTT variation and beta, which is 0 unless it waited
// the last time, keeps it from changing its mind at every segment.
type ecf struct{ waiting bool }

const ecfBeta = 0.25

func newECF() Scheduler { return &ecf{} }

func (e *ecf) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	fast, slow := v.Fastest(set), v.Fastest(v.Free(set))
	if fast == slow {
		return v.leastRTT(set, "")
	}
	f, s := &v.Subflows[fast], &v.Subflows[slow]
	vary := max(f.RTTVar, s.RTTVar).Seconds()
	tf, ts := f.SRTT.Seconds(), s.SRTT.Seconds()
	hysteresis := 1.0
	if e.waiting {
		hysteresis += ecfBeta
	}
	if tf*(1+f.rounds(v.Unsent)) < hysteresis*(ts+vary) {
		if ts*s.rounds(v.Unsent) >= 2*tf+vary {
			e.waiting = true
			return wait(ReasonFastSooner)
		}
	} else {
		e.waiting = false
	}
	return v.one(slow, ReasonHelps)
}

// rounds returns how many windows of s a number of bytes takes, at least one.
func (s *Subflow) rounds(bytes int64) float64 {
	w := float64(max(s.Cwnd/s.segment(), 1))
	return max(float64(s.segments(bytes)), w) / w
}

// arrival returns how long it takes to send so many segments beside those in
// flight and have the last one arrive, with the window as it is.
func (s *Subflow) arrival(more int64) time.Duration {
	w := int64(max(s.Cwnd/s.segment(), 1))
	free := max(int64(s.Cwnd-s.InFlight)/int64(s.segment()), 0)
	over := s.segments(int64(s.Queued)) + more - free
	rounds := int64(0)
	if over > 0 {
		rounds = (over + w - 1) / w
	}
	return s.rtt()/2 + time.Duration(rounds)*s.rtt()
}
