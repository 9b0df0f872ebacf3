package netstack

import (
	"bytes"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// A host's own links mark inbound TCP packets whose checksum need not be
// looked at, because it was verified already or because the packet never left
// memory that is trusted, by GSOOptions.NeedsCsum; GSOOptions.MSS is the size
// that a super-segment was, or would have been, cut into. gVisor passes both
// on untouched to whoever receives the packet.

// coalescer merges inbound packets that follow each other into super-segments,
// as drivers of network cards do, so that the IP layer and the connection
// work once for many of them.
type coalescer struct {
	out []*stack.PacketBuffer

	run     *wire.Segment         // of the packets in members, merged
	ip      []byte                // the IP header of the first
	members []*stack.PacketBuffer // what run was made from
	next    *wire.Segment         // the packet that was parsed last
	seen    []byte                // its TCP header, if its options are of use for the next
}

var coalescerPool = sync.Pool{New: func() any {
	return &coalescer{run: new(wire.Segment), next: new(wire.Segment)}
}}

// free gives the coalescer back; what merge returned is no longer valid.
func (c *coalescer) free() {
	clear(c.out)
	c.out = c.out[:0]
	coalescerPool.Put(c)
}

// merge returns the packets, which it takes over, as fewer. With trusted their
// checksums are not verified; one that is found wrong stays as it is, for the
// host to find and count.
func (c *coalescer) merge(pkts []*stack.PacketBuffer, trusted bool) []*stack.PacketBuffer {
	for _, pkt := range pkts {
		ip, ok := c.parse(pkt, trusted)
		switch {
		case !ok:
			c.end()
			c.out = append(c.out, pkt)
			continue
		case len(c.members) > 0 && sameIP(c.ip, ip) && wire.Merge(c.run, c.next):
		default:
			c.end()
			c.run, c.next = c.next, c.run
			c.ip = ip
		}
		c.members = append(c.members, pkt)
	}
	c.end()
	return c.out
}

// parse puts a TCP packet with payload and a good checksum into c.next and
// returns its IP header. It reports false for any other packet.
func (c *coalescer) parse(pkt *stack.PacketBuffer, trusted bool) (ip []byte, ok bool) {
	ip, tcp := headersOf(pkt)
	if tcp == nil || len(ip)+len(tcp) == pkt.Size() || !plain(ip, pkt.Size()) {
		return nil, false
	}
	seg := c.next
	if wire.ParseNext(tcp, c.seen, seg) != reason.DropNone {
		return nil, false
	}
	c.seen = tcp
	clear(seg.Payload)
	clear(seg.Blocks)
	seg.Payload, seg.Blocks = seg.Payload[:0], seg.Blocks[:0]
	seg.Src, seg.Dst = flowOf(ip, tcp)
	seg.ECN = ecnOf(ip)
	seg.SegSize = int(pkt.GSOOptions.MSS)
	seg.Payload, seg.Blocks = bytesFrom(pkt, len(ip)+len(tcp), seg.Payload, seg.Blocks)
	if !trusted && !pkt.GSOOptions.NeedsCsum && wire.TCPChecksum(seg.Src.Addr(), seg.Dst.Addr(), tcp, seg.Payload) != 0 {
		return nil, false
	}
	pkt.GSOOptions.NeedsCsum = true
	return ip, true
}

// end completes the run.
func (c *coalescer) end() {
	switch len(c.members) {
	case 0:
	case 1:
		c.out = append(c.out, c.members[0])
	default:
		c.out = append(c.out, c.build())
		for _, pkt := range c.members {
			pkt.DecRef()
		}
	}
	c.run.Reset()
	c.seen = nil // its memory may be another packet's soon
	clear(c.members)
	c.members, c.ip = c.members[:0], nil
}

// build returns the packet that the run amounts to.
func (c *coalescer) build() *stack.PacketBuffer {
	ip, tcp := headersOf(c.members[0])
	head := buffer.NewViewSize(len(ip) + len(tcp))
	b := head.AsSlice()
	copy(b, ip)
	copy(b[len(ip):], tcp)
	setLength(b[:len(ip)], len(tcp)+c.run.PayloadLen())
	writeHeader(c.run, b[len(ip):])
	packet, data := buffer.MakeWithView(head), payloadOf(c.run.Payload, c.run.Blocks)
	packet.Merge(&data)
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: packet})
	pkt.GSOOptions = stack.GSO{Type: gsoTypeOf(c.ip), NeedsCsum: true, MSS: uint16(c.run.SegSize)}
	return pkt
}

// gsoTypeOf returns the kind of super-segment that an IP header is of.
func gsoTypeOf(ip []byte) stack.GSOType {
	if ip[0]>>4 == header.IPv6Version {
		return stack.GSOTCPv6
	}
	return stack.GSOTCPv4
}

// plain reports whether a packet of size bytes with this IP header is a whole
// TCP packet, without IPv4 options or IPv6 extensions.
func plain(ip []byte, size int) bool {
	if ip[0]>>4 == header.IPv6Version {
		h := header.IPv6(ip)
		return h.NextHeader() == uint8(header.TCPProtocolNumber) && int(h.PayloadLength()) == size-header.IPv6MinimumSize
	}
	h := header.IPv4(ip)
	return len(ip) == header.IPv4MinimumSize && h.Protocol() == uint8(header.TCPProtocolNumber) &&
		int(h.TotalLength()) == size && !h.More() && h.FragmentOffset() == 0 && h.IsChecksumValid()
}

// sameIP reports whether two headers of plain packets differ in nothing
// but lengths, identification and checksum.
func sameIP(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == header.IPv4MinimumSize {
		return bytes.Equal(a[:2], b[:2]) && bytes.Equal(a[6:9], b[6:9]) && bytes.Equal(a[12:], b[12:])
	}
	return bytes.Equal(a[:4], b[:4]) && bytes.Equal(a[6:], b[6:])
}
