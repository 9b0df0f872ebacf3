package subflow

import "fmt"

// CheckInvariants reports the first broken invariant, for tests.
func (s *Subflow) CheckInvariants() error {
	if err := s.queue.check(); err != nil {
		return err
	}
	q := &s.queue
	if q.len() > 0 && (q.get(0).lo != s.snd.una || q.get(q.len()-1).hi != s.snd.nxt) {
		return fmt.Errorf("records [%d,%d), una %d nxt %d", q.get(0).lo, q.get(q.len()-1).hi, s.snd.una, s.snd.nxt)
	}
	switch {
	case q.len() == 0 && s.snd.una != s.snd.nxt && s.state.Synchronized() && !s.state.over():
		return fmt.Errorf("no records, una %d nxt %d", s.snd.una, s.snd.nxt)
	case q.total > 0 && !s.timers.At(timerRexmit).Set():
		return fmt.Errorf("%d bytes out and no retransmission timer", q.total)
	case q.total == 0 && (s.timers.At(timerReorder).Set() || s.timers.At(timerTailProbe).Set()):
		return fmt.Errorf("nothing out and a timer of RACK-TLP")
	case s.state.over() && s.Deadline().Set():
		return fmt.Errorf("deadline in %v", s.state)
	case s.rcv.due == ackLater && !s.timers.At(timerDelAck).Set():
		return fmt.Errorf("ACK put off without a timer")
	case s.snd.mss < 1:
		return fmt.Errorf("mss %d", s.snd.mss)
	case s.rcv.edge < s.rcv.offer:
		return fmt.Errorf("edge %d before offer %d", s.rcv.edge, s.rcv.offer)
	case s.rcv.nxt > s.rcv.edge+1:
		return fmt.Errorf("rcv.nxt %d beyond edge %d", s.rcv.nxt, s.rcv.edge)
	case s.rec.guessed < 0 || s.pipe() < 0:
		return fmt.Errorf("guessed %d pipe %d", s.rec.guessed, s.pipe())
	case len(s.events) > 5:
		return fmt.Errorf("%d events", len(s.events))
	}
	last := s.snd.nxt
	for _, b := range s.snd.borders {
		if b <= last || b >= s.snd.end {
			return fmt.Errorf("border %d after %d, end %d", b, last, s.snd.end)
		}
		last = b
	}
	return nil
}

func (q *records) check() error {
	var sum records
	at := relSSN(0)
	for i := range q.len() {
		r := *q.get(i)
		if i > 0 && r.lo != at || r.hi <= r.lo {
			return fmt.Errorf("record %d: [%d,%d) after %d", i, r.lo, r.hi, at)
		}
		at = r.hi
		sum.total += r.len()
		sum.count(r.marks, r.len())
		if r.marks&markSACKed != 0 {
			sum.ranges.Add(uint64(r.lo), uint64(r.hi))
		}
		if r.marks&(markSACKed|markLost|markAgain) == markLost && r.lo < q.first {
			return fmt.Errorf("record %d is pending before %d", i, q.first)
		}
	}
	if sum.total != q.total || sum.sacked != q.sacked || sum.lost != q.lost || sum.again != q.again || sum.pending != q.pending {
		return fmt.Errorf("sums %d %d %d %d %d, want %d %d %d %d %d", q.total, q.sacked, q.lost, q.again, q.pending,
			sum.total, sum.sacked, sum.lost, sum.again, sum.pending)
	}
	if sum.ranges.Size() != q.ranges.Size() || sum.ranges.Len() != q.ranges.Len() {
		return fmt.Errorf("%d bytes in %d ranges SACKed, want %d in %d", q.ranges.Size(), q.ranges.Len(), sum.ranges.Size(), sum.ranges.Len())
	}
	return nil
}
