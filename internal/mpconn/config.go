package mpconn

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Config is what a connection is made from. It is not kept.
type Config struct {
	Local, Remote netip.AddrPort // of the first subflow

	Plain     bool                  // plain TCP: no option is sent, a peer's is ignored
	PlainWhy  reason.Fallback       // what Fallback then says; 0 = FallbackRequested
	FlowSize  int64                 // how many bytes the user will write in all; 0 = unknown
	ChangeISS func(seq.SSN) seq.SSN // of the first subflow; nil = as Settings.ISS says

	// FastOpen is the part in TCP Fast Open (RFC 7413), of the first subflow.
	FastOpen subflow.FastOpen
	// Hold has Dial send nothing before the first Write, CloseWrite or Connect.
	Hold bool

	// Key is the local key. The host has made sure that its token is unique.
	Key key.Key

	// SYNsWithMPTCP is how many SYNs carry MP_CAPABLE before plain ones are
	// tried; 0 = 3.
	SYNsWithMPTCP int

	// Settings are not changed, and kept: any number of connections may share them.
	*Settings
}

// Settings are what a connection has in common with others. The host fills in the
// functions; the rest is the user's choice.
type Settings struct {
	Checksum        bool // ask for DSS checksums (flag A)
	DenyJoinInitial bool // ask the peer not to join our initial address (flag C)

	// RequireMPTCP refuses every fallback after the handshake: the connection,
	// or the subflow whose checksum failed, ends instead. A handshake that comes
	// out as plain TCP is the driver's to refuse (EventFallback).
	RequireMPTCP bool
	// FastCloseByACK has Abort say MP_FASTCLOSE on an ACK that the peer must
	// answer (RFC 8684, Section 3.5, option A), not on RSTs only.
	FastCloseByACK bool

	// Subflow holds the knobs of every subflow. A MaxWindow of 0 is what
	// ReadBuffer needs.
	Subflow subflow.Knobs

	Scheduler  scheduler.Factory
	Congestion cc.Factory
	Alloc      stream.Allocator

	// Path returns, for a pair of addresses, the bytes of IP payload a packet
	// may have and the payload of a super-segment (0 = none).
	Path func(local, remote netip.Addr) (mtu, segmentMax int)
	// OwnAddr reports whether an address is one of the host's, which the peer
	// cannot have; nil = only those that the connection uses.
	OwnAddr func(netip.Addr) bool
	// LastResort reports whether a local address is to be used only when no other
	// is left; nil = none is.
	LastResort func(netip.Addr) bool
	// ISS returns the initial sequence number (RFC 6528) and the timestamp
	// offset of a subflow.
	ISS func(now mono.Time, local, remote netip.AddrPort) (seq.SSN, uint32)
	// Rand is the source of nonces.
	Rand func() uint64

	// ReadBuffer and WriteBuffer fix the size of a buffer, in bytes; 0 = tuned:
	// it begins with 256 KiB and grows to twice the sum of the subflows' rates
	// times the largest RTT, at most to MaxBuffer.
	ReadBuffer, WriteBuffer int
	MaxBuffer               int    // bytes each way; 0 = 128 MiB
	Budget                  Budget // memory shared with other connections; nil = no bound

	// MaxSubflows bounds live subflows, the first included; 0 = 8.
	MaxSubflows int
	// MaxRemotes bounds the peer's announced addresses that are kept; 0 = 8.
	MaxRemotes int
	// OrphanTimeout is how long the connection lives without a subflow while
	// another address pair may rescue it; 0 = 60 s, negative = not at all.
	OrphanTimeout time.Duration
	// CloseTimeout bounds the wait for the peer's DATA_FIN after Close, and
	// for the end of the subflows; 0 = 60 s.
	CloseTimeout time.Duration

	knobs *subflow.Knobs // of subflows, every default filled in; nil = of nothing here
}

const (
	defaultMaxBuffer     = 128 << 20
	defaultMaxSubflows   = 8
	defaultMaxRemotes    = 8
	defaultOrphanTimeout = 60 * time.Second
	defaultCloseTimeout  = 60 * time.Second
	defaultSYNsWithMPTCP = 3
)

// Complete returns s with every zero that stands for a default replaced: s itself
// if it came from here.
func (s *Settings) Complete() *Settings {
	if s.knobs != nil {
		return s
	}
	out := *s
	orInt := func(p *int, d int) {
		if *p <= 0 {
			*p = d
		}
	}
	orInt(&out.MaxBuffer, defaultMaxBuffer)
	orInt(&out.MaxSubflows, defaultMaxSubflows)
	orInt(&out.MaxRemotes, defaultMaxRemotes)
	if out.OrphanTimeout == 0 {
		out.OrphanTimeout = defaultOrphanTimeout
	}
	if out.CloseTimeout == 0 {
		out.CloseTimeout = defaultCloseTimeout
	}
	if out.Subflow.MaxWindow == 0 {
		// The window scale follows from it: no coarser than the buffer needs.
		out.Subflow.MaxWindow = out.ReadBuffer
		if out.ReadBuffer <= 0 {
			out.Subflow.MaxWindow = out.MaxBuffer
		}
	}
	out.knobs = out.Subflow.Complete()
	return &out
}
