package scheduler

import (
	"math/bits"
	"time"
)

// daps plans which subflow sends what so that everything arrives in order
// (Sarwar et al., WAINA 2013; Kuhn et al., ICC 2014; mptcp_daps.c). In a time
// E, the least common multiple of the forward delays d, subflow r sends E/d
// windows; the stream is given out in the order in which those arrive. When it
// is used up, the next plan is made.
//
// Delays are half the smoothed RTT in whole milliseconds (the kernel's port
// rounds to 4). E explodes where they have no common divisor: a plan ends
// after mostWindows of the fastest subflow at the latest. Windows that change
// meanwhile break the order; that is in the nature of a plan.
type daps struct{ plan Plan }

// mostWindows bounds a plan.
const mostWindows = 32

func newDAPS() Scheduler { return &daps{} }

func (p *daps) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	if d, ok := p.plan.Next(v, set); ok {
		return d
	}
	p.make(v, set)
	d, ok := p.plan.Next(v, set)
	if !ok || d.Send == 0 && v.Free(set) == 0 {
		return wait(ReasonNoRoom)
	}
	return d
}

func (p *daps) make(v *View, set uint64) {
	p.plan.Begin(v)
	var delay, next [MaxSubflows]int64
	all, least := int64(1), int64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		delay[i] = max(int64((v.Subflows[i].rtt()/2+time.Millisecond/2)/time.Millisecond), 1)
		next[i] = delay[i]
		if least == 0 || delay[i] < least {
			least = delay[i]
		}
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		d := delay[bits.TrailingZeros64(rest)]
		if all = all / gcd(all, d) * d; all >= mostWindows*least {
			all = mostWindows * least
			break
		}
	}
	for {
		first := -1
		for rest := set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			if next[i] <= all && (first < 0 || next[i] < next[first] ||
				next[i] == next[first] && v.Subflows[i].faster(&v.Subflows[first])) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		s := &v.Subflows[first]
		p.plan.Give(s, int64(max(s.Cwnd/s.segment(), 1)*s.segment()))
		next[first] += delay[first]
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
