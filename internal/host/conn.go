package host

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

// Conn is a connection and what its host knows about it. The wake-ups of its
// path manager count among its timers: Deadline, HandleTimeout and HasEvents
// include them, and Step serves them.
type Conn struct {
	*mpconn.Conn

	// User is the driver's handle.
	User any

	cfg     *ConnConfig
	first   tuple // of the first subflow
	active  bool
	offered dialMode // of an active one, for MPTCP
	// fastOpen is the same for TCP Fast Open.
	fastOpen dialMode
	// hurried: a dial with fewer SYNs than usual.
	hurried bool

	// Guarded by the host's lock.
	bound        bool    // first is in the table of tuples
	tuples       []tuple // and these
	token        key.Token
	hasToken     bool
	estab        bool      // counted as speaking MPTCP
	index        int32     // in Host.conns; -1 = not there
	openingIndex int32     // in listener.opening; -1 = not there
	listener     *Listener // until Accept
	pending      *Listener // that took data on the SYN, until the third ACK
	joining      []int     // subflows begun by the peer in their handshake

	// Guarded by the connection's lock.
	tally   tally
	ended   *SubflowTotals // of subflows that are no more; nil = there are none
	policy  pathmgr.Policy
	left    bool             // the peer withdrew the address that the connection began with
	remotes []pathmgr.Remote // its others that may be joined
	links   []link           // of the subflows, when they began
	wake    mono.Time        // when the policy wants a Tick
	tick    bool             // the time has come
	watch   int64            // the policy wants to know when so many bytes were written; 0 = no
	sized   int64            // the flow's size that it knows of
	measure mono.Time        // when the table of paths wants news; 0 = never
	news    bool             // the time has come
}

// Deadline returns when HandleTimeout is due; 0 = not at all.
func (c *Conn) Deadline() mono.Time { return mono.Earliest(c.Conn.Deadline(), c.wake) }

// HandleTimeout does what is due at now. A Tick that the path manager asked
// for is left to Step.
func (c *Conn) HandleTimeout(now mono.Time) {
	c.Conn.HandleTimeout(now)
	if c.wake.Reached(now) {
		c.wake, c.tick = 0, true
	}
}

// HasEvents reports whether Step has something to do.
func (c *Conn) HasEvents() bool {
	return c.tick || len(c.tally.mib) > 0 || c.Conn.HasEvents() || c.queued() || c.news
}

// queued reports whether the policy waits for a DataQueued.
func (c *Conn) queued() bool {
	return c.policy != nil && (c.watch > 0 && c.Written() >= c.watch || c.FlowSize() != c.sized)
}

// SubflowTotals are sums over all subflows that a connection ever had.
type SubflowTotals struct {
	SegmentsSent, SegmentsReceived, SegmentsRetransmitted uint64
	BytesRetransmitted                                    uint64
	Timeouts                                              uint64
	Drops                                                 reason.Drops
}

func (t *SubflowTotals) add(s *subflow.Stats) {
	t.SegmentsSent += s.SegsSent
	t.SegmentsReceived += s.SegsReceived
	t.SegmentsRetransmitted += s.SegsRetransmitted
	t.BytesRetransmitted += s.BytesRetransmitted
	t.Timeouts += s.Timeouts
	t.Drops.Add(s.Drops)
}

// SubflowTotals returns the sums up to now.
func (c *Conn) SubflowTotals() SubflowTotals {
	var t SubflowTotals
	if c.ended != nil {
		t = *c.ended
		t.Drops = maps.Clone(t.Drops)
	}
	all := c.AppendSubflows(nil)
	for i := range all {
		if all[i].Close == reason.CloseNone {
			t.add(&all[i].TCP)
		}
	}
	return t
}

// Active reports whether this side opened the connection.
func (c *Conn) Active() bool { return c.active }

// LocalAddr and RemoteAddr return the addresses of the first subflow, which
// name the connection even after that subflow has ended.
func (c *Conn) LocalAddr() netip.AddrPort  { return c.first.local }
func (c *Conn) RemoteAddr() netip.AddrPort { return c.first.remote }

// newConn makes the host's side of a connection.
func (h *Host) newConn(p *Profile, t tuple) *Conn {
	cfg := &p.cfg
	c := &Conn{cfg: cfg, first: t, index: -1, openingIndex: -1}
	c.sized = cfg.FlowSize
	if cfg.PathManager != nil && !cfg.Plain {
		c.policy = cfg.PathManager()
	}
	if cfg.Measure {
		c.measure = 1 // from the first segment on
	}
	return c
}

// connConfig returns what the connection proper is made from.
func (h *Host) connConfig(p *Profile, c *Conn) mpconn.Config {
	cfg := p.baseConfig(c)
	switch c.offered {
	case dialPlain:
		cfg.Plain, cfg.PlainWhy = true, reason.FallbackBlackhole
	case dialProbes:
		cfg.SYNsWithMPTCP = 1
	}
	if cfg.Plain {
		return cfg
	}
	k, ok := h.newKey()
	if !ok {
		// RFC 8684, Section 3.1: "if uniqueness is not met and there is no way
		// to generate an alternative verifiable key, then the connection MUST
		// fall back to using regular TCP".
		cfg.Plain, cfg.PlainWhy = true, reason.FallbackCollision
		h.count(MIBMPFallbackTokenInit)
	}
	cfg.Key = k
	return cfg
}

// baseConfig returns what the connection proper is made from, but for its key.
func (p *Profile) baseConfig(c *Conn) mpconn.Config {
	return mpconn.Config{
		Local: c.first.local, Remote: c.first.remote,
		Plain: p.cfg.Plain, FlowSize: p.cfg.FlowSize, Settings: p.conn,
	}
}

// ownAddr reports whether a is an address of the host.
func (h *Host) ownAddr(a netip.Addr) bool {
	return slices.ContainsFunc(h.cfg.Locals(), func(l pathmgr.Local) bool { return l.Addr == a })
}

// lastResort reports whether a is an address of a link for backup.
func (h *Host) lastResort(a netip.Addr) bool {
	return slices.ContainsFunc(h.cfg.Locals(), func(l pathmgr.Local) bool { return l.Addr == a && l.Backup })
}

// limits returns the bounds of the connection's subflows and addresses.
func (c *Conn) limits() pathmgr.Limits { return c.cfg.Limits.WithDefaults() }

// register enters a new connection into the tables.
func (h *Host) register(c *Conn, t tuple) {
	c.index = int32(len(h.conns))
	h.conns = append(h.conns, c)
	h.tuples.bind(t, c, 0)
	if !c.cfg.Plain && c.Fallback() == reason.FallbackNone {
		h.tokens.claim(c.Token(), c)
	}
}

// unregister takes a connection that is over out of the tables.
func (h *Host) unregister(c *Conn) {
	h.tuples.unbindAll(c)
	h.tokens.release(c)
	h.joining -= len(c.joining)
	c.joining = nil
	if c.listener != nil {
		c.listener.remove(c)
	}
	if c.index < 0 {
		return
	}
	last := len(h.conns) - 1
	h.conns[c.index] = h.conns[last]
	h.conns[c.index].index = c.index
	h.conns[last] = nil
	h.conns = h.conns[:last]
	c.index = -1
}
