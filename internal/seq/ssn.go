// Package seq holds the two sequence spaces of MPTCP as types that refuse
// wrong arithmetic: SSN, the 32-bit sequence number of one subflow, and DSN,
// the 64-bit data sequence number of the connection.
package seq

// SSN is a subflow sequence number (RFC 9293, Section 3.4). It wraps at 2^32;
// comparisons are valid for numbers less than 2^31 apart.
type SSN uint32

// Add returns the number n after s.
func (s SSN) Add(n int) SSN { return s + SSN(n) }

// Diff returns the signed distance from t to s.
func (s SSN) Diff(t SSN) int { return int(int32(s - t)) }

// Less reports whether s comes before t.
func (s SSN) Less(t SSN) bool { return int32(s-t) < 0 }

// LessEq reports whether s does not come after t.
func (s SSN) LessEq(t SSN) bool { return int32(s-t) <= 0 }

// In reports whether s lies in [lo, lo+n).
func (s SSN) In(lo SSN, n int) bool { return n > 0 && uint32(s-lo) < uint32(n) }

// Max returns the later of two numbers.
func (s SSN) Max(t SSN) SSN {
	if s.Less(t) {
		return t
	}
	return s
}

// Expand returns the 64-bit offset nearest to ref whose low 32 bits are those
// of s counted from base: the place of s in a stream whose offset 0 is base.
func (s SSN) Expand(base SSN, ref uint64) uint64 {
	return ref + uint64(int64(int32(uint32(s-base)-uint32(ref))))
}
