package scheduler

import (
	"math"
	"math/bits"
	"time"
)

// Reasons that policies share.
const (
	ReasonNoSubflow Reason = "no subflow"
	ReasonNoRoom    Reason = "no room"
	ReasonBackup    Reason = "backup"
	ReasonRepeat    Reason = "carried by all"
	ReasonStale     Reason = "only stale subflows"
	ReasonLost      Reason = "again on another"
	ReasonNoNeed    Reason = "nothing to repeat"
	ReasonForced    Reason = "waited too long"
)

// What makes a subflow less fit; each outweighs those before it.
const (
	isCarrier = 1 << iota // it carries the range already
	isBackup              // one side asked for data here only when nothing else works
	isStale               // it does not answer
	ranks
)

// rank says how unfit v.Subflows[i] is for the next range; 0 is fit.
func (v *View) rank(i int) int {
	s, r := &v.Subflows[i], 0
	if v.Ask == Lost && v.Carried>>i&1 != 0 {
		r |= isCarrier
	}
	if s.Backup {
		r |= isBackup
	}
	if s.Stale {
		r |= isStale
	}
	return r
}

// Eligible returns the subflows of the best rank that any subflow has, as a
// set of bits, whether or not they have room: a policy chooses among them and
// otherwise waits for them. So
//
//   - a backup serves only when no other subflow answers (RFC 8684,
//     Section 3.3.8: "a subflow where the receiver has indicated that B=1
//     SHOULD NOT be used to send data unless there are no usable subflows
//     where B=0");
//   - what must go out again takes a subflow that does not carry it, even if
//     that is full now, and repeats itself on a carrier only when all that
//     answer are carriers, since the receiver may have lost the mapping
//     though it acknowledged the bytes;
//   - subflows that do not answer are the last resort. With one subflow it
//     is always that one.
//
// The reason is empty when nothing speaks against the set.
func (v *View) Eligible() (set uint64, why Reason) {
	best := ranks
	for i := range v.Subflows {
		switch r := v.rank(i); {
		case r < best:
			best, set = r, 1<<i
		case r == best:
			set |= 1 << i
		}
	}
	switch {
	case best == ranks:
		return 0, ReasonNoSubflow
	case best&isStale != 0:
		return set, ReasonStale
	case best&isBackup != 0:
		return set, ReasonBackup
	case best&isCarrier != 0:
		return set, ReasonRepeat
	}
	return set, ""
}

// Free returns those of set that have room.
func (v *View) Free(set uint64) (free uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros64(rest); v.Subflows[i].Room > 0 {
			free |= 1 << i
		}
	}
	return free
}

// Fastest returns the subflow of set with the least smoothed RTT, full or not;
// -1 if set is empty. One whose RTT is not known yet is slower than any, and
// equal ones keep the order of establishment.
func (v *View) Fastest(set uint64) int {
	best := -1
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if best < 0 || v.Subflows[i].faster(&v.Subflows[best]) {
			best = i
		}
	}
	return best
}

// faster reports whether s has the lesser smoothed RTT.
func (s *Subflow) faster(o *Subflow) bool {
	return s.SRTT > 0 && (o.SRTT == 0 || s.SRTT < o.SRTT)
}

// rtt returns the smoothed RTT; one that is not known yet counts as a second,
// the initial timeout of RFC 6298.
func (s *Subflow) rtt() time.Duration {
	if s.SRTT > 0 {
		return s.SRTT
	}
	return time.Second
}

// Rate returns the bytes/s that the window allows in a round trip: the rate of
// the subflow while the window is in use. It is 0 before the first sample.
func (s *Subflow) Rate() float64 {
	if s.SRTT <= 0 {
		return 0
	}
	return float64(s.Cwnd) / s.SRTT.Seconds()
}

// segment returns the size of a full segment, at least 1.
func (s *Subflow) segment() int { return max(s.MSS, 1) }

// segments returns a number of bytes in full segments of s, rounded up.
func (s *Subflow) segments(bytes int64) int64 {
	m := int64(s.segment())
	return (bytes + m - 1) / m
}

// one returns a decision for one segment on subflow i.
func (v *View) one(i int, why Reason) Decision {
	s := &v.Subflows[i]
	return Decision{Send: 1 << i, Bytes: min(s.segment(), max(s.Room, 1)), Reason: why}
}

func wait(why Reason) Decision { return Decision{Wait: true, Reason: why} }

// forFresh is where policies about new data begin. It answers the other
// questions as minrtt-plain does, and those with less than two subflows to
// choose from. If done is false the policy chooses from set, of which at
// least one has room.
func (v *View) forFresh() (set uint64, d Decision, done bool) {
	if v.Ask == Spare {
		return 0, wait(ReasonNoNeed), true
	}
	set, why := v.Eligible()
	if v.Ask == Lost || why != "" || set&(set-1) == 0 {
		return set, v.leastRTT(set, why), true
	}
	if v.Free(set) == 0 {
		return set, wait(ReasonNoRoom), true
	}
	return set, Decision{}, false
}

// least returns the subflow of set for which cost is least; the first of
// equals.
func (v *View) least(set uint64, cost func(i int) float64) (best int, c float64) {
	best, c = -1, math.Inf(1)
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if x := cost(i); best < 0 || x < c {
			best, c = i, x
		}
	}
	return best, c
}
