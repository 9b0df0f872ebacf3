package netstack

import (
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// writeHeader puts what cutting changes into a copy of a TCP header.
func writeHeader(seg *wire.Segment, tcp header.TCP) {
	tcp.SetSequenceNumber(uint32(seg.Seq))
	tcp.SetFlags(uint8(seg.Flags))
	tcp.SetUrgentPointer(seg.Urgent)
}

// payloadOf makes a packet's payload of views, without copying those that lie
// in a block of the allocator or in another view of gVisor.
func payloadOf(views [][]byte, blocks []any) buffer.Buffer {
	var buf buffer.Buffer
	for i, piece := range views {
		if i < len(blocks) {
			if whole, ok := blocks[i].(*buffer.View); ok {
				_ = buf.Append(share(whole, piece)) // fails never
				continue
			}
		}
		_ = buf.Append(buffer.NewViewWithData(piece))
	}
	return buf
}

// dataOf appends the payload of a packet and the views that hold it.
func dataOf(pkt *stack.PacketBuffer, views [][]byte, holders []any) ([][]byte, []any) {
	return bytesFrom(pkt, pkt.HeaderSize(), views, holders)
}

// bytesFrom appends what lies behind the first skip bytes of a packet, and the
// views that hold it.
func bytesFrom(pkt *stack.PacketBuffer, skip int, views [][]byte, holders []any) ([][]byte, []any) {
	list, reserved := pkt.AsViewList()
	skip += reserved
	for v := list.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if n := min(skip, len(b)); n < len(b) {
			views, holders = append(views, b[n:]), append(holders, v)
		}
		skip -= min(skip, len(b))
	}
	return views, holders
}

// cutting is memory for a super-segment that is being cut.
type cutting struct{ whole, part wire.Segment }

var cuttingPool = sync.Pool{New: func() any { return new(cutting) }}

// cut appends to dst inbound packets made of a TCP super-segment, in- or
// outbound, as a network card does. With sums it computes their checksums. It
// does not take the super-segment over.
func cut(pkt *stack.PacketBuffer, sums bool, dst []*stack.PacketBuffer) []*stack.PacketBuffer {
	ip, tcp := headersOf(pkt)
	c := cuttingPool.Get().(*cutting)
	defer cuttingPool.Put(c)
	whole, part := &c.whole, &c.part
	whole.Reset()
	if tcp == nil || wire.Parse(tcp, whole) != reason.DropNone {
		return dst
	}
	whole.SegSize = int(pkt.GSOOptions.MSS)
	whole.Payload, whole.Blocks = bytesFrom(pkt, len(ip)+len(tcp), whole.Payload, whole.Blocks)
	for cutter := wire.Split(whole); cutter.Next(part); {
		head := buffer.NewViewSize(len(ip) + len(tcp))
		b := head.AsSlice()
		copy(b, ip)
		copy(b[len(ip):], tcp)
		setLength(b[:len(ip)], len(tcp)+part.PayloadLen())
		writeHeader(part, b[len(ip):])
		if sums {
			setChecksum(b[:len(ip)], b[len(ip):], part.Payload)
		}
		packet, data := buffer.MakeWithView(head), payloadOf(part.Payload, part.Blocks)
		packet.Merge(&data)
		dst = append(dst, stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: packet}))
	}
	whole.Reset()
	part.Reset()
	return dst
}

// headersOf returns the IP and TCP headers of a packet; nil if they do not lie
// in one piece.
func headersOf(pkt *stack.PacketBuffer) (ip, tcp []byte) {
	list, skip := pkt.AsViewList()
	if list.Front() == nil {
		return nil, nil
	}
	return headersIn(list.Front().AsSlice()[skip:])
}

// headersIn returns the IP and TCP headers that b begins with; nil if there are
// none.
func headersIn(b []byte) (ip, tcp []byte) {
	n := ipLength(b)
	if n == 0 || len(b) < n+header.TCPMinimumSize {
		return nil, nil
	}
	end := n + int(header.TCP(b[n:]).DataOffset())
	if end < n+header.TCPMinimumSize || end > len(b) {
		return nil, nil
	}
	return b[:n], b[n:end]
}

// ipLength returns the length of the IP header that b begins with, without
// IPv6 extensions; 0 if that is none.
func ipLength(b []byte) int {
	switch {
	case len(b) >= header.IPv4MinimumSize && b[0]>>4 == header.IPv4Version:
		if n := int(header.IPv4(b).HeaderLength()); n >= header.IPv4MinimumSize && n <= len(b) {
			return n
		}
	case len(b) >= header.IPv6MinimumSize && b[0]>>4 == header.IPv6Version:
		return header.IPv6MinimumSize
	}
	return 0
}

// flowOf returns the addresses and ports of a packet.
func flowOf(ip, tcp []byte) (src, dst netip.AddrPort) {
	from, to := addressesOf(ip)
	srcPort, dstPort := wire.Ports(tcp)
	return netip.AddrPortFrom(from, srcPort), netip.AddrPortFrom(to, dstPort)
}

// setLength makes the IP header ip that of a packet with n bytes after it.
func setLength(ip []byte, n int) {
	if ip[0]>>4 == header.IPv6Version {
		header.IPv6(ip).SetPayloadLength(uint16(len(ip) - header.IPv6MinimumSize + n))
		return
	}
	h := header.IPv4(ip)
	h.SetTotalLength(uint16(len(ip) + n))
	h.SetChecksum(0)
	h.SetChecksum(^h.CalculateChecksum())
}

// setChecksum completes a TCP header.
func setChecksum(ip, tcp []byte, payload [][]byte) {
	src, dst := addressesOf(ip)
	wire.PutChecksum(tcp, 0)
	wire.PutChecksum(tcp, wire.TCPChecksum(src, dst, tcp, payload))
}
