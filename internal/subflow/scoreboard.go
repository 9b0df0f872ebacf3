package subflow

import (
	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/mono"
)

// mark is a set of facts about a record.
type mark uint8

const (
	markSACKed mark = 1 << iota // selectively acknowledged
	markLost                    // the first transmission is believed lost
	markAgain                   // sent again, and that copy is believed to be in flight
	markTwice                   // ever sent again: gives no RTT measurement (Karn)
)

// record is a range of sequence numbers that was sent as one segment, or
// super-segment, and is not acknowledged. It never crosses the border of a
// Push. Our FIN is the last number of the last record.
type record struct {
	lo, hi relSSN
	sentAt mono.Time // last transmission
	nth    uint64    // how many there had been of the subflow then, this one included
	mss    int       // payload bytes of each packet that it travelled in
	marks  mark
	at     delivered // what was delivered when it was last sent
}

func (r *record) len() int { return int(r.hi - r.lo) }

// records is the retransmission queue and the scoreboard of RFC 6675 in one:
// all records in ascending order, without gaps from SND.UNA to SND.NXT. Sums
// over all records are kept up to date. Lookups take O(log n).
type records struct {
	buf  []record // buf[head:]
	head int

	total   int // bytes of all records, that is SND.NXT - SND.UNA
	sacked  int // bytes with markSACKed
	lost    int // bytes with markLost, not SACKed
	again   int // bytes with markAgain, not SACKed
	pending int // bytes lost, neither SACKed nor sent again

	ranges interval.Set // what is SACKed
	edge   relSSN       // records before it were judged by IsLost
	first  relSSN       // no pending record begins before it
}

func (q *records) len() int          { return len(q.buf) - q.head }
func (q *records) get(i int) *record { return &q.buf[q.head+i] }

// clear forgets everything.
func (q *records) clear() { *q = records{} }

// push appends a record that was just sent.
func (q *records) push(r record) {
	if len(q.buf) == cap(q.buf) && q.head > len(q.buf)/2 {
		n := copy(q.buf, q.buf[q.head:])
		q.buf, q.head = q.buf[:n], 0
	}
	q.buf = append(q.buf, r)
	q.total += r.len()
}

