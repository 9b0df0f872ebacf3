package scheduler

// Reasons that policies share.
const (
	ReasonNoSubflow Reason = "no subflow"
	ReasonNoRoom    Reason = "no room"
	ReasonBackup    Reason = "backup"
	ReasonRepeat    Reason = "carried by all"
	ReasonStale     Reason = "only stale subflows"
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
	if v.Reinject && v.Carried>>i&1 != 0 {
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

// eligible returns the subflows of the best rank that any subflow has, as a
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
func (v *View) eligible() (set uint64, why Reason) {
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

func wait(why Reason) Decision { return Decision{Wait: true, Reason: why} }
