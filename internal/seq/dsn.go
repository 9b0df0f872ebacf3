package seq

// DSN is a data sequence number (RFC 8684, Section 3.3.1). It is always kept
// with 64 bits, whatever form travels; it wraps at 2^64.
type DSN uint64

// Add returns the number n after d.
func (d DSN) Add(n int) DSN { return d + DSN(n) }

// Diff returns the signed distance from e to d.
func (d DSN) Diff(e DSN) int64 { return int64(d - e) }

// Less reports whether d comes before e.
func (d DSN) Less(e DSN) bool { return int64(d-e) < 0 }

// LessEq reports whether d does not come after e.
func (d DSN) LessEq(e DSN) bool { return int64(d-e) <= 0 }

// Max returns the later of two numbers.
func (d DSN) Max(e DSN) DSN {
	if d.Less(e) {
		return e
	}
	return d
}

// Min returns the earlier of two numbers.
func (d DSN) Min(e DSN) DSN {
	if d.Less(e) {
		return d
	}
	return e
}

// Expand returns the DSN nearest to ref whose low 32 bits are low.
//
// RFC 8684, Section 3.3.1: "Implementations MUST accept a 32-bit DSN and
// implicitly promote it to a 64-bit quantity". The nearest candidate makes
// reordering across the wrap come out right on both sides of it.
func Expand(low uint32, ref DSN) DSN {
	return ref + DSN(int64(int32(low-uint32(ref))))
}
