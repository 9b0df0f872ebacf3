package netstack

import (
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// inbound is memory for a packet on its way into the mptcp.Stack, which keeps
// none of it.
type inbound struct {
	packet mptcp.Packet
	views  [][]byte
	held   []any
}

var inboundPool = sync.Pool{New: func() any { return new(inbound) }}

func (in *inbound) free() {
	clear(in.views)
	clear(in.held)
	in.views, in.held = in.views[:0], in.held[:0]
	in.packet = mptcp.Packet{}
	inboundPool.Put(in)
}

// receive hands an inbound TCP packet from gVisor's IP layer to the mptcp.Stack.
// It runs on the goroutine of the link.
func (a *adapter) receive(id stack.TransportEndpointID, pkt *stack.PacketBuffer) {
	src, dst := fromAddress(id.RemoteAddress), fromAddress(id.LocalAddress)
	a.enter(src, dst, pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice(), pkt, pkt.RXChecksumValidated)
}

// enter hands an inbound TCP packet to the mptcp.Stack, its payload as it lies in
// the packet. With trusted its checksum needs no verification.
func (a *adapter) enter(src, dst netip.Addr, ip, tcp []byte, pkt *stack.PacketBuffer, trusted bool) {
	in := inboundPool.Get().(*inbound)
	in.views, in.held = bytesFrom(pkt, len(ip)+len(tcp), in.views, in.held)
	// RFC 9293, Section 3.1: "The sender MUST generate [the checksum] and the
	// receiver MUST check it".
	if !trusted && !pkt.GSOOptions.NeedsCsum && wire.TCPChecksum(src, dst, tcp, in.views) != 0 {
		a.stats.ChecksumErrors.Increment()
		in.free()
		return
	}
	a.stats.ValidSegmentsReceived.Increment()
	srcPort, dstPort := wire.Ports(tcp)
	in.packet = mptcp.Packet{
		Src:     netip.AddrPortFrom(src, srcPort),
		Dst:     netip.AddrPortFrom(dst, dstPort),
		Header:  tcp,
		Payload: in.views,
		Owner:   pkt.IncRef(),
		ECN:     uint8(ecnOf(ip)),
		SegSize: int(pkt.GSOOptions.MSS),
	}
	a.gatherer.add(in)
}
