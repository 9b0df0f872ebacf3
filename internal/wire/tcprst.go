package wire

import "github.com/gomptcp/gomptcp/internal/reason"

// lenTCPRst is the length of MP_TCPRST.
const lenTCPRst = 4

// rstTransient is the T flag in the third byte.
const rstTransient = 0x01

// parse reads an MP_TCPRST (RFC 8684, Section 3.6, Figure 15):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-+-+-+-+---------------+
//	|     Kind      |    Length     |Subtype|U|V|W|T|    Reason     |
//	+---------------+---------------+-------+-+-+-+-+---------------+
//
// Flags U, V and W are unassigned: sent as 0 and ignored.
func (r *TCPRst) parse(b []byte) bool {
	if len(b) != lenTCPRst {
		return false
	}
	*r = TCPRst{Transient: b[2]&rstTransient != 0, Reason: reason.Reset(b[3])}
	return true
}

func (r *TCPRst) appendTo(b []byte) []byte {
	head := byte(subTCPRst << 4)
	if r.Transient {
		head |= rstTransient
	}
	return append(b, kindMPTCP, lenTCPRst, head, byte(r.Reason))
}
