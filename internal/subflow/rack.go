package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// rack is the state of RACK, the time-based loss detection of RFC 8985: what
// was sent before something that arrived, and has not arrived a reordering
// window later, is lost. The congestion control does not matter here, nor what
// other subflows send: a reinjection is no retransmission of this one.
type rack struct {
	on        bool
	reordered bool  // RACK.reordering_seen
	persist   int8  // RACK.reo_wnd_persist
	mult      int32 // RACK.reo_wnd_mult, less 1

	last uint64        // which transmission the latest delivered was, in place of RACK.xmit_ts; 0 = none
	end  relSSN        // RACK.end_seq
	rtt  time.Duration // RACK.rtt
	fack relSSN        // RACK.fack: the highest number delivered

	dsackRound relSSN // 0 = none

	floor   [2]time.Duration // least RTT of this and of the last period; 0 = none
	floorAt mono.Time        // when this period began

	began mono.Time // when the window was last reduced in this recovery
	tlp   tlp
	sent  uint64 // transmissions
}

const (
	// floorPeriod is half of how long a least RTT is remembered. RFC 8985,
	// Section 6.2, step 1: "The sender SHOULD track a windowed min-filtered
	// estimate of recent RTT measurements that can adapt when migrating to
	// significantly longer paths". Five minutes in all is what Linux uses.
	floorPeriod = 150 * time.Second
	// dsackPersist is how many recoveries a wider reordering window lasts
	// (RFC 8985, Section 6.2, step 4).
	dsackPersist = 16
)

// noteRTT updates RACK.min_RTT.
func (k *rack) noteRTT(now mono.Time, rtt time.Duration) {
	if now.Sub(k.floorAt) >= floorPeriod {
		k.floor[1], k.floor[0] = k.floor[0], 0
		k.floorAt = now
	}
	if k.floor[0] == 0 || rtt < k.floor[0] {
		k.floor[0] = rtt
	}
	k.tlp.sampled = true
}

// minRTT returns RACK.min_RTT; 0 before the first measurement.
func (k *rack) minRTT() time.Duration {
	if k.floor[1] != 0 && (k.floor[0] == 0 || k.floor[1] < k.floor[0]) {
		return k.floor[1]
	}
	return k.floor[0]
}

// sentAfter is RACK_sent_after: whether what ends at end1 and was the n1-th
// transmission was sent after what ends at end2 and was the n2-th. Counting
// tells the order also of what was sent at the same instant; within a
// super-segment the sequence numbers do.
func sentAfter(n1 uint64, end1 relSSN, n2 uint64, end2 relSSN) bool {
	return n1 > n2 || n1 == n2 && end1 > end2
}

// rackDeliver takes a record, or a part of one, that an ACK newly delivers.
//
// RFC 8985, Section 6.2, step 2: "ignore a segment as invalid if any of its
// sequence range has been retransmitted before" and the timestamp echoed "was
// not acknowledging the last retransmission", or it "was last retransmitted
// less than RACK.min_rtt ago".
func (s *Subflow) rackDeliver(a *ack, r *record) {
	k := &s.rack
	switch {
	case r.hi > k.fack:
		k.fack = r.hi
	case r.hi < k.fack && r.marks&markTwice == 0:
		k.reordered = true
	}
	if r.marks&markTwice != 0 {
		old := s.ts.on && a.seg.Has&wire.OptTimestamps != 0 && int32(a.seg.TSEcr-s.tsVal(r.sentAt)) < 0
		if old || a.now.Sub(r.sentAt) < k.minRTT() {
			return
		}
	}
	if sentAfter(r.nth, r.hi, a.rackNth, a.rackEnd) {
		a.rackAt, a.rackNth, a.rackEnd = r.sentAt, r.nth, r.hi
	}
}

// update takes what an ACK delivered last.
func (k *rack) update(a *ack) {
	if !a.rackAt.Set() {
		return
	}
	k.rtt = a.now.Sub(a.rackAt)
	if sentAfter(a.rackNth, a.rackEnd, k.last, k.end) {
		k.last, k.end = a.rackNth, a.rackEnd
	}
}

// rackDSACK widens the reordering window once a round trip in which duplicates
// were reported.
func (s *Subflow) rackDSACK(a *ack) {
	k := &s.rack
	if s.snd.una >= k.dsackRound {
		k.dsackRound = 0
	}
	if a.dsack.hi > 0 && k.dsackRound == 0 {
		k.dsackRound = s.snd.nxt
		k.mult++
		k.persist = dsackPersist
	}
}

// recovered notes the end of fast or timeout recovery.
func (k *rack) recovered() {
	if k.persist--; k.persist <= 0 {
		k.persist, k.mult = 0, 0
	}
	k.tlp.end = 0
}

// reorderingWindow returns RACK.reo_wnd.
func (s *Subflow) reorderingWindow() time.Duration {
	k := &s.rack
	if !k.reordered && (s.rec.phase != phaseOpen || s.manySACKed()) {
		return 0
	}
	return min(time.Duration(k.mult+1)*k.minRTT()/4, s.rtt.srtt)
}

