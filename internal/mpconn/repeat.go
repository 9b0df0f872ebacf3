package mpconn

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// maxRepeats bounds how often an option is sent for which RFC 8684 has no
// answer.
const maxRepeats = 4

// signal is the state of an option to which the peer has no answer: MP_PRIO and
// REMOVE_ADDR. A lost one would never be made good, so that it goes out in a way
// that proves its arrival: where data is under way, on the next segment of new
// payload and every copy of that, whose acknowledgment is the proof; else on an
// ACK with a timestamp of its own, whose echo is. Without proof it is sent again
// after a retransmission timeout, a few times in all. To have it twice does no
// harm.
type signal struct {
	due   bool
	tries int
	retry mono.Time // when it is due again; 0 = not by time
	on    *flow     // where it went last

	tsVal  uint32 // of the ACK that carried it
	marked bool   // which was the only segment with that timestamp

	rides    bool   // it is on the payload
	off, end uint64 // of these subflow offsets
}

// start makes the signal due, whatever became of it before.
func (s *signal) start() { *s = signal{due: true} }

// settled reports whether there is nothing left to do.
func (s *signal) settled() bool { return !s.due && !s.retry.Set() && !s.rides }

// sent notes that an ACK of f carries the signal.
func (s *signal) sent(now mono.Time, f *flow, seg *wire.Segment, marked bool) {
	*s = signal{tries: s.tries + 1, on: f, tsVal: seg.TSVal, marked: marked}
	s.retry = now.Add(f.tcp.RTO() << (s.tries - 1))
}

// ride puts the signal on new payload of f.
func (s *signal) ride(f *flow, off, end uint64) {
	*s = signal{tries: s.tries + 1, on: f, rides: true, off: off, end: end}
}

// rideOn reports whether a segment of f with the range r has to carry it.
func (s *signal) rideOn(f *flow, r subflow.Range) bool {
	return s.rides && s.on == f && r.Off < s.end && r.Off+uint64(r.Len) > s.off
}

// eachSignal calls do with every signal under way.
func (c *Conn) eachSignal(do func(*signal)) {
	for i := range c.addrs.withdraw {
		do(&c.addrs.withdraw[i].signal)
	}
	for _, f := range c.flows {
		if f.trouble != &noTrouble {
			do(&f.prio)
		}
	}
}

// dueWithdrawals returns up to n addresses whose REMOVE_ADDR is due.
func (c *Conn) dueWithdrawals(n int) (due []*withdrawal) {
	for i := range c.addrs.withdraw {
		if w := &c.addrs.withdraw[i]; w.due && len(due) < n {
			due = append(due, w)
		}
	}
	return due
}

// signalSent notes that seg, an ACK of f, carries a signal.
func (c *Conn) signalSent(now mono.Time, f *flow, seg *wire.Segment, marked bool, s *signal) {
	s.sent(now, f, seg, marked)
	c.timers.Set(timerRepeat, mono.Earliest(c.timers.At(timerRepeat), s.retry))
}

// stampHeard settles the signals on a flow whose timestamp came back.
func (c *Conn) stampHeard(f *flow, seg *wire.Segment) {
	if seg.Has&wire.OptTimestamps == 0 || !c.timers.At(timerRepeat).Set() {
		return
	}
	c.eachSignal(func(s *signal) {
		if s.on == f && s.marked && seg.TSEcr == s.tsVal {
			s.retry = 0
		}
	})
}

// repeatSignals makes signals due that stayed without proof, and forgets those
// that need none.
func (c *Conn) repeatSignals(now mono.Time) {
	var next mono.Time
	c.eachSignal(func(s *signal) {
		if s.retry.Reached(now) {
			s.retry, s.due = 0, s.tries < maxRepeats
		}
		next = mono.Earliest(next, s.retry)
	})
	c.timers.Set(timerRepeat, next)
	c.addrs.withdraw = slices.DeleteFunc(c.addrs.withdraw, func(w withdrawal) bool { return w.settled() })
}

// maxRiders is how many ids of REMOVE_ADDR fit beside a mapping.
const maxRiders = 5

// boards reports whether a signal waits for the next payload of f. It takes a
// mapping of one segment, lest it be repeated on each packet of a large one.
func (c *Conn) boards(f *flow) bool {
	return c.mode == modeMPTCP && c.joinable && f.tcp.Sending() &&
		(f.prio.due || f == c.withdrawOn && len(c.dueWithdrawals(1)) > 0)
}

// board puts waiting signals on the mapping m, the newest of f. One kind at a
// time has room.
func (c *Conn) board(f *flow, m *mapping) {
	f.riding = true
	if f.prio.due {
		f.prio.ride(f, m.off, m.end())
		return
	}
	for _, w := range c.dueWithdrawals(maxRiders) {
		w.ride(f, m.off, m.end())
	}
}

// putRiders adds the signals that ride on a range to the segment that carries
// it, whose DATA_ACK gives way to them.
//
// RFC 8684, Section 3.3.2: a DATA_ACK is not needed on every segment.
func (c *Conn) putRiders(f *flow, seg *wire.Segment, r subflow.Range) {
	if f.prio.rideOn(f, r) {
		c.putPrio(f, seg)
		seg.DSS.Flags &^= wire.DSSAck | wire.DSSAck8
		return
	}
	for i := range c.addrs.withdraw {
		if w := &c.addrs.withdraw[i]; w.rideOn(f, r) {
			seg.Has |= wire.OptRemoveAddr
			seg.RemoveAddr.IDs[seg.RemoveAddr.N] = w.id
			seg.RemoveAddr.N++
			seg.DSS.Flags &^= wire.DSSAck | wire.DSSAck8
		}
	}
}

// riderAcked settles the signals on payload that is acknowledged.
func (c *Conn) riderAcked(f *flow) {
	f.riding = false
	c.eachSignal(func(s *signal) {
		switch {
		case !s.rides || s.on != f:
		case f.tcp.Acked() >= s.end:
			s.rides = false
		default:
			f.riding = true
		}
	})
	c.addrs.withdraw = slices.DeleteFunc(c.addrs.withdraw, func(w withdrawal) bool { return w.settled() })
}

// riderLost makes the signals due again that rode on a flow that is gone.
func (c *Conn) riderLost(f *flow) {
	c.eachSignal(func(s *signal) {
		if s.rides && s.on == f {
			s.rides, s.due = false, s.tries < maxRepeats
		}
	})
	if c.withdrawOn == f {
		c.withdrawOn = nil
	}
}
