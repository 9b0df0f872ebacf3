package host

import (
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
	period  time.Duration
	until   mono.Time // dials are plain before, and then one probes
	probing bool      // it does now
	suspect bool      // that it is one, on little evidence
}

// blackholeTable remembers on which ways SYNs with some option stayed unanswered
// and plain ones did not, for MPTCP and for TCP Fast Open.
//
// RFC 8684, Section 3.1: "If the SYN packets are unacknowledged, it is up to
// local policy to decide how to respond." Finding out each time anew would
// cost every connection the time of several lost SYNs.
type blackholeTable[K comparable] struct{ lru[K, blackhole] }

func newBlackholeTable[K comparable]() blackholeTable[K] {
	return blackholeTable[K]{newLRU[K, blackhole](maxBlackholes)}
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

// dialMode is how a dial offers an option.
type dialMode uint8

const (
	dialOffers dialMode = iota // as usual
	dialProbes                 // with one SYN, to see whether the way is still closed
	dialPlain                  // not at all
)

// mode says how a dial begins at now.
func (bt *blackholeTable[K]) mode(now mono.Time, k K) dialMode {
	b := bt.get(k)
	if b == nil {
		return dialOffers
	}
	if !b.until.Reached(now) {
		return dialPlain
	}
	// Others stay plain until the probe is decided, or has had its time.
	b.until, b.probing = now.Add(blackholeLeast), true
	bt.touch(k)
	return dialProbes
}

// closed notes that only a plain SYN was answered. It reports whether that was
// news. Where few SYNs with MP_CAPABLE were sent (hurried), their loss may have
// been an accident: then the next dial has to find the same.
func (bt *blackholeTable[K]) closed(now mono.Time, k K, m dialMode, hurried bool) bool {
	b := bt.touch(k)
	switch {
	case b.period == 0 && hurried:
		b.period, b.until, b.suspect = blackholeLeast/2, now, true
		return false
	case b.period == 0:
		b.period, b.until = blackholeLeast, now.Add(blackholeLeast)
		return true
	}
	// Dials that began before the first discovery report it again.
	news := b.suspect && (m == dialProbes || !hurried)
	if m == dialProbes && b.probing || news {
		b.period = min(2*b.period, blackholeMost)
		b.until, b.probing, b.suspect = now.Add(b.period), false, false
	}
	return news
}

// open notes that a SYN with the option was answered.
func (bt *blackholeTable[K]) open(k K) { bt.remove(k) }

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
