package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// oddSum marks an accumulator that has seen an odd number of bytes.
const oddSum = 1 << 31

// protocolTCP is the IP protocol number in the pseudo header.
const protocolTCP = 6

// Sum adds the bytes of b to an Internet checksum accumulator (RFC 1071). An
// accumulator starts as 0 and is opaque: it remembers whether it has seen an
// odd number of bytes, so data may be given in pieces of any length, in order.
func Sum(b []byte, initial uint32) uint32 {
	part := sumBytes(b)
	odd := initial & oddSum
	// A byte at an odd place is the low half of its 16-bit word. RFC 1071,
	// Section 2(B): swapping the bytes of all words swaps those of the sum.
	if odd != 0 {
		part = bits.ReverseBytes16(part)
	}
	sum := uint32(fold(uint64(initial&^oddSum) + uint64(part)))
	return sum | (odd ^ uint32(len(b)&1)<<31)
}

// SumViews adds the bytes of several views, in order, to an accumulator.
func SumViews(views [][]byte, initial uint32) uint32 {
	for _, v := range views {
		initial = Sum(v, initial)
	}
	return initial
}

// TCPChecksum returns the complemented checksum over the pseudo header, the
// TCP header as it is, and the payload (RFC 9293, Section 3.1). With a zero
// checksum field in the header it is the value for that field; over a received
// segment it is 0 if the segment is intact.
func TCPChecksum(src, dst netip.Addr, header []byte, payload [][]byte) uint16 {
	n := len(header)
	for _, p := range payload {
		n += len(p)
	}
	sum := SumViews(payload, Sum(header, 0))
	return ^fold(uint64(sum&^oddSum) + sumAddr(src) + sumAddr(dst) +
		uint64(n>>16) + uint64(n&0xffff) + protocolTCP)
}

// DSSChecksum returns the checksum of a mapping (RFC 8684, Section 3.3.1).
// payloadSum is the Sum of the payload that it covers, 0 for a lone DATA_FIN;
// dsn always has 64 bits, "irrespective of what length is used in the DSS
// option itself".
//
//	+--------------------------------------------------------------+
//	|                Data Sequence Number (8 octets)               |
//	+--------------------------------------------------------------+
//	|              Subflow Sequence Number (4 octets)              |
//	+-------------------------------+------------------------------+
//	|  Data-Level Length (2 octets) |        Zeros (2 octets)      |
//	+-------------------------------+------------------------------+
func DSSChecksum(payloadSum uint32, dsn uint64, relSSN uint32, length uint16) uint16 {
	return ^fold(uint64(payloadSum&^oddSum) + dsn>>32 + dsn&0xffffffff + uint64(relSSN) + uint64(length))
}

// sumAddr adds an address as it stands in an IP header. An IPv4 address and
// its IPv4-mapped form differ by ffff, which is zero in this arithmetic.
func sumAddr(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return uint64(binary.BigEndian.Uint32(b[0:])) + uint64(binary.BigEndian.Uint32(b[4:])) +
		uint64(binary.BigEndian.Uint32(b[8:])) + uint64(binary.BigEndian.Uint32(b[12:]))
}

// sumBytes returns the ones' complement sum of b as big-endian 16-bit words, a
// last odd byte filled up with zero.
//
// It adds little-endian words of 64 bits, which is what most machines load
// fastest, and swaps the result: RFC 1071, Section 2 allows both.
func sumBytes(b []byte) uint16 {
	var sum, carry uint64
	for len(b) >= 64 {
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[0:8]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[8:16]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[16:24]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[24:32]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[32:40]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[40:48]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[48:56]), carry)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b[56:64]), carry)
		b = b[64:]
	}
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(b), carry)
		b = b[8:]
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		sum, carry = bits.Add64(sum, binary.LittleEndian.Uint64(tail[:]), carry)
	}
	// The end-around carry may itself carry once; after that sum is 0.
	sum, carry = bits.Add64(sum, 0, carry)
	return bits.ReverseBytes16(fold(sum + carry))
}

// fold reduces a sum to 16 bits with end-around carry.
func fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}
