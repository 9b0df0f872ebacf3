package host

import (
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/key"
)

// keyDraws is how often a key is drawn anew before the search for one whose
// token is free is given up. With a million connections one draw in 4000
// collides, so that running out means a broken random source.
const keyDraws = 16

// tokenTable maps the tokens of connections that may be joined, or may come
// to be, to them.
type tokenTable map[key.Token]*Conn

// claim registers t for c. It reports false if t is another connection's.
func (tt tokenTable) claim(t key.Token, c *Conn) bool {
	if other, ok := tt[t]; ok && other != c {
		return false
	}
	tt[t] = c
	c.token, c.hasToken = t, true
	return true
}

// release forgets the token of c, if it has one.
func (tt tokenTable) release(c *Conn) {
	if c.hasToken {
		delete(tt, c.token)
		c.hasToken = false
	}
}

// keyFree reports whether k may become the key of a connection: it is not the
// zero key, by which others might mean none, and no live connection has its
// token.
//
// RFC 8684, Section 3.1: "An implementation SHOULD check its list of
// connection tokens to ensure there is no collision before sending its key".
// Keys with different tokens differ, so this also keeps keys unique.
func (h *Host) keyFree(k key.Key) bool {
	if k == (key.Key{}) {
		return false
	}
	_, taken := h.tokens[k.Token()]
	if taken {
		h.counters.TokenCollisions++
	}
	return !taken
}

// newKey draws a key that is free.
func (h *Host) newKey() (k key.Key, ok bool) {
	for range keyDraws {
		binary.BigEndian.PutUint64(k[:], h.cfg.Rand())
		if h.keyFree(k) {
			return k, true
		}
	}
	return key.Key{}, false
}
