package netstack

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// quoteSize is how much of a TCP header every ICMP message quotes: ports and
// sequence number.
const quoteSize = 8

// receiveError tells the mptcp.Stack of an ICMP error about one of its
// packets. The packet's data begins with the quoted TCP header; whether its
// sequence number is one that may have been sent, so that the message is no
// blind guess (RFC 5927, Section 4), is for the subflow to judge.
func (a *adapter) receiveError(err stack.TransportError, pkt *stack.PacketBuffer) {
	quote, ok := pkt.Data().PullUp(quoteSize)
	if !ok {
		return
	}
	localPort, remotePort := wire.Ports(quote)
	sequence := binary.BigEndian.Uint32(quote[4:])
	src, dst, ok := quotedAddresses(pkt)
	if !ok {
		return
	}
	local, remote := netip.AddrPortFrom(src, localPort), netip.AddrPortFrom(dst, remotePort)
	switch err.Kind() {
	case stack.PacketTooBigTransportError:
		mtu := int(err.Info())
		if mtu == 0 {
			mtu = leastMTU(dst)
		}
		a.core.HandlePacketTooBig(local, remote, sequence, mtu)
	case stack.DestinationPortUnreachableTransportError, stack.DestinationProtoUnreachableTransportError:
		// RFC 9293, Section 3.9.2.2: "Destination Unreachable -- codes 2-4" of
		// ICMP "are hard error conditions".
		a.core.HandleUnreachable(local, remote, sequence, true)
	default:
		a.core.HandleUnreachable(local, remote, sequence, false)
	}
}

// leastMTU is what a router may be assumed to carry that asks for smaller
// packets without saying how small, less the IP header: 576 bytes (RFC 1122,
// Section 3.3.3) and 1280 (RFC 8200, Section 5).
func leastMTU(dst netip.Addr) int {
	if dst.Is4() {
		return 576 - header.IPv4MinimumSize
	}
	return header.IPv6MinimumMTU - header.IPv6MinimumSize
}

// quotedAddresses returns the addresses of the packet that an ICMP message
// quotes. gVisor has read them and does not pass them on; they still lie
// between the ICMP header and the data.
func quotedAddresses(pkt *stack.PacketBuffer) (src, dst netip.Addr, ok bool) {
	off := 0
	for _, h := range []stack.PacketHeader{pkt.VirtioNetHeader(), pkt.LinkHeader(), pkt.NetworkHeader(), pkt.TransportHeader()} {
		off += len(h.Slice())
	}
	size := pkt.HeaderSize() - off
	if size < header.IPv4MinimumSize {
		return src, dst, false
	}
	b := make([]byte, size)
	whole := pkt.ToBuffer()
	defer whole.Release()
	if n, err := whole.ReadAt(b, int64(off)); n < size || err != nil {
		return src, dst, false
	}
	if b[0]>>4 == header.IPv6Version && size < header.IPv6MinimumSize {
		return src, dst, false
	}
	src, dst = addressesOf(b)
	return src, dst, true
}
