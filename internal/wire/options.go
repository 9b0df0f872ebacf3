package wire

import (
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
)

// OptionSet is a set of TCP and MPTCP options. A field of Options is
// meaningful only while its bit is in Options.Has.
type OptionSet uint32

// Members of an OptionSet.
const (
	OptMSS OptionSet = 1 << iota
	OptWScale
	OptSACKPermitted
	OptSACK
	OptTimestamps
	OptFastOpen
	OptMPCapable
	OptMPJoin
	OptDSS
	OptAddAddr
	OptRemoveAddr
	OptMPPrio
	OptMPFail
	OptFastClose
	OptMPTCPRst

	// OptMPTCP are all options of kind 30.
	OptMPTCP = OptMPCapable | OptMPJoin | OptDSS | OptAddAddr | OptRemoveAddr | OptMPPrio | OptMPFail | OptFastClose | OptMPTCPRst
)

// Options are the options of one segment in fixed memory. The zero value is
// a segment without options.
type Options struct {
	Has OptionSet // present and well-formed
	Bad OptionSet // present but malformed; the fields are not filled in

	MSS     uint16
	WScale  uint8 // shift count as received; RFC 7323 caps its use at 14
	NumSACK uint8
	SACK    [4]SACKBlock

	TSVal, TSEcr uint32

	FastOpen FastOpen

	Capable    MPCapable
	Join       MPJoin
	DSS        DSS
	AddAddr    AddAddr
	RemoveAddr RemoveAddr
	PrioBackup bool    // MP_PRIO: B flag
	FailDSN    seq.DSN // MP_FAIL: data sequence number
	FastClose  [8]byte // MP_FASTCLOSE: receiver's key
	TCPRst     TCPRst
}

// Reset empties the options. Fields keep stale values that Has no longer
// covers.
func (o *Options) Reset() { o.Has, o.Bad, o.NumSACK = 0, 0, 0 }

// Equal reports whether o and p hold the same options with the same fields;
// order and padding on the wire do not count.
func (o *Options) Equal(p *Options) bool {
	if o.Has != p.Has || o.Bad != p.Bad {
		return false
	}
	return o.equalTCP(p) && (o.Has&OptMPTCP == 0 || o.equalMPTCP(p))
}

func (o *Options) equalTCP(p *Options) bool {
	h := o.Has
	return (h&OptMSS == 0 || o.MSS == p.MSS) &&
		(h&OptWScale == 0 || o.WScale == p.WScale) &&
		(h&OptSACK == 0 || o.NumSACK == p.NumSACK && slices.Equal(o.SACK[:o.sackBlocks()], p.SACK[:p.sackBlocks()])) &&
		(h&OptTimestamps == 0 || o.TSVal == p.TSVal && o.TSEcr == p.TSEcr) &&
		(h&OptFastOpen == 0 || o.FastOpen == p.FastOpen)
}

func (o *Options) equalMPTCP(p *Options) bool {
	h := o.Has
	return (h&OptMPCapable == 0 || o.Capable == p.Capable) &&
		(h&OptMPJoin == 0 || o.Join == p.Join) &&
		(h&OptDSS == 0 || o.DSS == p.DSS) &&
		(h&OptAddAddr == 0 || o.AddAddr == p.AddAddr) &&
		(h&OptRemoveAddr == 0 || o.RemoveAddr == p.RemoveAddr) &&
		(h&OptMPPrio == 0 || o.PrioBackup == p.PrioBackup) &&
		(h&OptMPFail == 0 || o.FailDSN == p.FailDSN) &&
		(h&OptFastClose == 0 || o.FastClose == p.FastClose) &&
		(h&OptMPTCPRst == 0 || o.TCPRst == p.TCPRst)
}

// SACKBlock is a received range [Left, Right) (RFC 2018, Section 3).
type SACKBlock struct{ Left, Right seq.SSN }

