package host

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Bounds of listeners.
const (
	defaultMaxHalfOpen = 1024
	defaultBacklog     = 128
	maxBacklog         = 4096
)

// Listener takes the connections that peers open to an address.
type Listener struct {
	// User is the driver's handle.
	User any

	addr    netip.AddrPort
	backlog int
	profile *Profile

	opening []*Conn // whose handshake is under way, in no order
	ready   []*Conn // that wait for Accept, in order

	fastOpens pendingFastOpens
	closed    bool

	host         *Host
	synAck       *wire.Segment // what cookies are sent with, once one was
	cookiesUntil mono.Time     // when the last one sent is no longer valid
}

// Addr returns the address listened on.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Pending returns the number of connections that Accept can give.
func (l *Listener) Pending() int { return len(l.ready) }

// Accept takes the connection that has waited longest.
func (l *Listener) Accept() (*Conn, bool) {
	if len(l.ready) == 0 {
		return nil, false
	}
	c := l.ready[0]
	l.ready = l.ready[1:]
	if len(l.ready) == 0 {
		l.ready = nil
	}
	c.listener = nil
	return c, true
}

// Listener returns the listener that has yet to give c out, nil if there is
// none.
func (c *Conn) Listener() *Listener { return c.listener }

// full reports whether the backlog has no place for another connection that
// waits for Accept. For those whose handshake is under way there is place
// beside them, see Host.crowded.
func (l *Listener) full() bool { return len(l.ready) >= l.backlog }

// add takes in a connection in its handshake.
func (l *Listener) add(c *Conn) {
	c.listener, c.openingIndex = l, int32(len(l.opening))
	l.opening = append(l.opening, c)
	l.host.opening++
}

// promote moves a connection whose handshake is done to those that Accept
// gives.
func (l *Listener) promote(c *Conn) {
	l.removeOpening(c)
	l.ready = append(l.ready, c)
}

func (l *Listener) removeOpening(c *Conn) {
	last := len(l.opening) - 1
	moved := l.opening[last]
	l.opening[c.openingIndex] = moved
	moved.openingIndex = c.openingIndex
	l.opening[last] = nil
	l.opening = l.opening[:last]
	c.openingIndex = -1
	l.host.opening--
}

// remove forgets a connection that ended before Accept gave it out.
func (l *Listener) remove(c *Conn) {
	c.listener = nil
	if c.openingIndex >= 0 {
		l.removeOpening(c)
		return
	}
	for i, r := range l.ready {
		if r == c {
			l.ready = append(l.ready[:i], l.ready[i+1:]...)
			return
		}
	}
}

// Listen makes a listener. An unspecified address stands for every local
// address of its family, a zero one for those of both families; port 0 has
// one chosen. The backlog is how many connections may wait for Accept; 0 means
// 128, at most 4096. Half as many may be in their handshake; beyond that SYNs
// are answered by cookies.
//
// A listener on one address takes precedence over one on all.
func (h *Host) Listen(local netip.AddrPort, backlog int, cfg ConnConfig) (*Listener, error) {
	if local.Addr().IsMulticast() {
		return nil, ErrNoRoute
	}
	if local.Port() == 0 {
		p, ok := h.listenPort()
		if !ok {
			return nil, ErrNoPort
		}
		local = netip.AddrPortFrom(local.Addr(), p)
	}
	if _, taken := h.listeners[local]; taken {
		return nil, ErrAddrInUse
	}
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	l := &Listener{host: h, addr: local, backlog: min(backlog, maxBacklog), profile: h.Profile(cfg)}
	h.listeners[local] = l
	h.listenPorts[local.Port()]++
	return l, nil
}

// CloseListener ends l and returns the connections that it had not given out.
// They stay in the tables until the driver has aborted them and they are over.
func (h *Host) CloseListener(l *Listener) []*Conn {
	if l.closed {
		return nil
	}
	l.closed = true
	delete(h.listeners, l.addr)
	p := l.addr.Port()
	if h.listenPorts[p]--; h.listenPorts[p] == 0 {
		delete(h.listenPorts, p)
	}
	h.opening -= len(l.opening)
	left := append(l.ready, l.opening...)
	for _, c := range left {
		c.listener, c.openingIndex = nil, -1
	}
	l.ready, l.opening = nil, nil
	return left
}

// listenerFor returns the listener for SYNs to local.
func (h *Host) listenerFor(local netip.AddrPort) *Listener {
	if l, ok := h.listeners[local]; ok {
		return l
	}
	family := netip.IPv6Unspecified()
	if local.Addr().Is4() {
		family = netip.IPv4Unspecified()
	}
	if l, ok := h.listeners[netip.AddrPortFrom(family, local.Port())]; ok {
		return l
	}
	return h.listeners[netip.AddrPortFrom(netip.Addr{}, local.Port())]
}

// handleSYN handles a SYN whose tuple is not in use. w is its TIME-WAIT entry,
// if there is one.
func (h *Host) handleSYN(now mono.Time, t tuple, w *waiting, seg *wire.Segment) Verdict {
	// A SYN with FIN opens nothing: no implementation sends it.
	if seg.Flags.Has(wire.FIN) {
		return h.drop(reason.DropState)
	}
	if seg.Has&wire.OptMPJoin != 0 && seg.Join.Form == wire.JoinSYN || seg.Bad&wire.OptMPJoin != 0 {
		return h.handleJoinSYN(w, seg)
	}
	l := h.listenerFor(t.local)
	if l == nil {
		return h.stray(seg, reason.DropNoConn)
	}
	if l.profile.cfg.RequireMPTCP && seg.Has&wire.OptMPCapable == 0 {
		return h.stray(seg, reason.DropOption)
	}
	if w != nil && !w.mayReopen(seg, !l.profile.cfg.Subflow.NoTimestamps) {
		return h.handleTimeWait(now, w, seg)
	}
	if seg.Has&wire.OptMPCapable != 0 && !l.profile.cfg.Plain {
		h.count(MIBMPCapableSYNRX)
	}
	switch {
	// RFC 6191 wants a sequence number above the old ones, which a cookie is
	// by chance only.
	case l.full(), w != nil && len(l.opening) >= l.backlog:
		return h.drop(reason.DropBacklog)
	case w == nil && h.crowded(l):
		return h.answerCookie(now, l, t, seg)
	}
	return h.accept(now, l, t, w, seg)
}

// accept makes a connection from a SYN.
func (h *Host) accept(now mono.Time, l *Listener, t tuple, w *waiting, seg *wire.Segment) Verdict {
	c := h.newConn(l.profile, t)
	cfg := h.connConfig(l.profile, c)
	if cfg.Plain && l.profile.cfg.RequireMPTCP {
		return h.stray(seg, reason.DropLimit)
	}
	if w != nil {
		cfg.ChangeISS = w.issAfter
		h.timeWait.remove(t)
	}
	cfg.FastOpen = h.takeFastOpen(now, l, t, seg)
	c.Conn = mpconn.Accept(now, &cfg, seg)
	if cfg.FastOpen.Take {
		h.beginFastOpen(c, l)
	}
	l.add(c)
	h.register(c, t)
	h.counters.Accepted++
	return Verdict{Kind: VerdictAccept, Conn: c}
}
