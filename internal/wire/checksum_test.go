package wire_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// naive is the checksum as RFC 1071, Section 4.1 spells it.
func naive(b []byte) uint32 {
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
		sum = sum&0xffff + sum>>16
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum&0xffff + sum>>16
}

// RFC 1071, Section 3: the example sums to ddf2.
func TestSumOfRFC1071(t *testing.T) {
	require.Equal(t, uint32(0xddf2), wire.Sum(unhex("0001f203f4f5f6f7"), 0))
}

func TestSumInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, r.IntN(300))
		for i := range b {
			b[i] = byte(r.Uint32())
			if r.IntN(3) > 0 {
				b[i] = 0xff // makes carries common
			}
		}
		even := b[:len(b)&^1]
		require.Equal(t, naive(even), wire.Sum(even, 0))
		whole := wire.Sum(b, 0)
		require.Equal(t, naive(b), whole&0xffff)

		var views [][]byte
		for rest := b; len(rest) > 0; {
			n := r.IntN(len(rest) + 1)
			views, rest = append(views, rest[:n]), rest[n:]
		}
		require.Equal(t, whole, wire.SumViews(views, 0))
	}
}

// By hand: pseudo header 0a00+0001+0a00+0002+0006+0014 = 141d, header
// 03e8+0050+0001+5002+ffff = 543b, together 6858, complement 97a7.
func TestTCPChecksumIPv4(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	h := unhex("03e8 0050 00000001 00000000 5002 ffff 0000 0000")
	require.Equal(t, uint16(0x97a7), wire.TCPChecksum(src, dst, h, nil))
	wire.PutChecksum(h, 0x97a7)
	require.Zero(t, wire.TCPChecksum(src, dst, h, nil))
	mapped := netip.MustParseAddr("::ffff:10.0.0.1")
	require.Zero(t, wire.TCPChecksum(mapped, dst, h, nil))
}

// By hand: pseudo header 2001+0db8+0001 + 2001+0db8+0002 + 0014+0006 = 5b8f,
// header 543b as above, together afca, complement 5035.
func TestTCPChecksumIPv6(t *testing.T) {
	src, dst := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	h := unhex("03e8 0050 00000001 00000000 5002 ffff 0000 0000")
	require.Equal(t, uint16(0x5035), wire.TCPChecksum(src, dst, h, nil))
}

func TestTCPChecksumOverViews(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	h := unhex("03e8 0050 00000001 00000000 5010 ffff 0000 0000")
	data := make([]byte, 70000) // longer than 16 bits of pseudo-header length
	for i := range data {
		data[i] = byte(i * 7)
	}
	one := wire.TCPChecksum(src, dst, h, [][]byte{data})
	three := wire.TCPChecksum(src, dst, h, [][]byte{data[:1], data[1:1000], nil, data[1000:]})
	require.Equal(t, one, three)
	wire.PutChecksum(h, one)
	require.Zero(t, wire.TCPChecksum(src, dst, h, [][]byte{data[:333], data[333:]}))
	data[5] ^= 1
	require.NotZero(t, wire.TCPChecksum(src, dst, h, [][]byte{data}))
}

// RFC 8684, Section 3.3.1. Key 0102030405060708 has the IDSN f5a101d3d29d6f72;
// the checksums were computed outside of this project's code.
func TestDSSChecksum(t *testing.T) {
	const idsn = 0xf5a101d3d29d6f72
	hello := wire.Sum([]byte("lo"), wire.Sum([]byte("hel"), 0))
	require.Equal(t, uint16(0x82a1), wire.DSSChecksum(hello, idsn+1, 1, 5))
	// Section 3.3.3: for a lone DATA_FIN it "will only cover the pseudo-header".
	require.Equal(t, uint16(0xc673), wire.DSSChecksum(0, idsn+6, 0, 1))
}
