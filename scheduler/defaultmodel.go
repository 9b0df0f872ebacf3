package scheduler

import (
	"math"
	"math/bits"
	"time"
)

const (
	// pipeGain is how much of what its path holds a subflow has on the way at
	// most while the window is tight. What is more than 1 keeps the path in use
	// when ACKs come in bunches, and finds out if it holds more.
	pipeGain = 1.25
	// burstShare is how much of what its path holds a subflow may be given at once:
	// less than the shortest queues that are usual.
	burstShare = 1. / 16
	// batch is how many seconds more a path is said to hold: hosts handle packets
	// and ACKs in batches, which on paths of microseconds take longer than the
	// round trip.
	batch = 0.005
	// hostDelay is the same as a time: how much later than expected an ACK may come.
	hostDelay = 5 * time.Millisecond
	// leastLead is how much sooner bytes have to arrive to be worth repeating: round
	// trips vary by as much with what hosts do.
	leastLead = time.Millisecond
	// windowSlack is how much more window several subflows need than fits the
	// estimates: the sender hears of what arrived once in an eighth of it.
	windowSlack = 1.15
	// betweenSegments is how many segments for each subflow lie about besides.
	betweenSegments = 2
	// sureSegments is how much of a congestion window is trusted while nothing
	// of it is in use: the usual initial one.
	sureSegments = 10
	// leastPause is the least time to wait for a path to take more.
	leastPause = time.Millisecond
	// leastGain is what another subflow has to gain to be worth its losses.
	leastGain = 1.02
)

// pathModel is what a subflow is expected to do, in seconds and bytes.
type pathModel struct {
	base  float64 // least round trip
	rate  float64 // bytes/s
	queue float64 // bytes that wait on the way
	rtt   float64 // round trip of a segment sent now
	full  float64 // and of one sent when the congestion window is nearly full
	burst float64 // bytes sent beyond what leaves by and by
	space float64 // bytes that it may be given now

	halted bool // in the last round trip, by what others carry
}

// pathQueue is how many bytes of a subflow are thought to wait on the way, and
// since when.
type pathQueue struct {
	bytes float64
	burst float64 // bytes given lately beyond what has left since
	at    time.Duration

	halted time.Duration // when others last kept the window from it; 0 = never
}

// reckon fills in the model of Subflows[i].
//
// The rate is the one at which it delivers, or what the congestion window
// allows while that is in use or nothing else is known; a little of that window
// while nothing is in flight, lest a subflow that had little to send be thought
// slow. What it was given since then waits in a queue, less what left at the
// rate: no less than what is in flight beyond what the path holds, and no more
// than is in flight at all.
func (o *inOrder) reckon(v *View, i int, q *pathQueue) *pathModel {
	s, m := &v.Subflows[i], &o.model[i]
	srtt := seconds(s.rtt())
	m.base = srtt
	if s.MinRTT > 0 {
		m.base = min(seconds(s.MinRTT), srtt)
	}
	inFlight := float64(s.InFlight + s.Queued)
	m.rate = s.DeliveryRate
	switch {
	case s.DeliveryRate <= 0 || s.InFlight >= s.Cwnd-s.Cwnd/4:
		m.rate = max(float64(s.Cwnd)/srtt, s.DeliveryRate, 1)
	case inFlight == 0:
		m.rate = max(float64(min(s.Cwnd, sureSegments*s.segment()))/srtt, s.DeliveryRate)
	}
	left := pipeGain * m.rate * seconds(v.Now-q.at)
	m.queue = max(q.bytes-left, 0)
	if s.Cwnd < s.Ssthresh {
		left *= 2 / pipeGain
	}
	m.burst = min(max(q.burst-left, 0), inFlight)
	m.queue = min(max(m.queue, inFlight-m.rate*m.base), inFlight)
	q.bytes, q.burst, q.at = m.queue, m.burst, v.Now
	m.halted = q.halted > 0 && v.Now-q.halted < s.rtt()
	perByte := 1 / m.rate
	m.rtt = m.base + m.queue*perByte
	m.full = max(m.base, float64(s.Cwnd)*perByte)
	return m
}

func seconds(d time.Duration) float64 { return float64(d) * 1e-9 }

// forward returns the delay to the peer: queues are on the way there.
func (m *pathModel) forward() float64 { return m.rtt - m.base/2 }

