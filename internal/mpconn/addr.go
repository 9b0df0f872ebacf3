package mpconn

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// addresses is what both sides told each other (RFC 8684, Section 3.4).
type addresses struct {
	locals   []netip.Addr // index = address id; the initial one is 0
	remotes  []remoteAddr
	limit    int
	announce []announcement
	echoes   []echo
	withdraw []uint8 // ids to send in REMOVE_ADDR
}

type remoteAddr struct {
	id   uint8
	addr netip.AddrPort
}

// announcement is an ADD_ADDR that was not echoed yet.
type announcement struct {
	id    uint8
	addr  netip.Addr
	port  uint16 // 0 = that of the subflow it travels on
	due   bool
	tries int
	on    *flow // where it went last
}

// echo is an ADD_ADDR to send back.
type echo struct {
	on  *flow
	opt wire.AddAddr
}

const (
	maxLocals       = 64
	maxEchoes       = 8
	maxAnnounceTry  = 5
	announceTimeout = time.Second
)

func (a *addresses) init(cfg *Config) {
	a.locals = append(a.locals, cfg.Local.Addr())
	a.limit = cfg.MaxRemotes
}

// localID returns the id of a local address, giving it one if need be.
//
// RFC 8684, Section 3.4.1: an id "MUST" be unique for an address within the
// connection; the initial subflow's is 0.
func (a *addresses) localID(addr netip.Addr) uint8 {
	for i, l := range a.locals {
		if l == addr {
			return uint8(i)
		}
	}
	if len(a.locals) == maxLocals {
		return 0
	}
	a.locals = append(a.locals, addr)
	return uint8(len(a.locals) - 1)
}

// Announce tells the peer about a local address by ADD_ADDR, repeated until
// echoed. A port of 0, or the connection's own, is left out.
func (c *Conn) Announce(_ mono.Time, ap netip.AddrPort) bool {
	if c.mode != modeMPTCP || c.over {
		return false
	}
	a := announcement{id: c.addrs.localID(ap.Addr()), addr: ap.Addr(), port: ap.Port(), due: true}
	if a.port == c.cfg.Local.Port() || a.addr.Is6() && !c.cfg.Subflow.NoTimestamps {
		// An IPv6 address with port takes 30 bytes, which timestamps leave
		// no room for.
		a.port = 0
	}
	for _, b := range c.addrs.announce {
		if b.id == a.id && b.port == a.port {
			return true
		}
	}
	if a.id == 0 && a.addr != c.addrs.locals[0] || len(c.addrs.announce) >= maxLocals {
		return false
	}
	c.addrs.announce = append(c.addrs.announce, a)
	return true
}

// Withdraw tells the peer by REMOVE_ADDR that a local address is gone.
func (c *Conn) Withdraw(_ mono.Time, addr netip.Addr) bool {
	for i, l := range c.addrs.locals {
		if l != addr || c.mode != modeMPTCP {
			continue
		}
		id := uint8(i)
		for j, a := range c.addrs.announce {
			if a.id == id {
				c.addrs.announce = append(c.addrs.announce[:j], c.addrs.announce[j+1:]...)
				break
			}
		}
		if len(c.addrs.withdraw) < maxEchoes {
			c.addrs.withdraw = append(c.addrs.withdraw, id)
		}
		return true
	}
	return false
}

// handleAddAddr acts on an ADD_ADDR or its echo.
func (c *Conn) handleAddAddr(f *flow, o *wire.AddAddr) {
	if o.Echo {
		c.echoed(o)
		return
	}
	mac := key.AddAddrHMAC(c.remoteKey, c.localKey, o.ID, o.Addr, o.Port)
	// RFC 8684, Section 3.4.1: without a valid HMAC it "SHOULD" be silently
	// ignored.
	if !key.Equal(mac[:], o.HMAC[:]) {
		c.drop(reason.DropHMAC)
		return
	}
	if len(c.addrs.echoes) < maxEchoes {
		e := echo{on: f, opt: *o}
		e.opt.Echo = true
		c.addrs.echoes = append(c.addrs.echoes, e)
	}
	r := remoteAddr{id: o.ID, addr: netip.AddrPortFrom(o.Addr, o.Port)}
	if o.Port == 0 {
		// RFC 8684, Section 3.4.1: without a port, that of the subflow on
		// which the option came "SHOULD" be used.
		r.addr = netip.AddrPortFrom(o.Addr, f.tcp.Remote().Port())
	}
	for _, known := range c.addrs.remotes {
		if known == r {
			return
		}
	}
	if len(c.addrs.remotes) >= c.addrs.limit {
		c.drop(reason.DropLimit)
		return
	}
	c.addrs.remotes = append(c.addrs.remotes, r)
	c.emit(Event{Kind: EventAddrAnnounced, Remote: r.addr, RemoteID: r.id})
}

// echoed stops repeating an ADD_ADDR.
func (c *Conn) echoed(o *wire.AddAddr) {
	for i, a := range c.addrs.announce {
		if a.id == o.ID && a.addr == o.Addr && a.port == o.Port {
			c.addrs.announce = append(c.addrs.announce[:i], c.addrs.announce[i+1:]...)
			return
		}
	}
}

// retryAnnounce makes overdue ADD_ADDRs due again, a bounded number of times.
func (c *Conn) retryAnnounce(_ mono.Time) {
	kept := c.addrs.announce[:0]
	for _, a := range c.addrs.announce {
		if a.tries < maxAnnounceTry {
			a.due = true
			kept = append(kept, a)
		}
	}
	c.addrs.announce = kept
}

// handleRemoveAddr acts on REMOVE_ADDR. Unknown ids are ignored.
func (c *Conn) handleRemoveAddr(now mono.Time, o *wire.RemoveAddr) {
	for _, id := range o.IDs[:o.N] {
		for i, r := range c.addrs.remotes {
			if r.id == id {
				c.addrs.remotes = append(c.addrs.remotes[:i], c.addrs.remotes[i+1:]...)
				break
			}
		}
		c.emit(Event{Kind: EventAddrWithdrawn, RemoteID: id})
		for _, f := range c.flows {
			if f.remoteID == id && f.failed == reason.CloseNone && c.otherUsable(f) {
				c.abortFlow(now, f, reason.CloseAddressGone, reason.ResetUnspecified)
			}
		}
	}
}

// putAnnounce adds an ADD_ADDR. It goes alone, without a DSS.
func (c *Conn) putAnnounce(seg *wire.Segment, a *announcement) {
	seg.Has |= wire.OptAddAddr
	seg.AddAddr = wire.AddAddr{
		ID: a.id, Addr: a.addr, Port: a.port,
		HMAC: key.AddAddrHMAC(c.localKey, c.remoteKey, a.id, a.addr, a.port),
	}
}

// room returns the option bytes an announcement needs.
func (a *announcement) room() int {
	switch {
	case a.addr.Is6() && a.port != 0:
		return 32
	case a.addr.Is6():
		return 28
	case a.port != 0:
		return 20
	}
	return 16
}
