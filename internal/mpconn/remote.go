package mpconn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// remoteAddr is an address of the peer.
type remoteAddr struct {
	id       uint8
	addr     netip.AddrPort
	observed bool // seen on the first subflow, where NAT may have changed it
}

const (
	// newAddrBurst new addresses of the peer are taken at once, then one every
	// newAddrInterval. RFC 8684, Section 5, asks for such bounds, lest a peer
	// aim our SYNs at third parties.
	newAddrBurst    = 8
	newAddrInterval = time.Second
	maxRemoved      = 64
)

// handleAddAddr acts on an ADD_ADDR or its echo.
func (c *Conn) handleAddAddr(now mono.Time, f *flow, o *wire.AddAddr) {
	if o.Echo {
		c.echoed(o)
		return
	}
	mac := key.AddAddrHMAC(c.remoteKey, c.localKey, o.ID, o.Addr, o.Port)
	// RFC 8684, Section 3.4.1: "If a host receives an ADD_ADDR option for
	// which it cannot validate the HMAC, it SHOULD silently ignore the option."
	if !key.Equal(mac[:], o.HMAC[:]) {
		c.drop(reason.DropHMAC)
		return
	}
	c.stats.Announcements++
	r := remoteAddr{id: o.ID, addr: netip.AddrPortFrom(o.Addr, o.Port)}
	if o.Port == 0 {
		// RFC 8684, Section 3.4.1: "If no port is specified, MPTCP SHOULD
		// attempt to connect to the specified address on the same port as the
		// port that is already in use by the subflow on which the ADD_ADDR
		// signal was sent".
		r.addr = netip.AddrPortFrom(o.Addr, f.tcp.Remote().Port())
	}
	if why := c.learnRemote(now, r); why != reason.DropNone {
		// Without an echo the peer repeats it, which is of use when it came
		// too early.
		c.drop(why)
		c.oddity().AddrsRefused++
		return
	}
	if len(c.addrs.echoes) < maxEchoes {
		e := echo{on: f, opt: *o}
		e.opt.Echo = true
		c.addrs.echoes = append(c.addrs.echoes, e)
	} else {
		c.oddity().EchoesDropped++
	}
}

// learnRemote takes an announced address, or says why not.
//
// RFC 8684, Section 3.4.1: "a host MUST treat address advertisements as soft
// state": one that is repeated is good news again.
func (c *Conn) learnRemote(now mono.Time, r remoteAddr) reason.Drop {
	a := &c.addrs
	if !c.joinableAddr(r.addr.Addr()) {
		c.JoinStopped(netip.AddrPort{}, r.addr, reason.LimitAddress)
		return reason.DropAddress
	}
	others := 0
	for _, known := range a.remotes {
		switch {
		case known.id == r.id && known.addr == r.addr:
			if !c.reaches(r.addr) {
				c.emitMore(Event{Kind: EventAddrRefreshed, Remote: r.addr, RemoteID: r.id})
			}
			return reason.DropNone
		case known.id == r.id && known.addr.Addr() != r.addr.Addr() && !known.observed:
			// RFC 8684, Section 3.4.1: "the address MUST be the same as the
			// address previously assigned to this Address ID."
			return reason.DropAddress
		case !known.observed:
			others++
		}
	}
	switch {
	case others >= c.cfg.MaxRemotes:
		c.JoinStopped(netip.AddrPort{}, r.addr, reason.LimitAddresses)
		return reason.DropLimit
	case a.nextNew > now.Add((newAddrBurst-1)*newAddrInterval):
		c.JoinStopped(netip.AddrPort{}, r.addr, reason.LimitAddrRate)
		return reason.DropLimit
	}
	a.nextNew = max(a.nextNew, now).Add(newAddrInterval)
	a.remotes = append(a.remotes, r)
	a.removed = slices.DeleteFunc(a.removed, func(x netip.Addr) bool { return x == r.addr.Addr() })
	if !c.joinedFrom(r.id) {
		c.emitMore(Event{Kind: EventAddrAnnounced, Remote: r.addr, RemoteID: r.id})
	}
	return reason.DropNone
}

// joinableAddr reports whether an announced address could be a peer's: not one
// that leads to ourselves or to many, unless the connection itself began there.
func (c *Conn) joinableAddr(a netip.Addr) bool {
	first := c.addrs.locals[0]
	switch {
	case a.IsUnspecified() || a.IsMulticast() || a.Is4In6() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return false
	case a.IsLoopback():
		return first.IsLoopback()
	case slices.Contains(c.addrs.locals, a) || c.cfg.OwnAddr != nil && c.cfg.OwnAddr(a):
		return first == c.ends.Remote.Addr()
	}
	return true
}

