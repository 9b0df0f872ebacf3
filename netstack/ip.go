package netstack

import (
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// IP for TCP on links of this package's making, which have no link layer: there
// gVisor's IP layer does nothing for a whole packet without options, from one
// host to another, that is not done here, at several times the price. It has
// everything else: other protocols, fragments, options and extensions, packets
// that are not for the link or from a strange source, packets of a host to
// itself, and other links. Once Host.GVisor was called it has all of TCP, too:
// who asked may have set up filters in it.

// home is the host that a link of this package's making belongs to, as the link
// sees it.
type home struct {
	to  *adapter
	nic tcpip.NICID // of the link
}

// take hands an inbound packet to the host, if it is one that needs nothing
// else, and reports whether it is. The caller keeps its reference. With trusted
// its checksum needs no verification.
func (h *home) take(pkt *stack.PacketBuffer, trusted bool) bool {
	if h.to.watched.Load() {
		return false
	}
	ip, tcp := headersOf(pkt)
	if tcp == nil || !plain(ip, pkt.Size()) {
		return false
	}
	src, dst := addressesOf(ip)
	if !h.to.homes.Load().admit(src, dst, h.nic) {
		return false
	}
	h.to.enter(src, dst, ip, tcp, pkt, trusted)
	return true
}

// homes are the addresses of a host by the links that are up and have them, and
// the broadcast addresses of the links, by none.
type homes map[netip.Addr]tcpip.NICID

// everybody is the broadcast address of every IPv4 network.
var everybody = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// add makes an address of a link known.
func (h homes) add(p netip.Prefix, nic tcpip.NICID) {
	h[p.Addr()] = nic
	if p.Addr().Is4() && p.Bits() < 31 {
		net := toSubnet(p)
		h[fromAddress(net.Broadcast())] = 0
	}
}

// admit reports whether a packet is for an address of a link and from another
// host. gVisor sees to it that others are discarded, and counted.
//
// RFC 1122, Section 3.2.1.3: "A host MUST silently discard an incoming datagram
// that is not destined for the host", and "A host MUST silently discard an
// incoming datagram containing an IP source address that is invalid by the rules
// of this section."
func (h *homes) admit(src, dst netip.Addr, nic tcpip.NICID) bool {
	if at, ok := (*h)[dst]; !ok || at != nic {
		return false
	}
	_, own := (*h)[src]
	return !own && !src.Is4In6() && !src.IsUnspecified() && !src.IsMulticast() && !src.IsLoopback() && src != everybody
}

// direct returns the link of a route if packets from an address can be written
// to it as they are; nil if they go through gVisor's IP layer.
func (a *adapter) direct(r *stack.Route, src netip.Addr) ownLink {
	if a.watched.Load() || r.Loop() != stack.PacketOut || (*a.homes.Load())[src] != r.OutgoingNIC() {
		return nil
	}
	return a.ownLink(r)
}

// outbound is memory for the list that a link wants.
type outbound struct{ list stack.PacketBufferList }

var outboundPool = sync.Pool{New: func() any { return new(outbound) }}

// writeTo gives a packet its IP header and writes it to a link.
func writeTo(l ownLink, r *stack.Route, pkt *stack.PacketBuffer, ecn uint8) tcpip.Error {
	if r.NetProto() == header.IPv6ProtocolNumber {
		size := pkt.Size()
		header.IPv6(pkt.NetworkHeader().Push(header.IPv6MinimumSize)).Encode(&header.IPv6Fields{
			TrafficClass:      ecn,
			PayloadLength:     uint16(size),
			TransportProtocol: header.TCPProtocolNumber,
			HopLimit:          r.DefaultTTL(),
			SrcAddr:           r.LocalAddress(),
			DstAddr:           r.RemoteAddress(),
		})
	} else {
		ip := header.IPv4(pkt.NetworkHeader().Push(header.IPv4MinimumSize))
		// RFC 6864, Section 4.1: the identification of a packet that must not be
		// fragmented may be anything.
		ip.Encode(&header.IPv4Fields{
			TOS:         ecn,
			TotalLength: uint16(pkt.Size()),
			Flags:       header.IPv4FlagDontFragment,
			TTL:         r.DefaultTTL(),
			Protocol:    uint8(header.TCPProtocolNumber),
			SrcAddr:     r.LocalAddress(),
			DstAddr:     r.RemoteAddress(),
		})
		ip.SetChecksum(^ip.CalculateChecksum())
	}
	pkt.NetworkProtocolNumber = r.NetProto()
	out := outboundPool.Get().(*outbound)
	defer outboundPool.Put(out)
	out.list.PushBack(pkt.IncRef())
	defer out.list.Reset()
	_, err := l.WritePackets(out.list)
	return err
}
