// Package interval keeps ordered sets of half-open ranges over uint64, such
// as the selectively acknowledged parts of a stream.
package interval

// Range is the half-open range [Lo, Hi). It is empty when Lo == Hi.
type Range struct{ Lo, Hi uint64 }

// Len returns how many numbers the range holds.
func (r Range) Len() uint64 { return r.Hi - r.Lo }

// Contains reports whether x lies in the range.
func (r Range) Contains(x uint64) bool { return r.Lo <= x && x < r.Hi }

// Set is a set of numbers, kept as the fewest ranges that cover it, in
// ascending order. Lookups cost O(log n) in the number n of ranges; changes
// cost O(1) at either end and move up to n ranges in the middle. A Set keeps
// the memory of its largest extent until Trim, so that it does not allocate in
// the long run, and has no bound of its own: whoever adds what a peer sent must
// count ranges with Len.
//
// Numbers do not wrap, and 2^64-1 cannot be in a set. The zero Set is empty and
// takes one word.
type Set struct{ set *set }

// set is what a Set is once something was added to it.
type set struct {
	buf  []Range // buf[head:] are the ranges
	head int     // slots free at the front
	size uint64  // how many numbers the set holds
}

// none stands for the set of a Set to which nothing was added. Nobody changes it.
var none set

// read returns the set, to be looked at.
func (s *Set) read() *set {
	if s.set == nil {
		return &none
	}
	return s.set
}

// Len returns the number of ranges.
func (s *Set) Len() int { return s.read().len() }

// Size returns how many numbers the set holds.
func (s *Set) Size() uint64 { return s.read().size }

// At returns the i-th range in ascending order, 0 <= i < Len().
func (s *Set) At(i int) Range { return s.read().at(i) }

// All calls yield with each range in ascending order until it returns false.
// The set must not change meanwhile.
func (s *Set) All(yield func(Range) bool) { s.read().all(yield) }

// Clear empties the set and keeps its memory.
func (s *Set) Clear() {
	if s.set != nil {
		s.set.clear()
	}
}

// Trim gives up the memory of an empty set.
func (s *Set) Trim() {
	if s.Len() == 0 {
		s.set = nil
	}
}

// Contains reports whether x is in the set.
func (s *Set) Contains(x uint64) bool {
	r, ok := s.Next(x)
	return ok && r.Lo <= x
}

// Covers reports whether all of [lo, hi) is in the set. An empty range is
// covered by any set.
func (s *Set) Covers(lo, hi uint64) bool {
	return lo >= hi || s.FirstGap(lo) >= hi
}

// Next returns the first range that ends after x: the one that holds x or
// else the next one.
func (s *Set) Next(x uint64) (r Range, ok bool) { return s.read().next(x) }

// FirstGap returns the first number from lo on that is not in the set.
func (s *Set) FirstGap(lo uint64) uint64 {
	if r, ok := s.Next(lo); ok && r.Lo <= lo {
		return r.Hi
	}
	return lo
}

// Add puts [lo, hi) into the set and returns how many of its numbers are new.
func (s *Set) Add(lo, hi uint64) (added uint64) {
	if lo >= hi {
		return 0
	}
	if s.set == nil {
		s.set = new(set)
	}
	return s.set.add(lo, hi)
}

// Remove takes [lo, hi) out of the set and returns how many numbers left it.
func (s *Set) Remove(lo, hi uint64) (removed uint64) {
	if lo >= hi || s.set == nil {
		return 0
	}
	return s.set.remove(lo, hi)
}

func (s *set) len() int { return len(s.buf) - s.head }

func (s *set) at(i int) Range { return s.buf[s.head+i] }

func (s *set) all(yield func(Range) bool) {
	for _, r := range s.buf[s.head:] {
		if !yield(r) {
			return
		}
	}
}

func (s *set) clear() { s.buf, s.head, s.size = s.buf[:0], 0, 0 }

func (s *set) next(x uint64) (r Range, ok bool) {
	i := s.search(x)
	if i < len(s.buf) && s.buf[i].Hi == x {
		i++
	}
	if i == len(s.buf) {
		return Range{}, false
	}
	return s.buf[i], true
}

func (s *set) add(lo, hi uint64) (added uint64) {
	before := s.size
	i := s.search(lo) // the first range that overlaps or touches, if any does
	j := i
	for j < len(s.buf) && s.buf[j].Lo <= hi {
		s.size -= s.buf[j].Len()
		lo, hi = min(lo, s.buf[j].Lo), max(hi, s.buf[j].Hi)
		j++
	}
	s.size += hi - lo
	if i == j {
		i = s.open(i)
	} else {
		i = s.cut(i+1, j) - 1
	}
	s.buf[i] = Range{lo, hi}
	return s.size - before
}

func (s *set) remove(lo, hi uint64) (removed uint64) {
	before := s.size
	i := s.search(lo)
	if i < len(s.buf) && s.buf[i].Hi == lo {
		i++
	}
	if i < len(s.buf) && s.buf[i].Lo < lo { // keeps a left part
		rest := Range{hi, s.buf[i].Hi}
		s.size -= s.buf[i].Hi - lo
		s.buf[i].Hi = lo
		i++
		if rest.Lo < rest.Hi { // and a right one
			i = s.open(i)
			s.buf[i] = rest
			s.size += rest.Len()
			return before - s.size
		}
	}
	j := i
	for j < len(s.buf) && s.buf[j].Hi <= hi {
		s.size -= s.buf[j].Len()
		j++
	}
	if j < len(s.buf) && s.buf[j].Lo < hi { // keeps a right part
		s.size -= hi - s.buf[j].Lo
		s.buf[j].Lo = hi
	}
	s.cut(i, j)
	return before - s.size
}

// search returns the index in buf of the first range that ends at x or later.
func (s *set) search(x uint64) int {
	lo, hi := s.head, len(s.buf)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		if s.buf[m].Hi < x {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// open makes a free slot before index i of buf and returns the slot's index.
func (s *set) open(i int) int {
	if s.head > 0 && i-s.head < len(s.buf)-i {
		copy(s.buf[s.head-1:], s.buf[s.head:i])
		s.head--
		return i - 1
	}
	if len(s.buf) == cap(s.buf) && s.head > len(s.buf)/2 {
		// Reusing the slots free at the front, once they are the larger
		// part, costs less than growing and happens as seldom.
		n := copy(s.buf, s.buf[s.head:])
		s.buf = s.buf[:n]
		i -= s.head
		s.head = 0
	}
	s.buf = append(s.buf, Range{})
	copy(s.buf[i+1:], s.buf[i:])
	return i
}

// cut removes the slots [i, j) of buf and returns where the one at j is then.
func (s *set) cut(i, j int) int {
	if i == j {
		return j
	}
	if i-s.head < len(s.buf)-j {
		copy(s.buf[s.head+j-i:], s.buf[s.head:i])
		s.head += j - i
		return j
	}
	s.buf = append(s.buf[:i], s.buf[j:]...)
	if len(s.buf) == s.head {
		s.buf, s.head = s.buf[:0], 0
	}
	return i
}
