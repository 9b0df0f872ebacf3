package scheduler

import "math/bits"

// Reasons of linux.
const (
	ReasonLinger Reason = "least time to drain"
	ReasonBurst  Reason = "the burst goes on"
)

// linux is the default of the Linux kernel (mptcp_subflow_get_send in
// net/mptcp/protocol.c): the subflow whose send memory, sent or not, takes the
// least time to drain at its pacing rate, averaged over what it was given. It
// then keeps that subflow for a burst. If its send memory is full, it waits,
// though another has room.
//
// Send memory is full when two windows are in it, which is what the kernel
// lets the buffer of a subflow grow to.
type linux struct {
	last  int // ID of the subflow of the burst; -1 = none
	left  int // bytes of the burst
	paces PerSubflow[float64]
}

// burstBytes is MPTCP_SEND_BURST_SIZE.
const burstBytes = 65428

func newLinux() Scheduler { return &linux{last: -1} }

func (l *linux) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	paces := l.paces.Sync(v)
	if i := v.index(l.last); i >= 0 && l.left > 0 && set>>i&1 != 0 && v.Subflows[i].memory() > 0 {
		return l.send(v, i, ReasonBurst)
	}
	paced := uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if paces[i] == 0 {
			paces[i] = v.Subflows[i].pace()
		}
		if paces[i] > 0 {
			paced |= 1 << i
		}
	}
	if paced == 0 {
		return v.leastRTT(set, "")
	}
	best, _ := v.least(paced, func(i int) float64 {
		return float64(v.Subflows[i].InFlight+v.Subflows[i].Queued) / paces[i]
	})
	s := &v.Subflows[best]
	if s.memory() <= 0 {
		return wait(ReasonNoRoom)
	}
	l.last, l.left = s.ID, int(min(burstBytes, v.Run))
	paces[best] = averagePace(paces[best], s.pace(), s.InFlight+s.Queued, l.left)
	return l.send(v, best, ReasonLinger)
}

func (l *linux) send(v *View, i int, why Reason) Decision {
	s := &v.Subflows[i]
	n := min(s.memory(), l.left)
	l.left -= n
	return Decision{Send: 1 << i, Bytes: n, Queue: true, Reason: why}
}

// memory returns how many bytes of send memory are free.
func (s *Subflow) memory() int { return max(s.Room, s.QueueRoom) }

// averagePace weighs what was given before with what is given now.
func averagePace(avg, now float64, wmem, burst int) float64 {
	return (avg*float64(wmem) + now*float64(burst)) / float64(max(wmem+burst, 1))
}

// pace returns the pacing rate; that of Linux where pacing is off.
func (s *Subflow) pace() float64 {
	switch {
	case s.PacingRate > 0:
		return s.PacingRate
	case s.Cwnd < s.Ssthresh:
		return 2 * s.Rate()
	}
	return 1.2 * s.Rate()
}
