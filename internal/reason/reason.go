// Package reason names why something was dropped, reset or fell back. The
// core acts on peer input and reports a reason; it never returns an error.
package reason

import "strconv"

// Drop says why a segment, or a part of one, was ignored.
type Drop uint8

// Reasons to drop.
const (
	DropNone          Drop = iota
	DropShort              // header cut short
	DropOffset             // data offset outside the segment
	DropOption             // option list malformed
	DropAddress            // an address that cannot be a peer
	DropNoConn             // no connection and no listener
	DropBacklog            // listener's backlog full
	DropInbox              // connection's inbox full
	DropOutOfWindow        // sequence number outside the window
	DropBadAck             // acknowledges what was never sent
	DropPAWS               // timestamp too old (RFC 7323, Section 5)
	DropNoAck              // no ACK where one is required
	DropState              // not expected in this state
	DropRSTChallenge       // RST not exactly at RCV.NXT (RFC 5961)
	DropSYNChallenge       // SYN on a synchronized connection (RFC 5961)
	DropDuplicateData      // bytes received before
	DropUnmapped           // payload without a mapping
	DropDataWindow         // DSN outside the data-level window
	DropMapping            // mapping that contradicts another
	DropToken              // MP_JOIN with an unknown token
	DropHMAC               // HMAC does not verify
	DropLimit              // a configured limit was reached
	DropKey                // MP_FASTCLOSE with a wrong key
	DropNoRoute            // network has no way to the destination
	DropMemory             // memory budget used up
	NumDrops
)

// Drops counts by reason. It is nil until the first one, as a connection that
// all goes well with needs none.
type Drops map[Drop]uint64

// Count adds one.
func (c *Drops) Count(d Drop) {
	if *c == nil {
		*c = make(Drops)
	}
	(*c)[d]++
}

// Add adds all counts of b.
func (c *Drops) Add(b Drops) {
	if *c == nil && len(b) > 0 {
		*c = make(Drops)
	}
	for d, n := range b {
		(*c)[d] += n
	}
}

var dropNames = [NumDrops]string{
	"none", "short header", "bad data offset", "malformed option", "bad address",
	"no connection", "backlog full", "inbox full", "outside the window", "bad acknowledgment",
	"old timestamp", "no acknowledgment", "unexpected in state", "rst challenged", "syn challenged",
	"duplicate data", "unmapped data", "outside the data window", "contradicting mapping",
	"unknown token", "bad hmac", "limit reached", "wrong key", "no route", "out of memory",
}

// String returns the reason in words.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop(" + strconv.Itoa(int(d)) + ")"
}

// Reset is a reason code of MP_TCPRST (RFC 8684, Section 3.6).
type Reset uint8

// Reason codes of the MPTCP TCP RST Reason Codes registry.
const (
	ResetUnspecified Reset = 0
	ResetMPTCP       Reset = 1 // MPTCP-specific error
	ResetResources   Reset = 2 // lack of resources
	ResetProhibited  Reset = 3 // administratively prohibited
	ResetOutstanding Reset = 4 // too much outstanding data
	ResetPerformance Reset = 5 // unacceptable performance
	ResetMiddlebox   Reset = 6 // middlebox interference
)

var resetNames = [...]string{
	"unspecified", "mptcp-specific error", "lack of resources", "administratively prohibited",
	"too much outstanding data", "unacceptable performance", "middlebox interference",
}

// String returns the code in words.
func (r Reset) String() string {
	if int(r) < len(resetNames) {
		return resetNames[r]
	}
	return "reset(" + strconv.Itoa(int(r)) + ")"
}

// Fallback says why a connection continues as plain TCP (RFC 8684,
// Section 3.7).
type Fallback uint8

// Reasons to fall back.
const (
	FallbackNone       Fallback = iota
	FallbackRequested           // local configuration asked for plain TCP
	FallbackPeerSYN             // peer's SYN had no usable MP_CAPABLE
	FallbackPeerSYNACK          // peer's SYN/ACK had no usable MP_CAPABLE
	FallbackThirdACK            // third ACK or first data had no MP_CAPABLE
	FallbackBadKeys             // third ACK echoed wrong keys
	FallbackNoDataACK           // first data acknowledged without a DATA_ACK
	FallbackNoMapping           // data came without any mapping at the start
	FallbackInfinite            // peer sent an infinite mapping
	FallbackChecksum            // DSS checksum failed on the only subflow
	FallbackSYNTimeout          // SYNs with MP_CAPABLE stayed unanswered
	FallbackCollision           // no key without a token collision was found
	FallbackBlackhole           // destination is remembered as dropping MPTCP
	NumFallbacks
)

var fallbackNames = [NumFallbacks]string{
	"none", "requested", "peer's syn without mp_capable", "peer's syn/ack without mp_capable",
	"third ack without mp_capable", "third ack with wrong keys", "data acknowledged without data_ack",
	"data without mapping", "infinite mapping", "dss checksum", "syn with mp_capable unanswered",
	"token collision", "destination drops mptcp",
}

// String returns the reason in words.
func (f Fallback) String() string {
	if f < NumFallbacks {
		return fallbackNames[f]
	}
	return "fallback(" + strconv.Itoa(int(f)) + ")"
}

// Close says how a subflow or a connection ended.
type Close uint8

// Ways to end.
const (
	CloseNone        Close = iota
	CloseDone              // both directions closed in order
	CloseRemoteReset       // the peer sent RST
	CloseLocalReset        // we sent RST
	CloseRefused           // the peer answered our SYN with RST
	CloseTimeout           // retransmissions stayed unanswered
	CloseKeepalive         // keepalive probes stayed unanswered
	CloseUnreachable       // the network reported the destination unreachable
	CloseFastClose         // the peer sent MP_FASTCLOSE
	CloseHandshake         // MP_JOIN handshake failed
	CloseOrphan            // no subflow left for OrphanTimeout
	CloseAddressGone       // the local address went away
	CloseCommand           // closed by the application or the path manager
	NumCloses
)

var closeNames = [NumCloses]string{
	"none", "closed", "reset by peer", "reset locally", "refused", "timed out", "keepalive timed out",
	"unreachable", "fast close by peer", "join handshake", "no subflow left", "address gone", "command",
}

// String returns the reason in words.
func (c Close) String() string {
	if c < NumCloses {
		return closeNames[c]
	}
	return "close(" + strconv.Itoa(int(c)) + ")"
}
