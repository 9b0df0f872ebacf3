package key

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// Key is one host's secret of a connection, in network order as in
// MP_CAPABLE. The caller draws it from a source that cannot be guessed.
type Key [8]byte

// Token identifies a connection to the peer that wants to join it.
type Token uint32

// Token returns the token of the connection whose local key is k.
//
// RFC 8684, Section 3.1: "the token MUST be a truncated (most significant
// 32 bits) SHA-256 hash [RFC6234] of the key."
func (k Key) Token() Token {
	t, _ := k.Derive()
	return t
}

// IDSN returns the initial data sequence number of the host whose key is k.
// Its first byte of data has the next number.
//
// RFC 8684, Section 3.1: "A different, 64-bit truncation (the least
// significant 64 bits) of the SHA-256 hash of the key MUST be used as the
// IDSN. Note that the key MUST be hashed in network byte order."
func (k Key) IDSN() seq.DSN {
	_, idsn := k.Derive()
	return idsn
}

// Derive returns both for the price of one.
func (k Key) Derive() (Token, seq.DSN) {
	sum := sha256.Sum256(k[:])
	return Token(binary.BigEndian.Uint32(sum[:4])), seq.DSN(binary.BigEndian.Uint64(sum[len(sum)-8:]))
}

// Equal reports whether a and b are the same bytes, in a time that depends on
// their lengths only.
func Equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }
