package key

import (
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// CookieSlot is how long SYN cookies for the same SYN stay the same. One is
// valid for the rest of its slot and all of the next.
const CookieSlot = 64 * time.Second

// A SYN cookie is an initial sequence number in which a server that keeps no
// state finds, once it is acknowledged, what it must know: the number of the
// slot modulo 32 in 5 bits, an index of 3 bits, and 24 bits that nobody else
// can compute. RFC 4987, Appendix A, describes the layout.
const (
	cookieMACBits   = 24
	cookieIndexBits = 3
	cookieSlotBits  = 5
)

// Cookie returns the SYN cookie for a SYN whose sequence number was peer. Of
// index the low 3 bits count.
func (s *Secret) Cookie(slot uint64, index uint8, peer seq.SSN, local, remote netip.AddrPort) seq.SSN {
	index &= 1<<cookieIndexBits - 1
	sum := s.hash(purposeCookie, local, remote, uint32(peer), slot, index)
	mac := binary.BigEndian.Uint32(sum[:4]) & (1<<cookieMACBits - 1)
	top := uint32(slot)&(1<<cookieSlotBits-1)<<cookieIndexBits | uint32(index)
	return seq.SSN(top<<cookieMACBits | mac)
}

// CheckCookie reports whether iss is a cookie of slot now or the one before,
// and returns the slot and the index that it was made with.
func (s *Secret) CheckCookie(now uint64, iss, peer seq.SSN, local, remote netip.AddrPort) (slot uint64, index uint8, ok bool) {
	index = uint8(uint32(iss) >> cookieMACBits & (1<<cookieIndexBits - 1))
	for slot = now; slot+2 > now; slot-- {
		want := s.Cookie(slot, index, peer, local, remote)
		if subtle.ConstantTimeEq(int32(uint32(want)), int32(uint32(iss))) == 1 {
			return slot, index, true
		}
		if slot == 0 {
			break
		}
	}
	return 0, 0, false
}

// CookieKey returns the key to send along with a cookie.
//
// RFC 8684, Section 3.1: "If the server behaves in a stateless manner, it has
// to generate its own key in a verifiable fashion. This verifiable way of
// generating the key can be done by using a hash of the 4-tuple, sequence
// number, and a local secret".
func (s *Secret) CookieKey(slot uint64, peer seq.SSN, local, remote netip.AddrPort) Key {
	sum := s.hash(purposeCookieKey, local, remote, uint32(peer), slot, 0)
	return Key(sum[:8])
}
