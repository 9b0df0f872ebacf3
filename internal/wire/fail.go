package wire

import (
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// lenFail is the length of MP_FAIL.
const lenFail = 12

// parseFail reads an MP_FAIL (RFC 8684, Section 3.7, Figure 16):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+----------------------+
//	|     Kind      |   Length=12   |Subtype|      (reserved)      |
//	+---------------+---------------+-------+----------------------+
//	|                 Data Sequence Number (8 octets)              |
//	+--------------------------------------------------------------+
func (o *Options) parseFail(b []byte) bool {
	if len(b) != lenFail {
		return false
	}
	o.FailDSN = seq.DSN(binary.BigEndian.Uint64(b[4:]))
	return true
}

func appendFail(b []byte, dsn seq.DSN) []byte {
	b = append(b, kindMPTCP, lenFail, subFail<<4, 0)
	return binary.BigEndian.AppendUint64(b, uint64(dsn))
}
