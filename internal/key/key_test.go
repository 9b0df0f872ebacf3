package key_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/seq"
)

// The keys and nonces of the vectors below. What follows from them was
// computed apart from this package.
var (
	keyA = key.Key{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08}
	keyB = key.Key{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
)

const (
	nonceA = 0xa1a2a3a4
	nonceB = 0xb1b2b3b4
)

func TestTokenAndIDSN(t *testing.T) {
	require.Equal(t, key.Token(0x66840dda), keyA.Token())
	require.Equal(t, seq.DSN(0xf5a101d3d29d6f72), keyA.IDSN())
	require.Equal(t, key.Token(0xccad45ac), keyB.Token())
	require.Equal(t, seq.DSN(0x535beea38e087c8e), keyB.IDSN())
}

func TestJoinHMAC(t *testing.T) {
	synAck := key.JoinHMAC(keyB, keyA, nonceB, nonceA)
	require.Equal(t, "864b40428762fd06", hex.EncodeToString(synAck[:8]))
	ack := key.JoinHMAC(keyA, keyB, nonceA, nonceB)
	require.Equal(t, "53037f2899475529844115fd07e665d23d3554fb", hex.EncodeToString(ack[:20]))
}

func TestAddAddrHMAC(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.2")
	for name, c := range map[string]struct {
		local, remote key.Key
		port          uint16
		want          string
	}{
		"from A":           {keyA, keyB, 0, "6e9998bdfbc2a132"},
		"from A with port": {keyA, keyB, 8080, "34ebacca0a9d4ae2"},
		"from B":           {keyB, keyA, 0, "aa82c52c4eec0166"},
	} {
		got := key.AddAddrHMAC(c.local, c.remote, 2, addr, c.port)
		require.Equal(t, c.want, hex.EncodeToString(got[:]), name)
	}
}

func TestAddAddrHMACCoversTheFormOfTheAddress(t *testing.T) {
	v4 := key.AddAddrHMAC(keyA, keyB, 2, netip.MustParseAddr("10.0.0.2"), 0)
	mapped := key.AddAddrHMAC(keyA, keyB, 2, netip.MustParseAddr("::ffff:10.0.0.2"), 0)
	require.NotEqual(t, v4, mapped)
	other := key.AddAddrHMAC(keyA, keyB, 3, netip.MustParseAddr("10.0.0.2"), 0)
	require.NotEqual(t, v4, other)
}

func TestEqual(t *testing.T) {
	require.True(t, key.Equal([]byte{1, 2}, []byte{1, 2}))
	require.False(t, key.Equal([]byte{1, 2}, []byte{1, 3}))
	require.False(t, key.Equal([]byte{1, 2}, []byte{1, 2, 3}))
	require.True(t, key.Equal(nil, nil))
}

func TestISSGrowsWithTheClockOfATuple(t *testing.T) {
	s := key.Secret(bytes.Repeat([]byte{7}, 32))
	local := netip.MustParseAddrPort("192.0.2.1:1000")
	remote := netip.MustParseAddrPort("198.51.100.1:443")
	iss := s.ISS(0, local, remote)
	require.Equal(t, iss, s.ISS(3, local, remote), "one tick takes 4 us")
	require.Equal(t, iss.Add(1), s.ISS(4, local, remote))
	require.Equal(t, iss.Add(250_000), s.ISS(1_000_000, local, remote))
	require.Equal(t, iss, s.ISS(4<<32, local, remote), "the clock wraps after 2^32 ticks")
}

func TestNumbersDependOnEveryPartOfTheTuple(t *testing.T) {
	s := key.Secret(bytes.Repeat([]byte{7}, 32))
	other := key.Secret(bytes.Repeat([]byte{8}, 32))
	a, b := netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("198.51.100.1:443")
	a2, b2 := netip.MustParseAddrPort("192.0.2.1:1001"), netip.MustParseAddrPort("198.51.100.2:443")
	v6 := netip.MustParseAddrPort("[2001:db8::1]:1000")
	seen := map[uint32]bool{}
	for _, x := range []uint32{
		uint32(s.ISS(0, a, b)), uint32(s.ISS(0, b, a)), uint32(s.ISS(0, a2, b)), uint32(s.ISS(0, a, b2)),
		uint32(s.ISS(0, v6, b)), uint32(other.ISS(0, a, b)),
		s.TSOffset(a, b), s.TSOffset(b, a), s.TSOffset(a2, b), s.TSOffset(a, b2), s.TSOffset(v6, b), other.TSOffset(a, b),
	} {
		require.False(t, seen[x], "two inputs give %#x", x)
		seen[x] = true
	}
	require.Equal(t, s.TSOffset(a, b), s.TSOffset(a, b))
}

func TestHashingDoesNotAllocate(t *testing.T) {
	s := key.Secret(bytes.Repeat([]byte{7}, 32))
	a, b := netip.MustParseAddrPort("[2001:db8::1]:1000"), netip.MustParseAddrPort("[2001:db8::2]:443")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = keyA.Token()
		_ = keyA.IDSN()
		_ = key.JoinHMAC(keyA, keyB, nonceA, nonceB)
		_ = key.AddAddrHMAC(keyA, keyB, 1, a.Addr(), 80)
		_ = s.ISS(1, a, b)
		_ = s.TSOffset(a, b)
	}))
}

func BenchmarkToken(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = keyA.Token()
	}
}

func BenchmarkJoinHMAC(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = key.JoinHMAC(keyA, keyB, nonceA, nonceB)
	}
}

func BenchmarkISS(b *testing.B) {
	s := key.Secret(bytes.Repeat([]byte{7}, 32))
	local, remote := netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("198.51.100.1:443")
	b.ReportAllocs()
	for b.Loop() {
		_ = s.ISS(1, local, remote)
	}
}
