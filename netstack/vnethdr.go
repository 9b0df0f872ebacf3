package netstack

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// vnetHeader is the virtio_net_hdr that stands before each packet of a TUN
// device with offload (Virtual I/O Device (VIRTIO) 1.2, Section 5.1.6), in the
// byte order of the machine:
//
//	+-------+----------+----------------+----------------+----------------+-----------------+
//	| flags | gso_type | hdr_len (2)    | gso_size (2)   | csum_start (2) | csum_offset (2) |
//	+-------+----------+----------------+----------------+----------------+-----------------+
type vnetHeader [10]byte

// Values of its fields.
const (
	vnetNeedsCsum = 1 // flags: the checksum is that of the pseudo header, the rest is to be added
	vnetDataValid = 2 // flags: the checksum was verified

	vnetGSONone  = 0
	vnetGSOTCPv4 = 1
	vnetGSOTCPv6 = 4
	vnetGSOECN   = 0x80 // with CWR: only the first packet has it
)

func (h *vnetHeader) csumStart() int  { return int(binary.NativeEndian.Uint16(h[6:])) }
func (h *vnetHeader) csumOffset() int { return int(binary.NativeEndian.Uint16(h[8:])) }

// describe fills the header in for a packet on its way to the device.
func (h *vnetHeader) describe(pkt *stack.PacketBuffer) {
	*h = vnetHeader{}
	if pkt.GSOOptions.Type == stack.GSONone {
		return
	}
	ip, tcp := headersOf(pkt)
	if tcp == nil {
		return
	}
	h[0], h[1] = vnetNeedsCsum, vnetGSOTCPv4
	if pkt.GSOOptions.Type == stack.GSOTCPv6 {
		h[1] = vnetGSOTCPv6
	}
	if header.TCP(tcp).Flags().Contains(header.TCPFlagCwr) {
		h[1] |= vnetGSOECN
	}
	binary.NativeEndian.PutUint16(h[2:], uint16(len(ip)+len(tcp)))
	binary.NativeEndian.PutUint16(h[4:], pkt.GSOOptions.MSS)
	binary.NativeEndian.PutUint16(h[6:], uint16(len(ip)))
	binary.NativeEndian.PutUint16(h[8:], header.TCPChecksumOffset)
}

// packet makes an inbound packet of what was read behind the header, and takes
// v over. It returns nil if the two do not fit together.
func (h *vnetHeader) packet(v *buffer.View) *stack.PacketBuffer {
	b := v.AsSlice()
	gso := stack.GSO{NeedsCsum: h[0]&vnetDataValid != 0}
	ok := true
	switch h[1] &^ vnetGSOECN {
	case vnetGSONone:
	case vnetGSOTCPv4:
		gso.Type = stack.GSOTCPv4
	case vnetGSOTCPv6:
		gso.Type = stack.GSOTCPv6
	default:
		ok = false
	}
	if gso.Type != stack.GSONone {
		gso.MSS = binary.NativeEndian.Uint16(h[4:])
		ok = ok && gso.MSS > 0
	}
	if h[0]&vnetNeedsCsum != 0 {
		// Of TCP nobody asks for it; another protocol's is completed.
		gso.NeedsCsum = true
		if n := ipLength(b); n != h.csumStart() || h.csumOffset() != header.TCPChecksumOffset {
			ok = ok && complete(b, h.csumStart(), h.csumOffset())
			gso.NeedsCsum = false
		}
	}
	if !ok {
		v.Release()
		return nil
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: parted(v)})
	pkt.GSOOptions = gso
	return pkt
}

// partFrom is how many bytes a packet must have for its headers to be parted
// from its payload.
const partFrom = 4 << 10

// parted returns the buffer of a packet that lies in v, which it takes over.
// gVisor copies the whole memory that headers lie in when it looks at them, if
// that is shared, as it makes it be itself: so those of a large packet get some
// of their own.
func parted(v *buffer.View) buffer.Buffer {
	b := v.AsSlice()
	ip, tcp := headersIn(b)
	n := len(ip) + len(tcp)
	if tcp == nil || len(b) < partFrom {
		return buffer.MakeWithView(v)
	}
	buf := buffer.MakeWithData(b[:n])
	v.TrimFront(n)
	payload := buffer.MakeWithView(v)
	buf.Merge(&payload)
	return buf
}

// complete finishes a partial checksum. It reports false if there is no place
// for it in the packet.
func complete(b []byte, start, offset int) bool {
	at := start + offset
	if start > len(b) || at+2 > len(b) {
		return false
	}
	sum := ^checksum.Checksum(b[start:], 0)
	if sum == 0 {
		sum = 0xffff // RFC 768: zero would mean that there is none
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	return true
}
