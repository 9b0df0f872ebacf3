// Package wire translates between the bytes of TCP headers and Segment values:
// the fixed header, the TCP options this stack uses and every MPTCP option of
// RFC 8684 in all of its forms. It also knows the Internet checksum and the
// DSS checksum, cuts super-segments into packets and merges runs of packets.
//
// Everything here is pure: no state, no clock, no allocation. The package
// decides which bytes are well-formed, not what they mean for a connection: it
// reports an MP_CAPABLE of another version, an MSS on a data segment or an
// MP_JOIN of the wrong handshake step as it finds them.
package wire