// reaches reports whether a subflow leads to an address and port of the peer.
func (c *Conn) reaches(remote netip.AddrPort) bool {
	return slices.ContainsFunc(c.flows, func(f *flow) bool { return f.tcp.Remote() == remote })
}

// joinedFrom reports whether the peer has joined from an address of its own.
//
// RFC 8684, Section 3.4: "Host B can use the Address ID in the MP_JOIN option to
// correlate this source address with the ADD_ADDR option that will also arrive
// on an existing subflow; now B knows not to open A2-B1, ignoring the
// ADD_ADDR."
func (c *Conn) joinedFrom(id uint8) bool {
	return slices.ContainsFunc(c.flows, func(f *flow) bool { return f.join != nil && !f.join.active && f.remoteID == id })
}

// handleRemoveAddr acts on REMOVE_ADDR. What is known under an id is
// forgotten, and no subflow is opened to its address any more.
//
// RFC 8684, Section 3.4.2: "If an Address ID is not known, the receiver will
// silently ignore the request."
func (c *Conn) handleRemoveAddr(now mono.Time, o *wire.RemoveAddr) {
	for _, id := range o.IDs[:min(int(o.N), len(o.IDs))] {
		var known netip.AddrPort
		c.addrs.remotes = slices.DeleteFunc(c.addrs.remotes, func(r remoteAddr) bool {
			if r.id != id {
				return false
			}
			known = r.addr
			c.addrs.remove(r.addr.Addr())
			return true
		})
		for _, f := range c.flows {
			if f.remoteID == id && f.failed == reason.CloseNone {
				known = f.tcp.Remote()
				c.addrs.remove(known.Addr())
				c.probeFlow(now, f)
			}
		}
		if !known.IsValid() {
			c.drop(reason.DropAddress)
			continue
		}
		c.emitMore(Event{Kind: EventAddrWithdrawn, Remote: known, RemoteID: id})
	}
}

// remove notes an address that must not be joined.
func (a *addresses) remove(addr netip.Addr) {
	if slices.Contains(a.removed, addr) {
		return
	}
	if len(a.removed) == maxRemoved {
		a.removed = slices.Delete(a.removed, 0, 1)
	}
	a.removed = append(a.removed, addr)
}

// probe is the question to the peer whether a path still works.
type probe struct {
	due   mono.Time // when the next is sent, or the path given up; 0 = none is under way
	after mono.Time // what arrives before was on its way already
	tries int
}

// maxProbes is how many keepalive probes may be lost on a path that works.
const maxProbes = 3

// probeFlow asks whether a subflow still works whose address was withdrawn.
//
// RFC 8684, Section 3.4.2: "The receipt of REMOVE_ADDR SHOULD first trigger the
// sending of a TCP keepalive [RFC1122] on the path, and if a response is
// received, the path SHOULD NOT be removed."
func (c *Conn) probeFlow(now mono.Time, f *flow) {
	switch {
	case f.phase != phaseUp:
		c.abortFlow(now, f, reason.CloseAddressGone, reason.ResetUnspecified)
	case !f.probe.due.Set():
		f.inTrouble().probe = probe{after: now.Add(f.tcp.Snapshot().MinRTT / 2)}
		f.sendProbe(now)
	}
}

func (f *flow) sendProbe(now mono.Time) {
	f.tcp.Probe()
	f.probe.tries++
	f.probe.due = now.Add(f.tcp.RTO())
}

// retryProbes repeats probes that stayed unanswered, and resets the subflow in
// the end.
func (c *Conn) retryProbes(now mono.Time) {
	for _, f := range c.flows {
		switch {
		case !f.probe.due.Reached(now):
		case f.failed != reason.CloseNone:
			f.probe = probe{}
		case f.probe.tries < maxProbes:
			f.sendProbe(now)
		default:
			f.probe = probe{}
			c.abortFlow(now, f, reason.CloseAddressGone, reason.ResetUnspecified)
		}
	}
}

// heard notes that an acceptable segment came on a flow.
func (f *flow) heard(now mono.Time) {
	f.signals = 0
	f.silence.answered(now, f)
	if f.probe.due.Set() && now >= f.probe.after {
		f.probe = probe{}
	}
}
