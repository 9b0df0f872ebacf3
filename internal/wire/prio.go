package wire

// lenPrio is the length of MP_PRIO. The 4-byte form of version 0, with an
// address id, is malformed here.
const lenPrio = 3

// prioBackup is the B flag in the third byte.
const prioBackup = 0x01

// parsePrio reads an MP_PRIO (RFC 8684, Section 3.3.8, Figure 11):
//
//	 0                   1                   2
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3
//	+---------------+---------------+-------+-----+-+
//	|     Kind      |   Length = 3  |Subtype|(rsv)|B|
//	+---------------+---------------+-------+-----+-+
func (o *Options) parsePrio(b []byte) bool {
	if len(b) != lenPrio {
		return false
	}
	o.PrioBackup = b[2]&prioBackup != 0
	return true
}

func appendPrio(b []byte, backup bool) []byte {
	head := byte(subPrio << 4)
	if backup {
		head |= prioBackup
	}
	return append(b, kindMPTCP, lenPrio, head)
}
