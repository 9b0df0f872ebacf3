package host

import (
	"errors"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Errors of Dial, Listen and Open.
var (
	ErrNoRoute   = errors.New("no local address can reach the destination")
	ErrNoPort    = errors.New("no free local port")
	ErrAddrInUse = errors.New("address in use")
	ErrNoKey     = errors.New("no unique key found, and MPTCP is required")
	ErrNotOpened = errors.New("connection takes no further subflow")
)

// Config is what a host is made from. The functions must not call back. Rand,
// Path and Locals are called by connections too, which hold their own lock only,
// so that in a driver with several threads they must be safe for concurrent
// use.
type Config struct {
	// Rand is the source of keys, nonces and ports: a cryptographic one,
	// except in simulations.
	Rand func() uint64
	// Secret keys the initial sequence numbers (RFC 6528).
	Secret key.Secret
	// Path returns, for a pair of addresses, the bytes of IP payload a packet
	// may have and the payload of a super-segment (0 = none).
	Path func(local, remote netip.Addr) (mtu, segmentMax int)
	// Routable reports whether the network can send from local to remote.
	Routable func(local, remote netip.Addr) bool
	// Locals returns the usable local addresses, best first. The result is
	// not kept.
	Locals func() []pathmgr.Local
	// Alloc supplies memory for outgoing bytes.
	Alloc stream.Allocator
	// Budget bounds the buffers of all connections together; nil = no bound.
	// Connections call it under their own lock only.
	Budget mpconn.Budget

	EphemeralLo, EphemeralHi uint16        // range of chosen ports; 0 = 32768 to 60999
	TimeWait                 time.Duration // 0 = 60 s
	MaxTimeWait              int           // subflows in TIME-WAIT at most; 0 = 16384

	// MaxHalfOpen is how many connections of all listeners may be in their
	// handshake before SYNs are answered by cookies, and how many joins may;
	// 0 = 1024.
	MaxHalfOpen int

	// Observe, if set, is told every event of every connection after the
	// tables have followed it. It must not call back.
	Observe func(now mono.Time, c *Conn, e mpconn.Event)
}

// withDefaults returns the configuration with every zero replaced.
func (cfg Config) withDefaults() Config {
	if cfg.EphemeralLo == 0 {
		cfg.EphemeralLo = defaultEphemeralLo
	}
	if cfg.EphemeralHi == 0 {
		cfg.EphemeralHi = defaultEphemeralHi
	}
	cfg.EphemeralHi = max(cfg.EphemeralHi, cfg.EphemeralLo)
	if cfg.TimeWait <= 0 {
		cfg.TimeWait = defaultTimeWait
	}
	if cfg.MaxTimeWait <= 0 {
		cfg.MaxTimeWait = defaultMaxTimeWait
	}
	if cfg.MaxHalfOpen <= 0 {
		cfg.MaxHalfOpen = defaultMaxHalfOpen
	}
	return cfg
}

// ConnConfig is what the user chooses for a connection, or for those of a
// listener.
type ConnConfig struct {
	Plain           bool // plain TCP
	RequireMPTCP    bool // end the connection rather than fall back to plain TCP
	Checksum        bool // ask for DSS checksums
	DenyJoinInitial bool // ask peers not to join the first subflow's address and port here
	FastCloseByACK  bool // abort by MP_FASTCLOSE on an ACK, which the peer must answer
	FastOpen        bool // take part in TCP Fast Open (RFC 7413)
	Scheduler       scheduler.Factory
	Congestion      cc.Factory
	PathManager     pathmgr.Factory // nil = the connection keeps its first subflow
	Limits          pathmgr.Limits  // of the path manager and of the connection itself
	ReadBuffer      int             // bytes; 0 = mpconn's default
	WriteBuffer     int             // bytes; 0 = mpconn's default
	OrphanTimeout   time.Duration   // 0 = mpconn's default
	Subflow         subflow.Knobs
	FlowSize        int64 // bytes that the user will write; 0 = unknown
	Measure         bool  // keep the table of paths up to date with its subflows, plain TCP too, as path managers may ask for
}

// Profile is a ConnConfig as a host uses it. It is not changed: any number of
// connections share one.
type Profile struct {
	cfg  ConnConfig
	conn *mpconn.Settings
}

// Profile prepares what connections of the host are made from.
func (h *Host) Profile(cfg ConnConfig) *Profile {
	limits := cfg.Limits.WithDefaults()
	settings := mpconn.Settings{
		Checksum:        cfg.Checksum,
		DenyJoinInitial: cfg.DenyJoinInitial,
		RequireMPTCP:    cfg.RequireMPTCP,
		FastCloseByACK:  cfg.FastCloseByACK,
		Subflow:         cfg.Subflow,
		Scheduler:       cfg.Scheduler,
		Congestion:      cfg.Congestion,
		Alloc:           h.cfg.Alloc,
		Path:            h.cfg.Path,
		OwnAddr:         h.ownAddr,
		LastResort:      h.lastResort,
		ISS:             h.iss,
		Rand:            h.cfg.Rand,
		ReadBuffer:      cfg.ReadBuffer,
		WriteBuffer:     cfg.WriteBuffer,
		Budget:          h.cfg.Budget,
		MaxSubflows:     limits.Subflows,
		MaxRemotes:      limits.Accepted,
		OrphanTimeout:   cfg.OrphanTimeout,
	}
	return &Profile{cfg: cfg, conn: settings.Complete()}
}

// Counters are what a host did since it was made.
type Counters struct {
	Dialed, Accepted, Joined uint64
	TokenCollisions          uint64                  // keys drawn anew
	ResetsSent               uint64                  // to segments without a connection
	RepliesLost              uint64                  // answers that found the queue full
	CommandsFailed           uint64                  // of path managers, that could not be obeyed
	Drops                    [reason.NumDrops]uint64 // by the host itself
	// ConnDrops are those of connections and, once they ended, of subflows.
	ConnDrops [reason.NumDrops]uint64
	MIB       [NumMIBs]uint64
	// JoinsStopped counts by what kept subflows from being opened. A connection
	// counts for each limit once, until it loses a subflow.
	JoinsStopped [reason.NumLimits]uint64

	Conns         int // in the tables now
	TimeWait      int // tuples in TIME-WAIT now
	HalfOpen      int // connections of listeners in their handshake now
	HalfOpenJoins int // subflows begun by peers in theirs
	FastOpening   int // connections with data on the SYN that wait for the third ACK
}

// Host is the tables. See the package comment for which lock guards what.
type Host struct {
	cfg Config

	conns       []*Conn // in no order that means anything, but a repeatable one
	tuples      tupleTable
	tokens      tokenTable
	listeners   map[netip.AddrPort]*Listener
	listenPorts map[uint16]int // listeners on each port
	timeWait    timeWaitTable
	opening     int // connections of listeners in their handshake
	joining     int // subflows begun by peers in their handshake
	replies     replyQueue
	paths       pathTable
	blackholes  blackholeTable[blackholeKey]

	fastOpens     lru[addrPair, fastOpenServer] // of servers
	fastOpenFails blackholeTable[servicePath]
	fastOpening   int // connections of listeners with data on the SYN that wait for the third ACK

	counters Counters

	// Reused by every call of a path manager.
	view     pathmgr.View
	viewAt   mono.Time // when view was made
	subflows []mpconn.SubflowInfo
	commands []pathmgr.Command
}

// New makes a host without connections.
func New(cfg Config) *Host {
	cfg = cfg.withDefaults()
	return &Host{
		cfg:         cfg,
		tuples:      newTupleTable(),
		tokens:      make(tokenTable),
		listeners:   make(map[netip.AddrPort]*Listener),
		listenPorts: make(map[uint16]int),
		timeWait:    newTimeWaitTable(cfg.TimeWait, cfg.MaxTimeWait),
		paths:       newPathTable(),
		blackholes:  newBlackholeTable[blackholeKey](),
		view:        pathmgr.View{Shared: make(map[any]any)},

		fastOpens:     newLRU[addrPair, fastOpenServer](maxFastOpens),
		fastOpenFails: newBlackholeTable[servicePath](),
	}
}

// VerdictKind says what a driver has to do with a segment.
type VerdictKind uint8

// Verdicts.
const (
	VerdictDrop    VerdictKind = iota // nothing
	VerdictReply                      // poll the host: it has an answer
	VerdictSegment                    // give it to Conn.HandleSegment with ID
	VerdictAccept                     // Conn is new and made from it: pump Conn
	VerdictJoin                       // give it to Host.Join
)

// Verdict is the answer of Lookup.
type Verdict struct {
	Kind VerdictKind
	Conn *Conn
	ID   int         // of the subflow
	Drop reason.Drop // why, with VerdictDrop and VerdictReply
}

// Lookup says whose a segment is. Segments that belong to nothing are
// answered, counted and done.
func (h *Host) Lookup(now mono.Time, seg *wire.Segment) Verdict {
	if !peerAddr(seg.Src, seg.Dst) {
		return h.drop(reason.DropAddress)
	}
	t := tuple{seg.Dst, seg.Src}
	if b, ok := h.tuples.bindings[t]; ok {
		return Verdict{Kind: VerdictSegment, Conn: b.conn, ID: b.id}
	}
	w := h.timeWait.get(t)
	if seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN {
		return h.handleSYN(now, t, w, seg)
	}
	if w != nil {
		return h.handleTimeWait(now, w, seg)
	}
	if v, ok := h.handleCookie(now, t, seg); ok {
		return v
	}
	return h.stray(seg, reason.DropNoConn)
}

// LookupICMP returns the subflow whose segment an ICMP error quotes.
func (h *Host) LookupICMP(local, remote netip.AddrPort) (c *Conn, id int, ok bool) {
	b, ok := h.tuples.bindings[tuple{local, remote}]
	return b.conn, b.id, ok
}

func (h *Host) drop(d reason.Drop) Verdict {
	h.counters.Drops[d]++
	return Verdict{Kind: VerdictDrop, Drop: d}
}

// Deadline returns when HandleTimeout is due; 0 = not at all.
func (h *Host) Deadline() mono.Time { return h.timeWait.deadline() }

// HandleTimeout does what is due at now.
func (h *Host) HandleTimeout(now mono.Time) { h.timeWait.expire(now) }

// PollSegment writes the next answer to a segment without a connection into
// seg, which must be empty. It reports false if there is none.
func (h *Host) PollSegment(_ mono.Time, seg *wire.Segment) bool {
	r, ok := h.replies.pop()
	if ok {
		r.fill(seg)
	}
	return ok
}

// Conns calls f for every connection in the tables.
func (h *Host) Conns(f func(*Conn)) {
	for _, c := range h.conns {
		f(c)
	}
}

// Counters returns a snapshot.
func (h *Host) Counters() Counters {
	n := h.counters
	n.Conns, n.TimeWait, n.HalfOpen = len(h.conns), len(h.timeWait.entries), h.opening
	n.HalfOpenJoins, n.FastOpening = h.joining, h.fastOpening
	return n
}

// iss returns the initial sequence number and the timestamp offset of a
// subflow (RFC 6528; RFC 7323, Section 5.4).
func (h *Host) iss(now mono.Time, local, remote netip.AddrPort) (seq.SSN, uint32) {
	micros := uint64(now) / uint64(time.Microsecond)
	return h.cfg.Secret.ISS(micros, local, remote), h.cfg.Secret.TSOffset(local, remote)
}
