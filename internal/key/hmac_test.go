package key

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMACVectors has the test cases of RFC 4231, Sections 4.2 to 4.4, whose
// key and data fit one block.
func TestMACVectors(t *testing.T) {
	for name, c := range map[string]struct {
		key, msg []byte
		want     string
	}{
		"4.2": {
			bytes.Repeat([]byte{0x0b}, 20), []byte("Hi There"),
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
		},
		"4.3": {
			[]byte("Jefe"), []byte("what do ya want for nothing?"),
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
		},
		"4.4": {
			bytes.Repeat([]byte{0xaa}, 20), bytes.Repeat([]byte{0xdd}, 50),
			"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
		},
	} {
		got := mac(c.key, c.msg)
		require.Equal(t, c.want, hex.EncodeToString(got[:]), name)
	}
}

// TestMACAgainstStandardLibrary covers all lengths that mac accepts.
func TestMACAgainstStandardLibrary(t *testing.T) {
	secret, msg := bytes.Repeat([]byte{0x5a}, 64), bytes.Repeat([]byte{0xc3}, 64)
	for n := range 65 {
		h := hmac.New(sha256.New, secret[:n])
		h.Write(msg[:64-n])
		got := mac(secret[:n], msg[:64-n])
		require.Equal(t, h.Sum(nil), got[:], "key of %d bytes", n)
	}
	require.Panics(t, func() { mac(make([]byte, 65), nil) })
}
