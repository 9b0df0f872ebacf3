package mptcp

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Config says how connections behave. A zero field stands for its default, so
// that the zero Config is usable. A Stack, Dialer or ListenConfig copies what
// it needs: a Config may be changed once it was used, and be shared.
type Config struct {
	// Scheduler makes the scheduler of a connection; nil means the one that
	// scheduler.ByName calls "default".
	Scheduler scheduler.Factory

	// Congestion makes the congestion control of a connection; nil means the
	// one that cc.ByName calls "default".
	Congestion cc.Factory

	// ECN offers and accepts Explicit Congestion Notification (RFC 3168).
	// Congestion controls that live on marks, as cc.ECNUser tells, do it
	// without being told.
	ECN bool

	// PathManager makes the path manager of a connection; nil means
	// "fullmesh": the side that opened the connection opens a subflow from
	// each of its addresses to each of the peer's.
	PathManager PathManagerFactory

	// Plain asks for plain TCP. Listeners then ignore that a peer offers
	// MPTCP.
	Plain bool

	// Fallback says what to do when the peer, or the path, does not support
	// MPTCP.
	Fallback FallbackPolicy

	// Checksum asks for DSS checksums, which detect boxes that change data on
	// the way at the cost of a pass over all data. They are used if either
	// side asks. Deviation: RFC 8684, Section 3.1, wants them by default;
	// Linux has them off by default, too.
	Checksum bool

	// DenyJoinInitial asks peers not to open further subflows to the address
	// and port here that a connection began with, but only to those that are
	// announced: for a server behind a load balancer, which would send them
	// elsewhere (flag C of RFC 8684, Section 3.1).
	DenyJoinInitial bool

	// FastCloseByACK has a connection that is aborted (Close with unread data,
	// or with SetLinger(0)) say so by MP_FASTCLOSE on an ACK, which is repeated
	// until the peer answers, three times at most, before state is given up
	// (option A of RFC 8684, Section 3.5). By default, as in Linux, RSTs say it
	// on all subflows at once and are not repeated (option R).
	FastCloseByACK bool

	// Pacing spreads what a subflow sends over its round trip, also where the
	// congestion control does not ask for it: at twice the congestion window a
	// round trip in slow start and 1.2 times afterwards. Slow paths and shallow
	// queues then see fewer bursts, at the cost of more timers.
	Pacing bool

	// FastOpen takes part in TCP Fast Open (RFC 7413), with MPTCP as in RFC
	// 8684, Appendix B: the first bytes of a connection go along with its SYN, and
	// the answer to them comes one round trip earlier. The first connection to an
	// address asks for a cookie and is an ordinary one; later ones use it.
	//
	// A dial for which a cookie is known returns at once, before anything is
	// sent: the SYN leaves with the first Write, or without data when Read has
	// waited for 5 ms or CloseWrite is called, and that the peer does not answer is
	// the error of a later Read or Write. Where data on a SYN does not pass, or
	// comes to nothing, it is sent again in the ordinary way, and other dials are
	// ordinary ones for a minute or more.
	//
	// Linux (6.18) gains nothing from MPTCP and a fast open together: as a server
	// it holds an answer back that is ready before the third ACK, and as a client
	// it goes on with plain TCP after such an answer.
	//
	// A listener gives connections to Accept, with their first bytes, before the
	// peer's address is proven by more than the cookie; half as many as Backlog
	// says may be in that state.
	//
	// Data on a SYN may be delivered twice: when the network duplicates the SYN
	// and the copy arrives after the connection has ended, it opens another. RFC
	// 7413, Section 6.1: "a client that cannot handle receiving the same SYN data
	// more than once MUST NOT enable TFO to send data in a SYN", and no more may
	// such a server. What begins with TLS can, or with a request that changes
	// nothing.
	FastOpen bool

	// MaxSubflows is how many subflows a connection may have, the first
	// included; 0 means 8, at most 64.
	MaxSubflows int

	// MaxRemotes is how many addresses that the peer announces are kept; 0
	// means 8, at most 64.
	MaxRemotes int

	// ReadBuffer is how many bytes of a connection may wait to be read, those
	// that arrived out of order included; at least 4 KiB, at most 1 GiB. 0
	// means as many as it takes: 256 KiB at first, then twice what the
	// subflows deliver in the longest of their round trips, up to 128 MiB, as
	// far as Memory goes.
	ReadBuffer int

	// WriteBuffer is the same for bytes that wait to be sent and acknowledged.
	// Bytes that the peer has got by one subflow, but of which a slower one has
	// yet to get an acknowledgment, are kept besides; all memory that a
	// connection holds for sending is at most twice WriteBuffer and three
	// blocks of the Network's allocator (64 KiB each).
	WriteBuffer int

	// Memory is how many bytes the buffers of all connections of a Stack may
	// hold beyond what a connection is always granted: 256 KiB each way, as much
	// again for sending while a slow subflow has yet to acknowledge it, and three
	// blocks. 0 means 1 GiB. Only the Config given to NewStack counts.
	Memory int

	// UserTimeout ends a subflow on which data stays unacknowledged for so
	// long (RFC 5482); 0 means not before 15 retransmissions.
	UserTimeout time.Duration

	// Announce are further addresses at which this side of a connection can
	// be joined, as its peer sees them: for servers behind address
	// translation or a load balancer. Port 0 is that of the connection. Joins
	// to them arrive at other addresses here; which belongs to which shows when
	// the first one comes, if their number or ports leave no doubt.
	Announce []netip.AddrPort

	// OrphanTimeout is how long a connection without any live subflow waits
	// for another to be opened; 0 means 60 s, negative not at all. Plain TCP
	// never waits. A RST ends its subflow only, the last one too (RFC 8684,
	// Section 3.5), but the wait is over when the peer then refuses another
	// at its only address, as one does that has forgotten the connection.
	OrphanTimeout time.Duration

	// KeepAlive is how long a subflow must be idle before it is probed, and
	// the time between probes, the ninth of which ends it; 0 means 15 s,
	// negative no probes.
	KeepAlive time.Duration

	// Logger is told about connections: at level Info that they begin and
	// end, at Warn that they fall back to plain TCP, at Debug about their
	// subflows. Nil means silence.
	Logger *slog.Logger

	// Trace is told about connections and, if asked, every segment.
	Trace *Trace
}

