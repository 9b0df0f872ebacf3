package wire

// removeHead is the length of kind, length and subtype.
const removeHead = 3

// parse reads a REMOVE_ADDR (RFC 8684, Section 3.4.2, Figure 13):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-------+---------------+
//	|     Kind      |Length = 3 + n |Subtype|(resvd)|  Address ID   | ...
//	+---------------+---------------+-------+-------+---------------+
//	                         (followed by n-1 Address IDs, if required)
func (r *RemoveAddr) parse(b []byte) bool {
	n := len(b) - removeHead
	if n < 1 || n > len(r.IDs) {
		return false
	}
	*r = RemoveAddr{N: uint8(n)}
	copy(r.IDs[:], b[removeHead:])
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (r *RemoveAddr) size() int {
	if r.N == 0 || int(r.N) > len(r.IDs) {
		return 0
	}
	return removeHead + int(r.N)
}

func (r *RemoveAddr) appendTo(b []byte) []byte {
	b = append(b, kindMPTCP, byte(r.size()), subRemoveAddr<<4)
	return append(b, r.IDs[:r.N]...)
}
