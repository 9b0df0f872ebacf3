//go:build linux

package interop

import (
	"encoding/binary"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// corruptor is a box in the way that changes one byte of payload and puts the
// TCP checksum right, so that only a DSS checksum can tell.
type corruptor struct {
	stack.LinkEndpoint
	inbound bool // which direction: to our host, or from it
	after   int  // bytes of payload that pass before

	mu         sync.Mutex
	dispatcher stack.NetworkDispatcher // guarded by mu
	seen       int                     // guarded by mu; bytes of payload
	done       bool                    // guarded by mu
}

// corrupting returns what puts a corruptor before a link.
func corrupting(inbound bool, after int) func(stack.LinkEndpoint) stack.LinkEndpoint {
	return func(ep stack.LinkEndpoint) stack.LinkEndpoint {
		return &corruptor{LinkEndpoint: ep, inbound: inbound, after: after}
	}
}

// WritePackets forwards packets of our host.
func (c *corruptor) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	if c.inbound {
		return c.LinkEndpoint.WritePackets(pkts)
	}
	var list stack.PacketBufferList
	defer list.Reset()
	for _, pkt := range pkts.AsSlice() {
		list.PushBack(c.pass(pkt))
	}
	return c.LinkEndpoint.WritePackets(list)
}

// Attach puts the box between the link and the stack.
func (c *corruptor) Attach(d stack.NetworkDispatcher) {
	c.mu.Lock()
	c.dispatcher = d
	c.mu.Unlock()
	if d == nil {
		c.LinkEndpoint.Attach(nil)
		return
	}
	c.LinkEndpoint.Attach(c)
}

// DeliverNetworkPacket forwards packets to our host.
func (c *corruptor) DeliverNetworkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	c.mu.Lock()
	d := c.dispatcher
	c.mu.Unlock()
	if d == nil {
		return
	}
	if !c.inbound {
		d.DeliverNetworkPacket(proto, pkt)
		return
	}
	pkt = c.pass(pkt)
	defer pkt.DecRef()
	d.DeliverNetworkPacket(proto, pkt)
}

// DeliverLinkPacket does nothing: there is no link header.
func (c *corruptor) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// pass returns a copy of a packet, changed if it is its turn.
func (c *corruptor) pass(pkt *stack.PacketBuffer) *stack.PacketBuffer {
	view := pkt.ToView()
	defer view.Release()
	packet := append([]byte(nil), view.AsSlice()...)
	c.change(packet)
	out := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	out.NetworkProtocolNumber = pkt.NetworkProtocolNumber
	return out
}

func (c *corruptor) change(packet []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ip := header.IPv4(packet)
	if c.done || header.IPVersion(packet) != header.IPv4Version || ip.TransportProtocol() != header.TCPProtocolNumber {
		return
	}
	tcp := header.TCP(ip.Payload())
	payload := tcp.Payload()
	if c.seen += len(payload); len(payload) < 2 || c.seen <= c.after {
		return
	}
	c.done = true
	// RFC 1624: HC' = ~(~HC + ~m + m').
	word := payload[:2]
	old := binary.BigEndian.Uint16(word)
	word[0] ^= 0x55
	sum := uint32(^tcp.Checksum()) + uint32(^old) + uint32(binary.BigEndian.Uint16(word))
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	tcp.SetChecksum(^uint16(sum))
}
