package mpconn

import "github.com/gomptcp/gomptcp/internal/seq"

// space is one direction's data sequence space. Inside the connection a byte
// is known by its offset in the stream, which starts at 0 and never wraps; a
// DSN appears only where one is written to or read from the wire.
//
// RFC 8684, Section 3.1: the SYN takes the IDSN, so offset 0 is IDSN+1.
type space struct{ base seq.DSN }

// setIDSN starts the space behind the initial data sequence number.
func (s *space) setIDSN(idsn seq.DSN) { s.base = idsn.Add(1) }

// dsn returns the data sequence number of an offset.
func (s *space) dsn(off uint64) seq.DSN { return s.base + seq.DSN(off) }

// place returns the offset of a number of 8 bytes, or of 4 bytes promoted
// near the offset ref. It is negative for numbers before the stream.
func (s *space) place(n uint64, eight bool, ref uint64) int64 {
	if eight {
		return seq.DSN(n).Diff(s.base)
	}
	return seq.Expand(uint32(n), s.dsn(ref)).Diff(s.base)
}
