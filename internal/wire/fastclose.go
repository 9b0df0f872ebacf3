package wire

// lenFastClose is the length of MP_FASTCLOSE.
const lenFastClose = 12

// parseFastClose reads an MP_FASTCLOSE (RFC 8684, Section 3.5, Figure 14):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-----------------------+
//	|     Kind      |    Length     |Subtype|      (reserved)       |
//	+---------------+---------------+-------+-----------------------+
//	|                   Option Receiver's Key (64 bits)             |
//	+---------------------------------------------------------------+
func (o *Options) parseFastClose(b []byte) bool {
	if len(b) != lenFastClose {
		return false
	}
	copy(o.FastClose[:], b[4:])
	return true
}

func appendFastClose(b []byte, key [8]byte) []byte {
	b = append(b, kindMPTCP, lenFastClose, subFastClose<<4, 0)
	return append(b, key[:]...)
}
