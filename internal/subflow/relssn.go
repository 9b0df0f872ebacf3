package subflow

import "github.com/gomptcp/gomptcp/internal/seq"

// relSSN is a subflow sequence number as its 64-bit distance from ISS (our
// numbers) or IRS (the peer's): SYN is at 0, the first byte at 1, and FIN one
// past the last byte. It never wraps, and numbers before SYN are negative.
type relSSN int64

// relative returns the number nearest to ref that n stands for, counted from
// the initial number base.
func relative(n, base seq.SSN, ref relSSN) relSSN {
	return relSSN(n.Expand(base, uint64(ref)))
}

// absolute returns the number as it travels, counted from the initial number
// base.
func (r relSSN) absolute(base seq.SSN) seq.SSN { return base + seq.SSN(uint32(r)) }