// find returns the index of the record that holds n, or of the first after
// it; len() if there is none.
func (q *records) find(n relSSN) int {
	lo, hi := 0, q.len()
	if hi > 0 && n < q.get(0).hi {
		return 0 // what ACKs ask for most
	}
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		if q.get(m).hi <= n {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// count adds n bytes with the given marks to the sums.
func (q *records) count(marks mark, n int) {
	if marks&markSACKed != 0 {
		q.sacked += n
		return
	}
	if marks&markLost != 0 {
		q.lost += n
	}
	if marks&markAgain != 0 {
		q.again += n
	}
	if marks&(markLost|markAgain) == markLost {
		q.pending += n
	}
}

// mark sets and clears marks of a record.
func (q *records) mark(r *record, set, unset mark) {
	q.count(r.marks, -r.len())
	r.marks = r.marks&^unset | set
	q.count(r.marks, r.len())
	if r.marks&(markSACKed|markLost|markAgain) == markLost {
		q.first = min(q.first, r.lo)
	}
}

// split cuts record i in two at n, which must lie inside it.
func (q *records) split(i int, n relSSN) {
	q.buf = append(q.buf, record{})
	at := q.head + i
	copy(q.buf[at+1:], q.buf[at:])
	q.buf[at].hi, q.buf[at+1].lo = n, n
}

// pop removes the first record.
func (q *records) pop() {
	r := q.get(0)
	q.total -= r.len()
	q.count(r.marks, -r.len())
	q.head++
	if q.head == len(q.buf) {
		q.buf, q.head = q.buf[:0], 0
	}
}

// pipe estimates the bytes in the network (RFC 6675, Section 4, SetPipe):
// what is neither SACKed nor lost, and what was sent again.
func (q *records) pipe() int { return q.total - q.sacked - q.lost + q.again }

// nextPending returns the index of the first record that is lost and was not
// sent again, -1 if there is none.
func (q *records) nextPending() int {
	if q.pending == 0 {
		return -1
	}
	for i := q.find(q.first); i < q.len(); i++ {
		if r := q.get(i); r.marks&(markSACKed|markLost|markAgain) == markLost {
			q.first = r.lo
			return i
		}
	}
	panic("subflow: pending bytes without a record")
}

// ackTo removes what lies before una and calls deliver with each record, or
// part of one, that had not been SACKed.
func (q *records) ackTo(una relSSN, deliver func(*record)) {
	for q.len() > 0 && q.get(0).lo < una {
		if q.get(0).hi > una {
			q.split(0, una)
		}
		if r := q.get(0); r.marks&markSACKed == 0 {
			deliver(r)
		}
		q.pop()
	}
	q.ranges.Remove(0, uint64(una))
}

// sack marks [lo, hi), as far as whole packets lie in it, and calls deliver
// with each record that had not been SACKed. A packet that is covered in
// part counts as not received, which bounds the records by the packets sent.
func (q *records) sack(lo, hi relSSN, deliver func(*record)) {
	for lo < hi {
		lo = relSSN(q.ranges.FirstGap(uint64(lo)))
		end := hi
		if r, ok := q.ranges.Next(uint64(lo)); ok {
			end = min(end, relSSN(r.Lo))
		}
		if lo >= end {
			return
		}
		for i := q.find(lo); i < q.len() && q.get(i).lo < end; i++ {
			at, ok := q.carve(i, lo, end)
			if !ok {
				continue
			}
			i = at
			r := q.get(i)
			deliver(r)
			q.mark(r, markSACKed, 0)
			q.ranges.Add(uint64(r.lo), uint64(r.hi))
		}
		lo = end
	}
}

// carve cuts from record i the whole packets that lie in [lo, hi) and returns
// the index of the record that they are then.
func (q *records) carve(i int, lo, hi relSSN) (at int, ok bool) {
	r := q.get(i)
	mss := relSSN(r.mss)
	a, b := r.lo, r.hi
	if lo > a {
		a += (lo - a + mss - 1) / mss * mss
	}
	if hi < b {
		b = r.lo + (hi-r.lo)/mss*mss
	}
	if a >= b {
		return 0, false
	}
	if b < r.hi {
		q.split(i, b)
	}
	if a > q.get(i).lo {
		q.split(i, a)
		i++
	}
	return i, true
}

// lossEdge returns the place before which everything not SACKed is lost.
//
// RFC 6675, Section 4, IsLost: "The routine returns true when either
// DupThresh discontiguous SACKed sequences have arrived above 'SeqNum' or
// more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than
// 'SeqNum' have been SACKed."
func (q *records) lossEdge(dupThresh, mss int) relSSN {
	bytes := 0
	n := q.ranges.Len()
	for i := 1; i <= n; i++ {
		r := q.ranges.At(n - i)
		bytes += int(r.Len())
		if i >= dupThresh || bytes > (dupThresh-1)*mss {
			return relSSN(r.Lo)
		}
	}
	return 0
}

// lose marks what is not SACKed before edge as lost and returns how many
// bytes that were not.
func (q *records) lose(edge relSSN) int {
	if edge <= q.edge {
		return 0
	}
	before := q.lost
	for i := q.find(q.edge); i < q.len() && q.get(i).hi <= edge; i++ {
		if r := q.get(i); r.marks&(markSACKed|markLost) == 0 {
			q.mark(r, markLost, 0)
		}
	}
	q.edge = edge
	return q.lost - before
}

// loseFirst marks the first packet as lost, if it is neither SACKed nor was
// sent again, and returns how many bytes that are.
func (q *records) loseFirst() int {
	if q.len() == 0 || q.get(0).marks&(markSACKed|markLost|markAgain) != 0 {
		return 0
	}
	if r := q.get(0); r.len() > r.mss {
		q.split(0, r.lo+relSSN(r.mss))
	}
	q.mark(q.get(0), markLost, 0)
	return q.get(0).len()
}

// loseLarger marks what travelled in packets of more than mss payload bytes,
// from the packet at n on, as lost.
func (q *records) loseLarger(n relSSN, mss int) {
	for i := q.find(n); i < q.len(); i++ {
		r := q.get(i)
		if r.marks&markSACKed == 0 && r.mss > mss && r.len() > mss {
			q.mark(r, markLost, markAgain)
		}
	}
}

// loseAll marks everything as lost and forgets what was SACKed.
//
// RFC 2018, Section 8: "After a retransmit timeout the data sender SHOULD
// turn off all of the SACKed bits, since the timeout might indicate that the
// data receiver has reneged."
func (q *records) loseAll() {
	for i := range q.len() {
		r := q.get(i)
		r.marks = r.marks&markTwice | markLost
	}
	q.ranges.Clear()
	q.sacked, q.again = 0, 0
	q.lost, q.pending = q.total, q.total
	q.edge, q.first = 0, 0
}

// unlose takes back that records are lost which were not sent again since, and
// calls again with each that had been before.
func (q *records) unlose(again func(*record)) {
	for i := range q.len() {
		if r := q.get(i); r.marks&(markSACKed|markLost|markAgain) == markLost {
			q.mark(r, 0, markLost)
			if r.marks&markTwice != 0 {
				again(r)
			}
		}
	}
	q.edge = 0
}
