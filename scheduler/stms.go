package scheduler

import "time"

// stms has the fastest subflow send from the head of the queue and each slower
// one what lies a gap behind it, so that both arrive in order (Shi et al.,
// USENIX ATC 2018): Gap = b_f*(d_s-d_f), what the fast one sends during the
// difference of the one-way delays. The gap is corrected by what happened: if
// the slower one's segment was waited for, it grows; if the segment waited for
// what comes before it, it shrinks; each time by an eighth of the error, once
// in an RTT of the slower one. It works as far as the window is larger than
// the gap.
//
// Reconstruction: the rule that corrects the gap is ours.
type stms struct{ probes PerSubflow[gapProbe] }

// gapProbe follows one segment of a slower subflow to its DATA_ACK.
type gapProbe struct {
	bias  float64       // correction of the gap, bytes
	off   int64         // of the segment that is followed; 0 = none
	due   time.Duration // when its DATA_ACK is expected
	stuck time.Duration // since when it is the first byte without DATA_ACK
}

const gapStep = 8

func newSTMS() Scheduler { return &stms{} }

func (m *stms) Pick(v *View) Decision {
	probes := m.probes.Sync(v)
	set, d, done := v.forFresh()
	if done {
		return d
	}
	fast, best := v.Fastest(set), v.Fastest(v.Free(set))
	if fast == best {
		return v.leastRTT(set, "")
	}
	f, s, p := &v.Subflows[fast], &v.Subflows[best], &probes[best]
	p.learn(v, f.Rate())
	gap := gapBytes(f.Rate(), (s.SRTT-f.SRTT)/2) + int64(p.bias)
	gap = max(gap-gap%int64(f.segment()), 0)
	if gap >= v.Run && v.Unsent <= gap {
		return wait(ReasonWait)
	}
	d = v.one(best, ReasonAhead)
	d.Offset = gap
	if p.off == 0 {
		p.off, p.due, p.stuck = v.First+gap, v.Now+s.SRTT, 0
	}
	return d
}

// gapBytes returns what is sent at a rate in bytes/s during d.
func gapBytes(rate float64, d time.Duration) int64 { return int64(rate * d.Seconds()) }

// learn corrects the gap by what became of the segment that is followed.
func (p *gapProbe) learn(v *View, rate float64) {
	switch {
	case p.off == 0:
	case v.Acked > p.off:
		if p.stuck > 0 && p.stuck < p.due {
			p.bias += correction(rate, p.due-p.stuck) // it was waited for
		} else if v.Now > p.due {
			p.bias -= correction(rate, v.Now-p.due) // it waited
		}
		p.off = 0
	case v.Acked == p.off && p.stuck == 0:
		p.stuck = v.Now
	}
}

func correction(rate float64, late time.Duration) float64 { return rate * late.Seconds() / gapStep }
