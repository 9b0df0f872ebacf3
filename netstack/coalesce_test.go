package netstack

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// rawPacket returns an inbound packet of its own of the bytes of an outbound
// one.
func rawPacket(t *testing.T, out *stack.PacketBuffer) *stack.PacketBuffer {
	t.Helper()
	whole := out.ToView()
	defer whole.Release()
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(whole.AsSlice())})
}

// wirePackets returns what a link without offload carries of a super-segment.
func wirePackets(t *testing.T, src, dst string, payload []byte, flags header.TCPFlags) []*stack.PacketBuffer {
	t.Helper()
	super := superSegment(netip.MustParseAddr(src), netip.MustParseAddr(dst), payload, 1448, flags)
	defer super.DecRef()
	var own []*stack.PacketBuffer
	for _, pkt := range cut(super, true, nil) {
		own = append(own, rawPacket(t, pkt))
		pkt.DecRef()
	}
	return own
}

func content(pkt *stack.PacketBuffer) []byte {
	v := pkt.ToView()
	defer v.Release()
	return bytes.Clone(v.AsSlice())
}

func TestCoalescerUndoesTheCut(t *testing.T) {
	payload := pattern(10_000)
	for _, net := range []struct {
		src, dst string
		kind     stack.GSOType
		ip       int
	}{{"10.0.0.1", "10.0.0.2", stack.GSOTCPv4, 20}, {"2001:db8::1", "2001:db8::2", stack.GSOTCPv6, 40}} {
		t.Run(net.src, func(t *testing.T) {
			c := coalescerPool.Get().(*coalescer)
			defer c.free()
			got := c.merge(wirePackets(t, net.src, net.dst, payload, header.TCPFlagAck|header.TCPFlagPsh), false)
			require.Len(t, got, 1)
			require.Equal(t, stack.GSO{Type: net.kind, NeedsCsum: true, MSS: 1448}, got[0].GSOOptions)
			b := content(got[0])
			require.Len(t, b, net.ip+32+len(payload))
			if net.ip == 20 {
				require.True(t, header.IPv4(b).IsValid(len(b)))
				require.True(t, header.IPv4(b).IsChecksumValid())
			} else {
				require.True(t, header.IPv6(b).IsValid(len(b)))
			}
			tcp := header.TCP(b[net.ip:])
			require.Equal(t, uint32(1<<32-1000), tcp.SequenceNumber())
			require.Equal(t, header.TCPFlagAck|header.TCPFlagPsh, tcp.Flags())
			require.Equal(t, payload, []byte(tcp.Payload()))
			got[0].DecRef()
		})
	}
}

// What must not be merged comes out as it was, in its place.
func TestCoalescerLeavesApart(t *testing.T) {
	for name, spoil := range map[string]func(ip header.IPv4, tcp header.TCP){
		"checksum":        func(_ header.IPv4, tcp header.TCP) { tcp.Payload()[7] ^= 1 },
		"header checksum": func(ip header.IPv4, _ header.TCP) { ip.SetID(77) },
		"sequence":        func(_ header.IPv4, tcp header.TCP) { tcp.SetSequenceNumber(9) },
		"acknowledgment":  func(_ header.IPv4, tcp header.TCP) { tcp.SetAckNumber(8) },
		"window":          func(_ header.IPv4, tcp header.TCP) { tcp.SetWindowSize(98) },
		"timestamp":       func(_ header.IPv4, tcp header.TCP) { tcp.Options()[7]++ },
		"ECN":             func(ip header.IPv4, _ header.TCP) { ip.SetTOS(3, 0) },
		"TTL":             func(ip header.IPv4, _ header.TCP) { ip.SetTTL(63) },
		"fragment":        func(ip header.IPv4, _ header.TCP) { ip.SetFlagsFragmentOffset(header.IPv4FlagMoreFragments, 0) },
		"protocol":        func(ip header.IPv4, _ header.TCP) { ip[9] = 17 },
		"port":            func(_ header.IPv4, tcp header.TCP) { tcp.SetDestinationPort(2001) },
		"reset":           func(_ header.IPv4, tcp header.TCP) { tcp.SetFlags(uint8(header.TCPFlagAck | header.TCPFlagRst)) },
	} {
		t.Run(name, func(t *testing.T) {
			in := wirePackets(t, "10.0.0.1", "10.0.0.2", pattern(5*1448), header.TCPFlagAck)
			list, _ := in[2].AsViewList()
			b := list.Front().AsSlice()
			ip := header.IPv4(b)
			spoil(ip, header.TCP(b[20:]))
			if name != "checksum" && name != "header checksum" {
				ip.SetChecksum(0)
				ip.SetChecksum(^ip.CalculateChecksum())
				setChecksum(b[:20], b[20:], nil)
			}
			odd := content(in[2])

			c := coalescerPool.Get().(*coalescer)
			defer c.free()
			got := c.merge(in, false)
			require.Len(t, got, 3)
			require.Equal(t, odd, content(got[1]))
			for i, want := range map[int]int{0: 52 + 2*1448, 2: 52 + 2*1448} {
				require.Equal(t, want, got[i].Size())
			}
			if name == "checksum" {
				require.False(t, got[1].GSOOptions.NeedsCsum, "the host must see that it is wrong")
			}
			for _, pkt := range got {
				pkt.DecRef()
			}
		})
	}
}

// Whatever the bytes, the coalescer keeps them and their order.
func FuzzCoalescer(f *testing.F) {
	f.Add([]byte("E"), []byte("`"))
	super := superSegment(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), make([]byte, 400), 100, header.TCPFlagAck)
	var seeds [][]byte
	for _, pkt := range cut(super, true, nil) {
		seeds = append(seeds, content(pkt))
	}
	f.Add(seeds[0], seeds[1])
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var in []*stack.PacketBuffer
		size := 0
		for _, b := range [][]byte{one, two} {
			in = append(in, stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)}))
			size += len(b)
		}
		c := coalescerPool.Get().(*coalescer)
		defer c.free()
		got := c.merge(in, true)
		if len(got) == 2 {
			require.True(t, bytes.Equal(one, content(got[0])))
			require.True(t, bytes.Equal(two, content(got[1])))
		} else {
			require.Len(t, got, 1)
			require.Less(t, got[0].Size(), size)
		}
		for _, pkt := range got {
			pkt.DecRef()
		}
	})
}
