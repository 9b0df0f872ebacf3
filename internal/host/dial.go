package host

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// DialArgs say what to connect to.
type DialArgs struct {
	// Local is where to connect from: an address that is zero or unspecified,
	// and a port 0, are chosen.
	Local  netip.AddrPort
	Remote netip.AddrPort
	// Within is how long the dial may take; 0 = as long as its SYNs do. With
	// little time fewer SYNs offer MPTCP before plain ones are tried.
	Within time.Duration
	// Profile is what the connection is made from; nil = Conn.
	Profile *Profile
	Conn    ConnConfig
}

// Dial begins a connection. Its SYN waits to be polled from it; if a fast open
// is possible, it waits for the first bytes written besides (Conn.Held).
func (h *Host) Dial(now mono.Time, a DialArgs) (*Conn, error) {
	p := a.Profile
	if p == nil {
		p = h.Profile(a.Conn)
	}
	c := h.newConn(p, tuple{local: a.Local, remote: a.Remote})
	c.active = true
	local, err := h.source(now, c)
	if err != nil {
		return nil, err
	}
	port, err := h.sourcePort(now, c.cfg, local, a.Local.Port(), a.Remote)
	if err != nil {
		return nil, err
	}
	c.first.local = netip.AddrPortFrom(local, port)
	if !peerAddr(c.first.local, c.first.remote) {
		return nil, ErrNoRoute
	}
	h.offer(now, c)
	cfg := h.connConfig(p, c)
	c.hurry(&cfg, a.Within)
	if cfg.Plain && c.cfg.RequireMPTCP {
		return nil, ErrNoKey
	}
	h.offerFastOpen(now, c, &cfg)
	if w := h.timeWait.get(c.first); w != nil {
		cfg.ChangeISS = w.issAfter
		h.timeWait.remove(c.first)
	}
	c.Conn = mpconn.Dial(now, &cfg)
	h.register(c, c.first)
	h.counters.Dialed++
	switch {
	case c.offered == dialPlain:
		h.count(MIBMPCapableSYNTXDisabled)
	case c.Fallback() == reason.FallbackNone:
		h.count(MIBMPCapableSYNTX)
	}
	return c, nil
}

const (
	// offers is how many SYNs offer MPTCP if there is time: two
	// retransmissions, as in Linux (net.mptcp.syn_retrans_before_tcp_fallback).
	offers     = 3
	initialRTO = time.Second
)

// hurry has a dial try plain SYNs before half of its time is over, so that a
// path that drops those with MP_CAPABLE is found out; the earliest is the first
// retransmission.
func (c *Conn) hurry(cfg *mpconn.Config, within time.Duration) {
	n := offers
	for n > 1 && within > 0 && (1<<n-1)*cmp.Or(cfg.Subflow.InitialRTO, initialRTO) > within/2 {
		n--
	}
	if c.cfg.RequireMPTCP || c.offered == dialProbes {
		return
	}
	cfg.SYNsWithMPTCP, c.hurried = n, n < offers
}

// source chooses the local address of a new connection: the one that was
// asked for, else the path manager's choice, else the best that can reach the
// destination.
func (h *Host) source(now mono.Time, c *Conn) (netip.Addr, error) {
	remote := c.first.remote.Addr()
	if a := c.first.local.Addr(); a.IsValid() && !a.IsUnspecified() {
		if !h.cfg.Routable(a, remote) {
			return netip.Addr{}, ErrNoRoute
		}
		return a, nil
	}
	if c.policy != nil {
		h.commands = c.policy.Handle(h.viewOf(now, c), pathmgr.Event{
			Kind: pathmgr.ChooseInitial, Now: now.Duration(), Remote: c.first.remote,
		}, h.commands[:0])
		for _, cmd := range h.commands {
			if cmd.Verb == pathmgr.OpenSubflow && h.cfg.Routable(cmd.Local.Addr(), remote) {
				return cmd.Local.Addr(), nil
			}
		}
	}
	return h.sourceFor(remote)
}

// sourceFor returns the best local address that can reach remote; addresses
// meant as backup come last.
func (h *Host) sourceFor(remote netip.Addr) (netip.Addr, error) {
	var backup netip.Addr
	for _, l := range h.cfg.Locals() {
		if !h.cfg.Routable(l.Addr, remote) {
			continue
		}
		if !l.Backup {
			return l.Addr, nil
		}
		if !backup.IsValid() {
			backup = l.Addr
		}
	}
	if !backup.IsValid() {
		return backup, ErrNoRoute
	}
	return backup, nil
}

// sourcePort returns the wanted port if the tuple is free, or chooses one:
// if need be, one whose tuple has been in TIME-WAIT for long enough.
func (h *Host) sourcePort(now mono.Time, cfg *ConnConfig, local netip.Addr, want uint16, remote netip.AddrPort) (uint16, error) {
	if want == 0 {
		p, ok := h.ephemeral(local, remote)
		if !ok && !cfg.Subflow.NoTimestamps {
			p, ok = h.reusedPort(now, local, remote)
		}
		if !ok {
			return 0, ErrNoPort
		}
		return p, nil
	}
	if h.tupleTaken(tuple{netip.AddrPortFrom(local, want), remote}) {
		return 0, ErrAddrInUse
	}
	return want, nil
}

// Open begins a further subflow of c. It fills in what a is silent about: the
// local address, the local port, and the remote port, which is then that of
// the first subflow.
func (h *Host) Open(now mono.Time, c *Conn, a mpconn.OpenArgs) (id int, err error) {
	id, err = h.open(now, c, a)
	h.countJoinError(err)
	switch err {
	case ErrNoRoute:
		c.JoinStopped(a.Local, a.Remote, reason.LimitRoute)
	case ErrNoPort, ErrAddrInUse:
		c.JoinStopped(a.Local, a.Remote, reason.LimitPort)
	}
	return id, err
}

func (h *Host) open(now mono.Time, c *Conn, a mpconn.OpenArgs) (id int, err error) {
	if a.Remote.Port() == 0 {
		a.Remote = netip.AddrPortFrom(a.Remote.Addr(), c.first.remote.Port())
	}
	local := a.Local.Addr()
	if !local.IsValid() || local.IsUnspecified() {
		if local, err = h.sourceFor(a.Remote.Addr()); err != nil {
			return 0, err
		}
	} else if !h.cfg.Routable(local, a.Remote.Addr()) {
		return 0, ErrNoRoute
	}
	port := a.Local.Port()
	if port == 0 {
		var ok bool
		if port, ok = h.joinPort(c, local, a.Remote); !ok {
			return 0, ErrNoPort
		}
	} else if h.tupleTaken(tuple{a.Local, a.Remote}) {
		return 0, ErrAddrInUse
	}
	a.Local = netip.AddrPortFrom(local, port)
	if !peerAddr(a.Local, a.Remote) {
		return 0, ErrNoRoute
	}
	id, ok := c.Conn.Open(now, a)
	if !ok {
		return 0, ErrNotOpened
	}
	h.tuples.bind(tuple{a.Local, a.Remote}, c, id)
	h.count(MIBMPJoinSynTx)
	h.paths.touch(addrPair{a.Local.Addr(), a.Remote.Addr()}).LastTry = now
	return id, nil
}
