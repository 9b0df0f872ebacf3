package key_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
)

// RFC 7413, Section 4.1.2: a cookie authenticates the peer's address, cannot be
// made without the secret, and expires.
func TestFastOpenCookie(t *testing.T) {
	s := key.Secret(bytes.Repeat([]byte{7}, 32))
	local, remote := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	for _, made := range []uint64{0, 1, 1000} {
		c := s.FastOpenCookie(made, local, remote)
		for now := made; now < made+5; now++ {
			for _, n := range []int{8, 6} {
				ok, current := s.CheckFastOpen(now, c[:n], local, remote)
				require.Equal(t, now < made+2, ok, "made in %d, checked in %d", made, now)
				require.Equal(t, now == made, current)
			}
		}
		if made > 0 {
			ok, _ := s.CheckFastOpen(made-1, c[:], local, remote)
			require.False(t, ok, "not yet made")
		}
	}
	c := s.FastOpenCookie(5, local, remote)
	for n := range 8 {
		if n != 6 {
			ok, _ := s.CheckFastOpen(5, c[:n], local, remote)
			require.False(t, ok, "%d bytes", n)
		}
	}
	for i := range c {
		bad := c
		bad[i] ^= 1
		ok, _ := s.CheckFastOpen(5, bad[:], local, remote)
		require.False(t, ok, "byte %d", i)
	}
	other := key.Secret(bytes.Repeat([]byte{8}, 32))
	for _, d := range [][8]byte{
		s.FastOpenCookie(5, local, netip.MustParseAddr("198.51.100.2")),
		s.FastOpenCookie(5, netip.MustParseAddr("192.0.2.2"), remote),
		s.FastOpenCookie(5, remote, local),
		s.FastOpenCookie(6, local, remote),
		other.FastOpenCookie(5, local, remote),
	} {
		require.NotEqual(t, c, d)
	}
}