// unfilled returns those of set whose paths take more now, and when the first
// of the others will.
func (o *inOrder) unfilled(v *View, set uint64, tight bool) (free uint64, until time.Duration) {
	soonest := math.Inf(1)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		m := &o.model[i]
		if m.space = float64(v.Subflows[i].Room); tight || m.burst > 0 {
			m.space = o.space(v, i, tight)
		}
		if m.space > 0 {
			free |= 1 << i
		} else {
			soonest = min(soonest, -m.space/(pipeGain*m.rate))
		}
	}
	if free != set {
		until = v.Now + max(time.Duration(soonest*1e9), leastPause)
	}
	return free, until
}

// space returns how many bytes the path of Subflows[i] takes at once and, if the
// window is tight, holds beside what is on the way; less than 0 if it is too much
// already. In slow start, as long as no queue shows, the window may double, if
// the connection's lets it.
func (o *inOrder) space(v *View, i int, tight bool) float64 {
	s, m := &v.Subflows[i], &o.model[i]
	if s.DeliveryRate <= 0 {
		return float64(s.Room)
	}
	seg := float64(s.segment())
	most, left, queue := pipeGain-1, float64(s.Room), m.queue
	slowStart := s.Cwnd < s.Ssthresh
	if !slowStart || m.halted {
		left = m.rate*(burstShare*m.base+batch) + sureSegments*seg - m.burst
	}
	if tight {
		if slowStart && seconds(s.rtt()) < pipeGain*m.base {
			most = max(most, min(o.window/(m.rate*m.base)-1, 1))
			if !m.halted {
				queue = float64(s.InFlight+s.Queued) - m.rate*m.base
			}
		}
		left = min(left, m.rate*(most*m.base+batch)+seg-queue)
	}
	return left
}

// grant returns how many bytes, in full segments, Subflows[i] may be given.
func (o *inOrder) grant(v *View, i int) int {
	s := &v.Subflows[i]
	seg := s.segment()
	return min(int(min(o.model[i].space, float64(s.Room))/float64(seg))*seg+seg, s.Room)
}

// worthwhile returns those of set that are worth using with the window that
// there is, and whether it is less than they would use.
func (o *inOrder) worthwhile(v *View, set uint64, queues []pathQueue) (used uint64, tight bool) {
	window := float64(min(v.Unacked+v.SendWindow, max(v.BufferMax, v.SendBuffer)))
	o.window = window
	for len(o.model) < len(v.Subflows) {
		o.model = append(o.model, pathModel{})
	}
	sum, longest, back := 0.0, 0.0, math.Inf(1)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		m := o.reckon(v, i, &queues[i])
		sum, longest, back = sum+m.rate, max(longest, m.full-m.base/2), min(back, m.base/2)
	}
	if sum*(longest+back) <= window {
		return set, false
	}
	main, most := -1, -1.0
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		m := &o.model[i]
		if alone := min(m.rate, window/(m.base/2+back)); alone > most {
			main, most = i, alone
		}
	}
	used, sum, longest = 1<<main, o.model[main].rate, o.model[main].base/2
	for rest := set &^ used; rest != 0; {
		next := -1
		for r := rest; r != 0; r &= r - 1 {
			if i := bits.TrailingZeros64(r); next < 0 || o.model[i].base < o.model[next].base {
				next = i
			}
		}
		rest &^= 1 << next
		m := &o.model[next]
		delay := max(longest, m.base/2)
		room := window/windowSlack - float64(betweenSegments*(bits.OnesCount64(used)+1)*v.Subflows[next].segment())
		if together := min(sum+m.rate, room/(delay+back)); together >= leastGain*most {
			used, most = used|1<<next, together
			sum, longest = sum+m.rate, delay
		}
	}
	return used, true
}

// inTime returns how many bytes those of set that are faster than
// Subflows[than] will have delivered, beyond what they have in flight, when a
// segment sent there now arrives.
func (o *inOrder) inTime(v *View, set uint64, than int) int64 {
	limit := o.model[than].forward()
	sum := 0.0
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		f, m := &v.Subflows[i], &o.model[i]
		left := limit - m.forward()
		if i == than || left <= 0 {
			continue
		}
		rtt, w := m.rtt, m.rate*m.rtt
		for n := 0; left > 0 && n < mostRounds; n++ {
			sum += w * min(left/rtt, 1)
			left -= rtt
			if w < float64(f.Ssthresh) {
				w = min(2*w, float64(f.Ssthresh))
			}
		}
	}
	return int64(sum + 0.5)
}
