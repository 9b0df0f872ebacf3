package netstack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// flights are the packets on their way, in a heap with the earliest first.
// Packets that arrive at the same instant keep the order of their sending.
type flights struct {
	heap []flight
	sent uint64
}

type flight struct {
	at    mono.Time
	order uint64
	pkt   *stack.PacketBuffer
}

func (f flight) before(g flight) bool { return f.at < g.at || f.at == g.at && f.order < g.order }

func (q *flights) len() int         { return len(q.heap) }
func (q *flights) first() mono.Time { return q.heap[0].at }

func (q *flights) push(at mono.Time, pkt *stack.PacketBuffer) {
	q.sent++
	q.heap = append(q.heap, flight{at, q.sent, pkt})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *flights) pop() *stack.PacketBuffer {
	pkt, last := q.heap[0].pkt, len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = flight{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return pkt
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// ecnOf returns the ECN field of an IP header, of which two bytes will do.
func ecnOf(ip []byte) wire.ECN {
	switch {
	case len(ip) < 2:
		return wire.NotECT
	case ip[0]>>4 == header.IPv6Version:
		return wire.ECN(ip[1] >> 4 & 3)
	}
	return wire.ECN(ip[1] & 3)
}

// capable reports whether an inbound packet may be marked.
func capable(pkt *stack.PacketBuffer) bool {
	ip, _ := pkt.Data().PullUp(2)
	return ecnOf(ip) != wire.NotECT
}

// marked replaces an inbound packet by a copy with CE set.
func marked(pkt *stack.PacketBuffer) *stack.PacketBuffer {
	return rewritten(pkt, func(b []byte) {
		switch {
		case len(b) >= header.IPv6MinimumSize && b[0]>>4 == header.IPv6Version:
			tos, label := header.IPv6(b).TOS()
			header.IPv6(b).SetTOS(tos|uint8(wire.CE), label)
		case len(b) >= header.IPv4MinimumSize && int(header.IPv4(b).HeaderLength()) <= len(b):
			ip := header.IPv4(b)
			tos, _ := ip.TOS()
			ip.SetTOS(tos|uint8(wire.CE), 0)
			ip.SetChecksum(0)
			ip.SetChecksum(^ip.CalculateChecksum())
		}
	})
}

// corrupted replaces an inbound packet by a copy with one bit flipped.
func corrupted(pkt *stack.PacketBuffer, bit int) *stack.PacketBuffer {
	return rewritten(pkt, func(b []byte) {
		if len(b) > 0 {
			bit %= 8 * len(b)
			b[bit/8] ^= 0x80 >> (bit % 8)
		}
	})
}

// rewritten replaces an inbound packet, whose memory others may see, by a copy
// that change has worked on.
func rewritten(pkt *stack.PacketBuffer, change func([]byte)) *stack.PacketBuffer {
	buf := pkt.ToBuffer()
	b := buf.Flatten()
	buf.Release()
	pkt.DecRef()
	change(b)
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
}