// FastOpen is a TCP Fast Open option (RFC 7413, Section 4.1.1): a cookie, or
// with Len 0 a request for one.
type FastOpen struct {
	Cookie [16]byte
	Len    uint8
}

// CapableFlags are the flag bits of MP_CAPABLE (RFC 8684, Section 3.1).
type CapableFlags uint8

// Flag bits of MP_CAPABLE.
const (
	CapChecksum   CapableFlags = 0x80 // A: DSS checksum required
	CapExtension  CapableFlags = 0x40 // B: must be 0
	CapDenyJoin   CapableFlags = 0x20 // C: no joins to the source address and port
	CapHMACSHA256 CapableFlags = 0x01 // H
	CapAlgorithms CapableFlags = 0x1f // D to H
)

// MPCapable is an MP_CAPABLE option. Its form follows from Keys, HasData and
// HasChecksum: 4 bytes without a key (SYN), 12 with one (SYN/ACK), 20 with
// two (ACK), 22 or 24 with two and a data length (first data).
type MPCapable struct {
	Version     uint8
	Flags       CapableFlags
	Keys        uint8 // 0, 1 or 2
	HasData     bool
	HasChecksum bool // with HasData only
	SenderKey   [8]byte
	ReceiverKey [8]byte
	DataLen     uint16
	Checksum    uint16
}

// JoinForm tells the three MP_JOIN options apart.
type JoinForm uint8

// Forms of MP_JOIN (RFC 8684, Section 3.2).
const (
	JoinSYN    JoinForm = iota + 1 // 12 bytes: token and nonce
	JoinSYNACK                     // 16 bytes: truncated HMAC and nonce
	JoinACK                        // 24 bytes: HMAC
)

// MPJoin is an MP_JOIN option in one of its forms.
type MPJoin struct {
	Form   JoinForm
	Backup bool     // SYN and SYN/ACK
	AddrID uint8    // SYN and SYN/ACK
	Token  uint32   // SYN
	Nonce  uint32   // SYN and SYN/ACK
	HMAC   [20]byte // SYN/ACK: the first 8 bytes; ACK: all
}

// DSSFlags say which parts a DSS option has (RFC 8684, Section 3.3).
type DSSFlags uint8

// Flag bits of DSS, as on the wire.
const (
	DSSAck   DSSFlags = 0x01 // A: DATA_ACK present
	DSSAck8  DSSFlags = 0x02 // a: DATA_ACK has 8 bytes
	DSSMap   DSSFlags = 0x04 // M: DSN, SSN, length present
	DSSDSN8  DSSFlags = 0x08 // m: DSN has 8 bytes
	DSSFin   DSSFlags = 0x10 // F: DATA_FIN
	dssKnown          = DSSAck | DSSAck8 | DSSMap | DSSDSN8 | DSSFin
)

// DSS is a Data Sequence Signal option. Numbers of four bytes stand in the
// low half of Ack and DSN; whoever knows the connection promotes them.
type DSS struct {
	Flags       DSSFlags
	HasChecksum bool
	Ack         uint64
	DSN         uint64
	SSN         uint32 // relative to the subflow's ISS
	Len         uint16 // data-level length; 0 is an infinite mapping
	Checksum    uint16
}

// AddAddr is an ADD_ADDR option (RFC 8684, Section 3.4.1). Port 0 means no
// port. An echo has no HMAC.
type AddAddr struct {
	Echo bool
	ID   uint8
	Addr netip.Addr
	Port uint16
	HMAC [8]byte
}

// RemoveAddr is a REMOVE_ADDR option (RFC 8684, Section 3.4.2).
type RemoveAddr struct {
	N   uint8
	IDs [37]uint8 // as many as fit into 40 bytes
}

// TCPRst is an MP_TCPRST option (RFC 8684, Section 3.6).
type TCPRst struct {
	Transient bool // T
	Reason    reason.Reset
}
