package wire

import "encoding/binary"

// Lengths of MP_JOIN by handshake step.
const (
	lenJoinSYN    = 12
	lenJoinSYNACK = 16
	lenJoinACK    = 24
)

// joinBackup is the B flag in the third byte.
const joinBackup = 0x01

// lenShortHMAC is how much of the HMAC the SYN/ACK and ADD_ADDR carry.
const lenShortHMAC = 8

// parse reads an MP_JOIN (RFC 8684, Section 3.2, Figures 5 to 7); its length
// tells the form:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------+-----+-+---------------+
//	|     Kind      |  Length = 12  |Subtype|(rsv)|B|   Address ID  |  SYN
//	+---------------+---------------+-------+-----+-+---------------+
//	|                   Receiver's Token (32 bits)                  |
//	+---------------------------------------------------------------+
//	|                Sender's Random Number (32 bits)               |
//	+---------------------------------------------------------------+
//
//	+---------------+---------------+-------+-----+-+---------------+
//	|     Kind      |  Length = 16  |Subtype|(rsv)|B|   Address ID  |  SYN/ACK
//	+---------------+---------------+-------+-----+-+---------------+
//	|              Sender's Truncated HMAC (64 bits)                |
//	+---------------------------------------------------------------+
//	|                Sender's Random Number (32 bits)               |
//	+---------------------------------------------------------------+
//
//	+---------------+---------------+-------+-----------------------+
//	|     Kind      |  Length = 24  |Subtype|      (reserved)       |  ACK
//	+---------------+---------------+-------+-----------------------+
//	|                   Sender's HMAC (160 bits)                    |
//	+---------------------------------------------------------------+
func (j *MPJoin) parse(b []byte) bool {
	switch len(b) {
	case lenJoinSYN:
		*j = MPJoin{
			Form: JoinSYN, Backup: b[2]&joinBackup != 0, AddrID: b[3],
			Token: binary.BigEndian.Uint32(b[4:]), Nonce: binary.BigEndian.Uint32(b[8:]),
		}
	case lenJoinSYNACK:
		*j = MPJoin{
			Form: JoinSYNACK, Backup: b[2]&joinBackup != 0, AddrID: b[3],
			Nonce: binary.BigEndian.Uint32(b[12:]),
		}
		copy(j.HMAC[:lenShortHMAC], b[4:])
	case lenJoinACK:
		*j = MPJoin{Form: JoinACK}
		copy(j.HMAC[:], b[4:])
	default:
		return false
	}
	return true
}

// size returns the option's length, 0 if it cannot be sent.
func (j *MPJoin) size() int {
	switch j.Form {
	case JoinSYN:
		return lenJoinSYN
	case JoinSYNACK:
		return lenJoinSYNACK
	case JoinACK:
		return lenJoinACK
	}
	return 0
}

func (j *MPJoin) appendTo(b []byte) []byte {
	head := byte(subJoin << 4)
	if j.Form == JoinACK {
		b = append(b, kindMPTCP, lenJoinACK, head, 0)
		return append(b, j.HMAC[:]...)
	}
	if j.Backup {
		head |= joinBackup
	}
	b = append(b, kindMPTCP, byte(j.size()), head, j.AddrID)
	if j.Form == JoinSYN {
		b = binary.BigEndian.AppendUint32(b, j.Token)
	} else {
		b = append(b, j.HMAC[:lenShortHMAC]...)
	}
	return binary.BigEndian.AppendUint32(b, j.Nonce)
}
