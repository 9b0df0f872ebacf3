package netstack

import (
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
	list, skip := pkt.AsViewList()
	skip += pkt.HeaderSize()
	for v := list.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if n := min(skip, len(b)); n < len(b) {
			views, holders = append(views, b[n:]), append(holders, v)
		}
		skip -= min(skip, len(b))
	}
	return views, holders
}

// cut makes inbound packets of an outbound super-segment, as a network card
// does, and passes them on. With sums it computes their checksums.
func cut(pkt *stack.PacketBuffer, sums bool, emit func(*stack.PacketBuffer)) {
	ip, tcp := pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice()
	var whole, part wire.Segment
	if wire.Parse(tcp, &whole) != reason.DropNone {
		return
	}
	whole.SegSize = int(pkt.GSOOptions.MSS)
	whole.Payload, whole.Blocks = dataOf(pkt, nil, nil)
	for cutter := wire.Split(&whole); cutter.Next(&part); {
		head := buffer.NewViewSize(len(ip) + len(tcp))
		b := head.AsSlice()
		copy(b, ip)
		copy(b[len(ip):], tcp)
		setLength(b[:len(ip)], len(tcp)+part.PayloadLen())
		writeHeader(&part, b[len(ip):])
		if sums {
			setChecksum(b[:len(ip)], b[len(ip):], part.Payload)
		}
		packet, data := buffer.MakeWithView(head), payloadOf(part.Payload, part.Blocks)
		packet.Merge(&data)
		emit(stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: packet}))
	}
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