// FallbackPolicy says whether plain TCP will do where MPTCP is not possible.
type FallbackPolicy uint8

// Policies.
const (
	FallbackAllow  FallbackPolicy = iota // go on with plain TCP
	FallbackRefuse                       // end the connection with ErrFallback
)

// Bounds and defaults of a Config.
const (
	minBuffer     = 4 << 10
	maxBuffer     = 1 << 30
	defaultMemory = 1 << 30
)

// Clone returns a copy of c.
func (c *Config) Clone() *Config {
	d := *c
	return &d
}

// Validate reports the first field that is out of range.
func (c *Config) Validate() error {
	for _, f := range []struct {
		field              string
		value, least, most int
	}{
		{"MaxSubflows", c.MaxSubflows, 1, scheduler.MaxSubflows},
		{"MaxRemotes", c.MaxRemotes, 1, 64},
		{"ReadBuffer", c.ReadBuffer, minBuffer, maxBuffer},
		{"WriteBuffer", c.WriteBuffer, minBuffer, maxBuffer},
		{"Memory", c.Memory, minBuffer, math.MaxInt},
	} {
		if f.value != 0 && (f.value < f.least || f.value > f.most) {
			return fmt.Errorf("mptcp: Config.%s %d is neither 0 nor between %d and %d", f.field, f.value, f.least, f.most)
		}
	}
	if c.Fallback > FallbackRefuse {
		return fmt.Errorf("mptcp: Config.Fallback %d is unknown", c.Fallback)
	}
	return nil
}

// forHost returns the configuration in the form that the host takes.
func (c *Config) forHost() (host.ConnConfig, error) {
	if err := c.Validate(); err != nil {
		return host.ConnConfig{}, err
	}
	hc := host.ConnConfig{
		Plain:           c.Plain,
		RequireMPTCP:    !c.Plain && c.Fallback == FallbackRefuse,
		Checksum:        c.Checksum,
		DenyJoinInitial: c.DenyJoinInitial,
		FastCloseByACK:  c.FastCloseByACK,
		FastOpen:        c.FastOpen,
		Scheduler:       c.Scheduler,
		Congestion:      c.Congestion,
		PathManager:     c.PathManager,
		Limits:          pathmgr.Limits{Subflows: c.MaxSubflows, Accepted: c.MaxRemotes},
		ReadBuffer:      c.ReadBuffer,
		WriteBuffer:     c.WriteBuffer,
		OrphanTimeout:   c.OrphanTimeout,
	}
	hc.Subflow.UserTimeout = c.UserTimeout
	hc.Subflow.ECN, hc.Subflow.Pacing = c.ECN, c.Pacing
	hc.Subflow.PutOff = true // Read says when it waits
	keep := newKeepAlive(c.KeepAlive)
	keep.forHost(&hc)
	var err error
	if hc.Scheduler == nil {
		if hc.Scheduler, err = scheduler.ByName("default"); err != nil {
			return hc, err
		}
	}
	if hc.Congestion == nil {
		if hc.Congestion, err = cc.ByName("default"); err != nil {
			return hc, err
		}
	}
	if hc.PathManager == nil {
		if hc.PathManager, err = pathmgr.ByName(pathmgr.Default); err != nil {
			return hc, err
		}
	}
	if len(c.Announce) > 0 {
		hc.PathManager = pathmgr.Announcing(hc.PathManager, c.Announce)
	}
	return hc, nil
}
