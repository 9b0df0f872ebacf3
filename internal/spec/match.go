package spec

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Match says whether a segment is one that is looked for.
type Match func(*In) bool

func anything(*In) bool { return true }
func isData(in *In) bool {
	return in.PayloadLen() > 0
}
func isRST(in *In) bool { return in.Flags.Has(wire.RST) }
func isFIN(in *In) bool { return in.Flags.Has(wire.FIN) }
func isSYN(in *In) bool { return in.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN }
func isSYNACK(in *In) bool {
	return in.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN|wire.ACK
}

// isPureACK matches an ACK without payload or other flags.
func isPureACK(in *In) bool {
	return in.Flags&(wire.SYN|wire.FIN|wire.RST|wire.ACK) == wire.ACK && in.PayloadLen() == 0
}

// has matches segments with all of the options.
func has(o wire.OptionSet) Match { return func(in *In) bool { return in.Has&o == o } }

// hasMPTCP matches segments with any option of kind 30.
func hasMPTCP(in *In) bool { return in.option(kindMPTCP, anySubtype) != nil }

// acks matches segments that acknowledge everything before n, and nothing
// beyond.
func acks(n seq.SSN) Match {
	return func(in *In) bool { return in.Flags.Has(wire.ACK) && in.Ack == n }
}

// from matches segments at a sequence number.
func at(n seq.SSN) Match { return func(in *In) bool { return in.Seq == n } }

func all(m ...Match) Match {
	return func(in *In) bool {
		return !slices.ContainsFunc(m, func(m Match) bool { return !m(in) })
	}
}

func any1(m ...Match) Match {
	return func(in *In) bool {
		return slices.ContainsFunc(m, func(m Match) bool { return m(in) })
	}
}

func not(m Match) Match { return func(in *In) bool { return !m(in) } }

// joinSYN matches a SYN with MP_JOIN.
var joinSYN = all(isSYN, has(wire.OptMPJoin))

// mapping matches a segment that declares a mapping by DSS or MP_CAPABLE.
func mapping(in *In) bool {
	return in.Has&wire.OptDSS != 0 && in.DSS.Flags&wire.DSSMap != 0 ||
		in.Has&wire.OptMPCapable != 0 && in.Capable.HasData
}

// infinite matches an infinite mapping: RFC 8684, Section 3.3.1: "a
// Data-Level Length field set to the reserved value of 0".
func infinite(in *In) bool {
	return in.Has&wire.OptDSS != 0 && in.DSS.Flags&wire.DSSMap != 0 && in.DSS.Len == 0
}

// hasDataAck matches a segment with a DATA_ACK.
func hasDataAck(in *In) bool {
	return in.Has&wire.OptDSS != 0 && in.DSS.Flags&wire.DSSAck != 0
}

// hasDataFin matches a segment with a DATA_FIN.
func hasDataFin(in *In) bool {
	return in.Has&wire.OptDSS != 0 && in.DSS.Flags&(wire.DSSMap|wire.DSSFin) == wire.DSSMap|wire.DSSFin
}
