package key_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/seq"
)

var (
	cookieSecret = key.Secret(bytes.Repeat([]byte{7}, 32))
	cookieLocal  = netip.MustParseAddrPort("192.0.2.1:443")
	cookieRemote = netip.MustParseAddrPort("198.51.100.1:1000")
)

// RFC 4987, Appendix A: "the top five bits come from a 32-bit counter value
// modulo 32 [...], the next 3 bits encode a usable MSS".
func TestCookieLayout(t *testing.T) {
	c := uint32(cookieSecret.Cookie(32+9, 5, 1000, cookieLocal, cookieRemote))
	require.Equal(t, uint32(9), c>>27)
	require.Equal(t, uint32(5), c>>24&7)
}

func TestCookiesAreValidForTwoSlots(t *testing.T) {
	s := &cookieSecret
	for _, made := range []uint64{0, 1, 31, 32, 1000} {
		iss := s.Cookie(made, 3, 1000, cookieLocal, cookieRemote)
		for now := made; now < made+40; now++ {
			slot, index, ok := s.CheckCookie(now, iss, 1000, cookieLocal, cookieRemote)
			require.Equal(t, now < made+2, ok, "made in %d, checked in %d", made, now)
			if ok {
				require.Equal(t, made, slot)
				require.Equal(t, uint8(3), index)
			}
		}
	}
}

func TestCookiesProveWhatTheyWereMadeFrom(t *testing.T) {
	s := &cookieSecret
	other := key.Secret(bytes.Repeat([]byte{8}, 32))
	iss := s.Cookie(5, 3, 1000, cookieLocal, cookieRemote)
	check := func(s *key.Secret, iss, peer seq.SSN, local, remote netip.AddrPort) bool {
		_, _, ok := s.CheckCookie(5, iss, peer, local, remote)
		return ok
	}
	require.True(t, check(s, iss, 1000, cookieLocal, cookieRemote))
	require.False(t, check(s, iss, 1001, cookieLocal, cookieRemote))
	require.False(t, check(s, iss, 1000, cookieRemote, cookieLocal))
	require.False(t, check(s, iss, 1000, netip.MustParseAddrPort("192.0.2.1:444"), cookieRemote))
	require.False(t, check(&other, iss, 1000, cookieLocal, cookieRemote))
	for bit := range 32 {
		require.False(t, check(s, iss^1<<bit, 1000, cookieLocal, cookieRemote), "bit %d", bit)
	}
}

func TestCookieKeys(t *testing.T) {
	s := &cookieSecret
	k := s.CookieKey(5, 1000, cookieLocal, cookieRemote)
	require.Equal(t, k, s.CookieKey(5, 1000, cookieLocal, cookieRemote))
	require.NotEqual(t, k, s.CookieKey(6, 1000, cookieLocal, cookieRemote))
	require.NotEqual(t, k, s.CookieKey(5, 1001, cookieLocal, cookieRemote))
	require.NotEqual(t, k, s.CookieKey(5, 1000, cookieRemote, cookieLocal))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = s.CookieKey(5, 1000, cookieLocal, cookieRemote)
		_ = s.Cookie(5, 1, 1000, cookieLocal, cookieRemote)
	}))
}
