package timer

import (
	"math/bits"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Kinds is how many kinds one Table can hold; a K must be less.
const Kinds = 10

// Table holds at most one deadline for each kind K, an enumeration that
// starts at 0. The zero Table has none set. Setting a kind beyond Kinds
// panics.
type Table[K ~uint8] struct {
	at    [Kinds]mono.Time
	set   uint16 // bit k: at[k] is set
	first K      // the earliest of those, unless stale
	stale bool
}

// Set makes at the deadline of k, in place of an earlier one. The zero
// instant stops it.
func (t *Table[K]) Set(k K, at mono.Time) {
	if !at.Set() {
		t.Stop(k)
		return
	}
	old := t.at[t.first]
	t.at[k] = at
	switch {
	case t.set == 0:
		t.first, t.stale = k, false
	case t.stale:
	case k == t.first:
		t.stale = old.Before(at)
	case at.Before(old), at == old && k < t.first:
		t.first = k
	}
	t.set |= 1 << k
}

// Stop takes the deadline of k away.
func (t *Table[K]) Stop(k K) {
	t.at[k] = 0
	t.set &^= 1 << k
	t.stale = t.stale || k == t.first
}

// StopAll takes all deadlines away.
func (t *Table[K]) StopAll() { *t = Table[K]{} }

// At returns the deadline of k, zero if it has none.
func (t *Table[K]) At(k K) mono.Time { return t.at[k] }

// Next returns the earliest deadline, zero if none is set.
func (t *Table[K]) Next() mono.Time {
	_, at := t.earliest()
	return at
}

// Expired returns the kind whose deadline has come at now and clears it: the
// earliest first, among equals the lowest kind. Call it until ok is false.
func (t *Table[K]) Expired(now mono.Time) (k K, ok bool) {
	k, at := t.earliest()
	if !at.Reached(now) {
		return 0, false
	}
	t.Stop(k)
	return k, true
}

// earliest returns the kind with the earliest deadline, among equals the
// lowest; the instant is zero if there is none.
func (t *Table[K]) earliest() (k K, at mono.Time) {
	if !t.stale {
		return t.first, t.at[t.first]
	}
	for set := t.set; set != 0; set &= set - 1 {
		i := bits.TrailingZeros16(set)
		if !at.Set() || t.at[i].Before(at) {
			k, at = K(i), t.at[i]
		}
	}
	t.first, t.stale = k, false
	return k, at
}
