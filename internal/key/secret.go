package key

import (
	"encoding/binary"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/seq"
)

// Secret is a stack's own secret, drawn once from a source that cannot be
// guessed. It makes the numbers that a TCP shows unpredictable to those who
// see other connections of the same host.
type Secret [32]byte

// purpose keeps the uses of one Secret apart.
type purpose uint8

const (
	purposeISS purpose = iota + 1
	purposeTimestamp
	purposeCookie
	purposeCookieKey
	purposeFastOpen
)

// ISS returns the initial send sequence number of a connection, micros
// microseconds after the origin of the stack's clock.
//
// RFC 6528, Section 3: "ISN = M + F(localip, localport, remoteip, remoteport,
// secretkey) where M is the 4 microsecond timer, and F() is a pseudorandom
// function (PRF) of the connection-id. F() MUST NOT be computable from the
// outside". Successive connections of one 4-tuple thus have growing numbers.
func (s *Secret) ISS(micros uint64, local, remote netip.AddrPort) seq.SSN {
	return seq.SSN(uint32(micros/4) + s.tuple(purposeISS, local, remote))
}

// TSOffset returns what to add to the timestamp clock of a connection, in
// ticks of that clock.
//
// RFC 7323, Section 5.4: "A random offset may be added to the timestamp clock
// on a per-connection basis. [...] The same function with a different secret
// key can be used". As the 4-tuple alone determines the offset, the clock runs
// on across connections of one tuple, which the reuse of TIME-WAIT relies on.
func (s *Secret) TSOffset(local, remote netip.AddrPort) uint32 {
	return s.tuple(purposeTimestamp, local, remote)
}

// tuple returns 32 pseudorandom bits of a 4-tuple.
func (s *Secret) tuple(p purpose, local, remote netip.AddrPort) uint32 {
	sum := s.hash(p, local, remote, 0, 0, 0)
	return binary.BigEndian.Uint32(sum[:4])
}

// hash returns pseudorandom bits of a 4-tuple, a sequence number, a slot of
// time and an index. The zone of an address does not count.
func (s *Secret) hash(p purpose, local, remote netip.AddrPort, number uint32, slot uint64, index uint8) [32]byte {
	var msg [1 + 2*(16+2) + 4 + 8 + 1]byte
	b := append(msg[:0], byte(p))
	for _, ap := range [2]netip.AddrPort{local, remote} {
		a := ap.Addr().As16()
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint16(b, ap.Port())
	}
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint64(b, slot)
	return mac(s[:], append(b, index))
}
