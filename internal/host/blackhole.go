package host

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// Bounds of the memory of black holes.
const (
	maxBlackholes = 256
	// blackholeLeast is how long dials go plain after the first discovery;
	// each probe that fails doubles it, up to blackholeMost.
	blackholeLeast = time.Minute
	blackholeMost  = time.Hour
)

// blackholeKey is a way into the network: a box that drops SYNs with
// MP_CAPABLE stands near one of its ends and so spoils a whole prefix there.
type blackholeKey struct {
	local  netip.Addr
	remote netip.Prefix
}

type blackhole struct {
	key     blackholeKey
	period  time.Duration
	until   mono.Time // dials are plain before, and then one probes
	probing bool      // it does now
	suspect bool      // that it is one, on little evidence
}

// blackholeTable remembers where SYNs with MP_CAPABLE stayed unanswered and
// plain ones did not. The entry not touched for the longest time gives way.
//
// RFC 8684, Section 3.1: "If the SYN packets are unacknowledged, it is up to
// local policy to decide how to respond." Finding out each time anew would
// cost every connection the time of several lost SYNs.
type blackholeTable struct {
	entries map[blackholeKey]*list.Element
	order   list.List // of *blackhole, most recently touched first
}

func newBlackholeTable() blackholeTable {
	return blackholeTable{entries: make(map[blackholeKey]*list.Element)}
}

// blackholeOf returns the key of a pair of addresses: prefixes of 24 bits in
// IPv4, 48 in IPv6, which are the longest that are routed by themselves.
func blackholeOf(local, remote netip.Addr) blackholeKey {
	bits := 48
	if remote.Is4() {
		bits = 24
	}
	p, _ := remote.WithZone("").Prefix(bits) // fails for invalid addresses only
	return blackholeKey{local, p}
}

// dialMode is how a dial offers MPTCP.
type dialMode uint8

const (
	dialOffers dialMode = iota // as usual
	dialProbes                 // with one SYN, to see whether the way is still closed
	dialPlain                  // not at all
)

// mode says how a dial begins at now.
func (bt *blackholeTable) mode(now mono.Time, k blackholeKey) dialMode {
	el, ok := bt.entries[k]
	if !ok {
		return dialOffers
	}
	b := el.Value.(*blackhole)
	if !b.until.Reached(now) {
		return dialPlain
	}
	// Others stay plain until the probe is decided, or has had its time.
	b.until, b.probing = now.Add(blackholeLeast), true
	bt.order.MoveToFront(el)
	return dialProbes
}

// closed notes that only a plain SYN was answered. It reports whether that was
// news. Where few SYNs with MP_CAPABLE were sent (hurried), their loss may have
// been an accident: then the next dial has to find the same.
func (bt *blackholeTable) closed(now mono.Time, k blackholeKey, m dialMode, hurried bool) bool {
	el, ok := bt.entries[k]
	if !ok {
		if len(bt.entries) >= maxBlackholes {
			oldest := bt.order.Back()
			delete(bt.entries, bt.order.Remove(oldest).(*blackhole).key)
		}
		b := &blackhole{key: k, period: blackholeLeast, until: now.Add(blackholeLeast)}
		if hurried {
			b.period, b.until, b.suspect = blackholeLeast/2, now, true
		}
		bt.entries[k] = bt.order.PushFront(b)
		return !hurried
	}
	// Dials that began before the first discovery report it again.
	b := el.Value.(*blackhole)
	news := b.suspect && (m == dialProbes || !hurried)
	if m == dialProbes && b.probing || news {
		b.period = min(2*b.period, blackholeMost)
		b.until, b.probing, b.suspect = now.Add(b.period), false, false
	}
	bt.order.MoveToFront(el)
	return news
}

// open notes that a SYN with MP_CAPABLE was answered.
func (bt *blackholeTable) open(k blackholeKey) {
	if el, ok := bt.entries[k]; ok {
		bt.order.Remove(el)
		delete(bt.entries, k)
	}
}

// offer decides how c, which is about to be dialed, offers MPTCP. One that
// must be MPTCP offers it whatever is known.
func (h *Host) offer(now mono.Time, c *Conn) {
	if c.cfg.Plain || c.cfg.RequireMPTCP {
		return
	}
	c.offered = h.blackholes.mode(now, blackholeOf(c.first.local.Addr(), c.first.remote.Addr()))
}

// learnOffer takes note of how a dial ended that reached its peer.
func (h *Host) learnOffer(now mono.Time, c *Conn) {
	if !c.active || c.cfg.Plain || c.offered == dialPlain {
		return
	}
	k := blackholeOf(c.first.local.Addr(), c.first.remote.Addr())
	switch c.Fallback() {
	case reason.FallbackSYNTimeout:
		if h.blackholes.closed(now, k, c.offered, c.hurried) {
			h.count(MIBBlackhole)
		}
	case reason.FallbackCollision: // MPTCP was not offered
	default:
		h.blackholes.open(k)
	}
}
