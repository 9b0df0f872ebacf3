package reason

import "strconv"

// Limit says what kept a subflow that could be from being opened, or an address
// from being used.
type Limit uint8

// Limits.
const (
	LimitNone      Limit = iota
	LimitSubflows        // the connection has as many subflows as it may
	LimitAddresses       // as many addresses were announced, or taken, as may be
	LimitAddrRate        // the peer announces addresses faster than they are taken
	LimitAddress         // an address that may not be joined, or that is not ours
	LimitWithdrawn       // the peer withdrew the address
	LimitDenied          // the peer's flag C: its initial address is not to be joined
	LimitState           // the connection takes no joins now: it is ending, or not proven
	LimitJoins           // as many joins of the connection are in their handshake as may be
	LimitHalfOpen        // as many joins of the host are
	LimitRoute           // no local address can reach the remote one
	LimitPort            // no free local port
	LimitIDs             // all address ids are given away
	NumLimits
)

var limitNames = [NumLimits]string{
	"none", "most subflows", "most addresses", "addresses announced too fast", "address not joinable",
	"address withdrawn", "initial address denied", "connection takes no joins",
	"most joins pending for the connection", "most joins pending for the host",
	"no route", "no free port", "no free address id",
}

// String returns the limit in words.
func (l Limit) String() string {
	if l < NumLimits {
		return limitNames[l]
	}
	return "limit(" + strconv.Itoa(int(l)) + ")"
}
