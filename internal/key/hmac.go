package key

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// JoinHMAC returns the HMAC by which the local host proves to a joining or
// joined peer that it has both keys: the leftmost 64 bits of it travel in the
// SYN/ACK, the leftmost 160 in the third ACK. The peer's is the same with all
// arguments swapped.
//
// RFC 8684, Section 3.2, Figure 8: "HMAC-A = HMAC(Key=(Key-A + Key-B),
// Msg=(R-A + R-B))", which host A sends.
func JoinHMAC(local, remote Key, localNonce, remoteNonce uint32) [32]byte {
	secret := pair(local, remote)
	var msg [8]byte
	binary.BigEndian.PutUint32(msg[:4], localNonce)
	binary.BigEndian.PutUint32(msg[4:], remoteNonce)
	return mac(secret[:], msg[:])
}

// AddAddrHMAC returns the truncated HMAC of an ADD_ADDR that the local host
// sends. Port is 0 if the option has none. An IPv4-mapped address counts as
// IPv6, as it does on the wire.
//
// RFC 8684, Section 3.4.1: "the rightmost 64 bits of an HMAC [...] The message
// for the HMAC is the Address ID, IP address, and port that precede the HMAC
// in the ADD_ADDR option. If the port is not present in the ADD_ADDR option,
// the HMAC message will nevertheless include 2 octets of value zero."
func AddAddrHMAC(local, remote Key, id uint8, addr netip.Addr, port uint16) [8]byte {
	secret := pair(local, remote)
	var buf [1 + 16 + 2]byte
	msg := append(buf[:0], id)
	if addr.Is4() {
		a := addr.As4()
		msg = append(msg, a[:]...)
	} else {
		a := addr.As16()
		msg = append(msg, a[:]...)
	}
	msg = binary.BigEndian.AppendUint16(msg, port)
	sum := mac(secret[:], msg)
	return [8]byte(sum[len(sum)-8:])
}

// pair returns the HMAC key of a host: its own key, then its peer's.
func pair(local, remote Key) (secret [16]byte) {
	copy(secret[:8], local[:])
	copy(secret[8:], remote[:])
	return secret
}

// mac returns HMAC-SHA256(secret, msg) as RFC 2104, Section 2 defines it. Both
// are at most one hash block long, so that neither a hash of the secret nor
// memory beyond the stack is needed.
func mac(secret, msg []byte) [sha256.Size]byte {
	const ipad, opad = 0x36, 0x5c
	var inner [2 * sha256.BlockSize]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	if len(secret) > sha256.BlockSize || len(msg) > sha256.BlockSize {
		panic("key: secret or message longer than a hash block")
	}
	copy(inner[:], secret)
	copy(outer[:], secret)
	for i := range sha256.BlockSize {
		inner[i] ^= ipad
		outer[i] ^= opad
	}
	n := copy(inner[sha256.BlockSize:], msg)
	sum := sha256.Sum256(inner[:sha256.BlockSize+n])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}
