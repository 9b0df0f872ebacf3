package netstack

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// vnet returns a header of the given fields, in the order of the standard.
func vnet(flags, kind byte, fields ...uint16) (h vnetHeader) {
	h[0], h[1] = flags, kind
	for i, v := range fields {
		binary.NativeEndian.PutUint16(h[2+2*i:], v)
	}
	return h
}

func TestVnetHeaderDescribesSuperSegments(t *testing.T) {
	var h vnetHeader
	v4 := superSegment(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), make([]byte, 5000), 1448, header.TCPFlagAck)
	h.describe(v4)
	require.Equal(t, vnet(1, 1, 52, 1448, 20, 16), h)
	v6 := superSegment(netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), make([]byte, 5000), 1428, header.TCPFlagAck|header.TCPFlagCwr)
	h.describe(v6)
	require.Equal(t, vnet(1, 0x84, 72, 1428, 40, 16), h)
	v4.GSOOptions = stack.GSO{}
	h.describe(v4)
	require.Equal(t, vnetHeader{}, h)
}

func viewOf(b []byte) *buffer.View { return buffer.NewViewWithData(b) }

func TestVnetHeaderOfWhatTheSystemSends(t *testing.T) {
	raw := content(superSegment(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), make([]byte, 5000), 1448, header.TCPFlagAck))
	for _, c := range []struct {
		name string
		h    vnetHeader
		want stack.GSO
	}{
		{"plain", vnet(0, 0), stack.GSO{}},
		{"verified", vnet(2, 0), stack.GSO{NeedsCsum: true}},
		{"partial", vnet(1, 0, 52, 0, 20, 16), stack.GSO{NeedsCsum: true}},
		{"super-segment", vnet(1, 1, 52, 1448, 20, 16), stack.GSO{Type: stack.GSOTCPv4, MSS: 1448, NeedsCsum: true}},
		{"with CWR", vnet(1, 0x81, 52, 1448, 20, 16), stack.GSO{Type: stack.GSOTCPv4, MSS: 1448, NeedsCsum: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pkt := c.h.packet(viewOf(raw))
			require.NotNil(t, pkt)
			require.Equal(t, c.want, pkt.GSOOptions)
			require.Equal(t, raw, content(pkt))
		})
	}
	for name, h := range map[string]vnetHeader{
		"UFO":             vnet(1, 3, 28, 1448, 20, 6),
		"no size":         vnet(1, 1, 52, 0, 20, 16),
		"start behind":    vnet(1, 0, 52, 0, 6000, 16),
		"offset behind":   vnet(1, 0, 52, 0, 5051, 16),
		"start and zeros": vnet(1, 0, 52, 0, 65535, 65535),
	} {
		require.Nil(t, h.packet(viewOf(raw)), name)
	}
}

// gVisor looks at the headers of a packet whose memory is shared without
// copying the payload.
func TestHeadersOfLargePacketsArePartedFromThePayload(t *testing.T) {
	for _, src := range []string{"10.0.0.1", "2001:db8::1"} {
		addr := netip.MustParseAddr(src)
		raw := content(superSegment(addr, addr.Next(), pattern(50_000), 1448, header.TCPFlagAck))
		v := viewOf(raw)
		h := vnetHeader{}
		pkt := h.packet(v.Clone())
		require.True(t, bytes.Equal(raw, content(pkt)))
		views, _ := dataOf(pkt, nil, nil)
		require.Len(t, views, 2)
		require.Equal(t, 50_000, len(views[1]))
		require.Same(t, &v.AsSlice()[len(raw)-50_000], &views[1][0], "not copied")
		_, ok := pkt.Data().PullUp(len(views[0]))
		require.True(t, ok)
		after, _ := dataOf(pkt, nil, nil)
		require.Same(t, &views[1][0], &after[1][0], "not copied by looking")
		pkt.DecRef()
		v.Release()
	}
}

// A UDP packet whose checksum the system left to the device has it completed,
// since gVisor verifies it.
func TestVnetHeaderCompletesUDP(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	b := datagram(128, 1)
	udp := header.UDP(b[20:])
	udp.Encode(&header.UDPFields{SrcPort: 5, DstPort: 6, Length: 108})
	pseudo := header.PseudoHeaderChecksum(header.UDPProtocolNumber, toAddress(src), toAddress(dst), 108)
	udp.SetChecksum(pseudo)
	h := vnet(1, 0, 28, 0, 20, 6)
	pkt := h.packet(viewOf(b))
	require.NotNil(t, pkt)
	require.False(t, pkt.GSOOptions.NeedsCsum)
	require.Equal(t, uint16(0xffff), checksum.Checksum(content(pkt)[20:], pseudo), "RFC 1071: the sum over all is all ones")
}

// Before a packet is shaped it becomes what a wire carries.
func TestToWireCutsAndSums(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	super := superSegment(src, dst, pattern(3000), 1448, header.TCPFlagAck)
	gso := super.GSOOptions
	whole := rawPacket(t, super)
	whole.GSOOptions = gso
	single := rawPacket(t, superSegment(src, dst, pattern(1000), 1448, header.TCPFlagAck))
	single.GSOOptions.NeedsCsum = true
	got := toWire([]*stack.PacketBuffer{whole, single}, nil)
	require.Len(t, got, 4)
	for i, size := range []int{1500, 1500, 52 + 104, 1052} {
		b := content(got[i])
		require.Len(t, b, size)
		require.Zero(t, wire.TCPChecksum(src, dst, b[20:], nil))
		require.Zero(t, got[i].GSOOptions)
	}
}
