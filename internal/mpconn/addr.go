package mpconn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// addresses is what both sides told each other (RFC 8684, Section 3.4).
type addresses struct {
	locals      []netip.Addr // index = address id; the initial one is 0
	remotes     []remoteAddr // of the peer; the first is that of the first subflow, until withdrawn
	initialPort uint16       // of the first subflow here

	*signaling
}

// signaling is what is told about addresses, or was.
type signaling struct {
	removed  []netip.Addr // withdrawn by the peer: not to be joined, bounded
	nextNew  mono.Time    // when, at an even rate, the next new address is due
	announce []announcement
	pause    mono.Time // until when announcements wait for the echo of the last one
	echoes   []echo
	withdraw []withdrawal
	batch    mono.Time // when the last withdrawals became due

	translated []translated
}

// noSignaling is that of plain TCP. Nobody changes it.
var noSignaling signaling

// withdrawal is an id to send in REMOVE_ADDR, or that may not have arrived.
type withdrawal struct {
	id uint8
	signal
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
	maxLocals       = 256 // all ids
	maxEchoes       = 8
	maxWithdraw     = 20 // ids in one REMOVE_ADDR
	maxAnnounceTry  = 5
	announceTimeout = time.Second
	announceGap     = 10 * time.Millisecond // between two; one that is lost for it is told again
)

func (a *addresses) init(local, remote netip.AddrPort) {
	a.locals, a.initialPort = append(a.locals, local.Addr()), local.Port()
	a.remotes = append(a.remotes, remoteAddr{addr: remote, observed: true})
}

// localID returns the id of a local address, giving it one if need be. It
// returns false when all ids are given.
//
// RFC 8684, Section 3.4.1: "The Address ID MUST uniquely identify the address
// for the sender of the option (within the scope of the connection)". An id is
// never given to another address, also not after a REMOVE_ADDR.
func (a *addresses) localID(addr netip.Addr) (uint8, bool) {
	for i, l := range a.locals {
		if l == addr {
			return uint8(i), true
		}
	}
	if len(a.locals) == maxLocals {
		return 0, false
	}
	a.locals = append(a.locals, addr)
	return uint8(len(a.locals) - 1), true
}

// Announce tells the peer about a local address by ADD_ADDR, repeated until
// echoed. A port of 0, or the connection's own, is left out.
func (c *Conn) Announce(_ mono.Time, ap netip.AddrPort) bool {
	if c.mode != modeMPTCP || c.over {
		return false
	}
	id, ok := c.addrs.localID(ap.Addr())
	a := announcement{id: id, addr: ap.Addr(), port: ap.Port(), due: true}
	if a.port == c.ends.Local.Port() || a.addr.Is6() && !c.cfg.Subflow.NoTimestamps {
		// An IPv6 address with port takes 30 bytes, which timestamps leave
		// no room for.
		a.port = 0
	}
	for _, b := range c.addrs.announce {
		if b.id == a.id && b.port == a.port {
			return true
		}
	}
	if !ok || len(c.addrs.announce) >= maxLocals {
		c.oddity().AnnouncesDropped++
		return false
	}
	c.addrs.announce = append(c.addrs.announce, a)
	return true
}

// Withdraw tells the peer by REMOVE_ADDR that a local address is gone.
func (c *Conn) Withdraw(now mono.Time, addr netip.Addr) bool {
	if c.mode != modeMPTCP {
		return false
	}
	for i, l := range c.addrs.locals {
		if l != addr {
			continue
		}
		id := uint8(i)
		c.addrs.announce = slices.DeleteFunc(c.addrs.announce, func(a announcement) bool { return a.id == id })
		c.addrs.cancelWithdrawal(id)
		w := withdrawal{id: id}
		if at := c.nextBatch(now); at > now {
			w.retry = at
			c.timers.Set(timerRepeat, mono.Earliest(c.timers.At(timerRepeat), at))
		} else {
			w.due = true
		}
		c.addrs.withdraw = append(c.addrs.withdraw, w)
		return true
	}
	return false
}

// nextBatch returns when a withdrawal is due: at once, but those that follow
// gather for a retransmission timeout. Like announcements, Linux loses a
// REMOVE_ADDR that comes before it has looked at the one before.
func (c *Conn) nextBatch(now mono.Time) mono.Time {
	a, gap := &c.addrs, announceTimeout
	if f := c.bestFlow(nil); f != nil {
		gap = f.tcp.RTO()
	}
	switch {
	case slices.ContainsFunc(a.withdraw, func(w withdrawal) bool { return w.due && w.tries == 0 }):
		return now
	case a.batch > now:
	case a.batch.Set() && now < a.batch.Add(gap):
		a.batch = a.batch.Add(gap)
	default:
		a.batch = now
	}
	return a.batch
}

// withdrawing reports whether the peer has yet to hear that an address is gone.
func (a *addresses) withdrawing(id uint8) bool {
	return slices.ContainsFunc(a.withdraw, func(w withdrawal) bool { return w.id == id && w.tries == 0 })
}

// cancelWithdrawal stops saying that an address is gone: it is in use again.
func (a *addresses) cancelWithdrawal(id uint8) {
	a.withdraw = slices.DeleteFunc(a.withdraw, func(w withdrawal) bool { return w.id == id })
}

// echoed stops repeating an ADD_ADDR.
func (c *Conn) echoed(o *wire.AddAddr) {
	for i, a := range c.addrs.announce {
		if a.id == o.ID && a.addr == o.Addr && a.port == o.Port {
			c.addrs.announce = append(c.addrs.announce[:i], c.addrs.announce[i+1:]...)
			c.addrs.pause = 0
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