// manySACKed reports whether DupThresh segments are SACKed. Where segments are
// small, the ACKs that reported them are counted.
func (s *Subflow) manySACKed() bool {
	return s.queue.sacked > int(s.rec.dupThresh-1)*s.snd.mss || s.rec.dupAcks >= s.rec.dupThresh
}

// rackDetect marks what RACK takes for lost, and sets the reordering timer for
// what it waits for (RFC 8985, Section 6.2, step 5).
//
// Records that were sent once are in the order of sending, and those sent
// again are in a queue of their own, so that each is looked at a few times
// only.
func (s *Subflow) rackDetect(a *ack) {
	k, q := &s.rack, &s.queue
	s.timers.Stop(timerReorder)
	if k.last == 0 || q.total == 0 {
		return
	}
	wait := k.rtt + s.reorderingWindow()
	before := q.pending
	i := q.find(q.edge)
	for ; i < q.len(); i++ {
		r := q.get(i)
		if r.marks == 0 {
			if !sentAfter(k.last, k.end, r.nth, r.hi) || r.sentAt.Add(wait) > a.now {
				break
			}
			q.mark(r, markLost, 0)
		}
		q.edge = r.hi
	}
	due := s.rackResent(a, wait)
	a.lost += q.pending - before
	if last := s.rackLast(i); last.Set() {
		due = max(due, last.Add(wait))
	}
	s.timers.Set(timerReorder, due)
}

// rackLast returns when the last record that RACK waits for was sent, among
// those from index i on that were sent once; 0 if there is none.
func (s *Subflow) rackLast(i int) mono.Time {
	k, q := &s.rack, &s.queue
	if i >= q.len() || !sentAfter(k.last, k.end, q.get(i).nth, q.get(i).hi) {
		return 0
	}
	last := q.get(i).sentAt
	for j := q.find(k.end - 1); j > i; {
		if j >= q.len() {
			j = q.len() - 1
			continue
		}
		r := q.get(j)
		if r.marks&markSACKed != 0 {
			in, _ := q.ranges.Next(uint64(r.lo))
			j = min(q.find(relSSN(in.Lo)), j) - 1
			continue
		}
		if r.marks == 0 && sentAfter(k.last, k.end, r.nth, r.hi) {
			return max(last, r.sentAt)
		}
		j--
	}
	return last
}

// rackResent marks retransmissions that are lost, too, and returns when the
// first that is not may be; 0 if RACK waits for none.
func (s *Subflow) rackResent(a *ack, wait time.Duration) mono.Time {
	k, q := &s.rack, &s.queue
	for {
		e, ok := s.rec.resent.first()
		if !ok {
			return 0
		}
		for i := q.find(e.lo); i < q.len() && q.get(i).lo < e.hi; i++ {
			r := q.get(i)
			if r.marks&(markSACKed|markAgain) != markAgain || r.nth != e.nth {
				continue // delivered, or sent yet again
			}
			if !sentAfter(k.last, k.end, r.nth, r.hi) {
				return 0
			}
			if due := r.sentAt.Add(wait); due > a.now {
				return due
			}
			q.mark(r, markLost, markAgain)
			if r.sentAt >= k.began {
				a.lostAgain = true
			}
		}
		s.rec.resent.pop()
	}
}

// onReorder acts on the expiry of the reordering timer.
func (s *Subflow) onReorder(now mono.Time) {
	a := ack{now: now, prior: s.snd.una, inFlight: s.pipe(), episode: s.rec.phase == phaseFast}
	s.respond(&a)
}

// markTimedOut marks as lost what a timeout shows to be.
//
// RFC 8985, Section 6.3: "Upon RTO timer expiration, RACK marks the first
// outstanding segment as lost (since it was sent an RTO ago); for all the
// other segments, RACK only marks the segment as lost if the time elapsed
// since the segment was transmitted is at least the sum of the recent RTT and
// the reordering window."
func (s *Subflow) markTimedOut(now mono.Time) {
	q := &s.queue
	wait := s.rack.rtt + s.reorderingWindow()
	for i := range q.len() {
		r := q.get(i)
		if r.marks&markSACKed == 0 && (i == 0 || r.sentAt.Add(wait) <= now) {
			q.mark(r, markLost, markAgain)
		}
	}
}

// resent is a range that was sent again.
type resent struct {
	lo, hi relSSN
	nth    uint64
}

// resentQueue holds what was sent again in the order of sending. Entries may
// be out of date: the records tell.
type resentQueue struct {
	buf  []resent
	head int
}

func (q *resentQueue) push(e resent) {
	if len(q.buf) == cap(q.buf) && q.head > len(q.buf)/2 {
		n := copy(q.buf, q.buf[q.head:])
		q.buf, q.head = q.buf[:n], 0
	}
	q.buf = append(q.buf, e)
}

func (q *resentQueue) first() (resent, bool) {
	if q.head == len(q.buf) {
		return resent{}, false
	}
	return q.buf[q.head], true
}

func (q *resentQueue) pop() {
	q.head++
	if q.head == len(q.buf) {
		q.clear()
	}
}

func (q *resentQueue) clear() { q.buf, q.head = q.buf[:0], 0 }
