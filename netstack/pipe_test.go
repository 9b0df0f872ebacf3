package netstack

import (
	"bytes"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// sink is the stack behind an end of a link: it notes what arrives when.
type sink struct {
	start time.Time

	mu  sync.Mutex
	got []arrival
}

type arrival struct {
	after  time.Duration
	packet []byte
}

func attachSink(ep stack.LinkEndpoint) *sink {
	s := &sink{start: time.Now()}
	ep.Attach(s)
	return s
}

func (s *sink) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	buf := pkt.ToBuffer()
	defer buf.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, arrival{time.Since(s.start), buf.Flatten()})
}

func (s *sink) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

func (s *sink) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []time.Duration
	for _, a := range s.got {
		all = append(all, a.after)
	}
	return all
}

func (s *sink) arrivals() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// datagram returns an IPv4 packet of size bytes; the last says which it is.
func datagram(size int, label byte) []byte {
	b := make([]byte, size)
	header.IPv4(b).Encode(&header.IPv4Fields{
		TotalLength: uint16(size), TTL: 64, Protocol: 253,
		SrcAddr: tcpip.AddrFrom4([4]byte{10, 0, 0, 1}), DstAddr: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}),
	})
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	b[size-1] = label
	return b
}

// transmit sends packets into an end of a link.
func transmit(t *testing.T, ep stack.LinkEndpoint, packets ...[]byte) {
	t.Helper()
	for _, b := range packets {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
		var list stack.PacketBufferList
		list.PushBack(pkt)
		n, err := ep.WritePackets(list)
		require.Nil(t, err)
		require.Equal(t, 1, n)
		pkt.DecRef()
	}
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func TestPerfectPipeDeliversBeforeItReturns(t *testing.T) {
	a, b := NewPipe(PipeConfig{})
	at, bt := attachSink(a), attachSink(b)
	transmit(t, a, datagram(100, 1), datagram(100, 2))
	transmit(t, b, datagram(200, 3))
	require.Equal(t, datagram(100, 1), bt.arrivals()[0].packet)
	require.Equal(t, datagram(100, 2), bt.arrivals()[1].packet)
	require.Equal(t, datagram(200, 3), at.arrivals()[0].packet)
	require.Equal(t, LinkStats{Packets: 2, Bytes: 200}, a.Stats())
	require.Equal(t, LinkStats{Packets: 1, Bytes: 200}, b.Stats())
}

// 1500 bytes at 12 Mb/s take 1 ms.
func TestPipeKeepsRateAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe(PipeConfig{AB: Shape{Rate: 12e6, Delay: ms(10)}})
		bt := attachSink(b)
		transmit(t, a, datagram(1500, 1), datagram(1500, 2), datagram(750, 3))
		time.Sleep(ms(5))
		transmit(t, a, datagram(1500, 4))
		time.Sleep(ms(50))
		require.Equal(t, []time.Duration{ms(11), ms(12), ms(12.5), ms(16)}, bt.times())
	})
}

// Each direction has its own shape; the other one here has none.
func TestPipeDirectionsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe(PipeConfig{AB: Shape{Delay: ms(30)}})
		at, bt := attachSink(a), attachSink(b)
		transmit(t, b, datagram(100, 1))
		transmit(t, a, datagram(100, 2))
		time.Sleep(ms(31))
		require.Equal(t, []time.Duration{0}, at.times())
		require.Equal(t, []time.Duration{ms(30)}, bt.times())
	})
}

// A queue of 3000 bytes holds two packets of 1500, the one being sent among
// them.
func TestPipeDropsWhatTheQueueDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe(PipeConfig{AB: Shape{Rate: 12e6, QueueBytes: 3000}})
		bt := attachSink(b)
		transmit(t, a, datagram(1500, 1), datagram(1500, 2), datagram(1500, 3))
		time.Sleep(ms(10))
		require.Equal(t, []time.Duration{ms(1), ms(2)}, bt.times())
		require.Equal(t, LinkStats{Packets: 2, Bytes: 3000, DroppedQueue: 1}, a.Stats())
	})
}

func TestPipeHoldsBackPacketsToReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe(PipeConfig{AB: Shape{Delay: ms(10), Reorder: 1, ReorderBy: ms(5)}})
		bt := attachSink(b)
		transmit(t, a, datagram(100, 1))
		require.NoError(t, a.SetShape(Shape{Delay: ms(10)}))
		transmit(t, a, datagram(100, 2))
		time.Sleep(ms(20))
		require.Equal(t, []time.Duration{ms(10), ms(15)}, bt.times())
		require.Equal(t, datagram(100, 2), bt.arrivals()[0].packet)
	})
}

func TestPipeDuplicates(t *testing.T) {
	a, b := NewPipe(PipeConfig{AB: Shape{Duplicate: 1}})
	bt := attachSink(b)
	transmit(t, a, datagram(100, 1))
	require.Eventually(t, func() bool { return len(bt.times()) == 2 }, time.Second, time.Millisecond)
	require.Equal(t, datagram(100, 1), bt.arrivals()[1].packet)
	require.Equal(t, uint64(1), a.Stats().Duplicated)
}

// One bit differs, and not in the sender's memory.
func TestPipeCorruptsACopy(t *testing.T) {
	a, b := NewPipe(PipeConfig{AB: Shape{Corrupt: 1}})
	bt := attachSink(b)
	sent := datagram(1000, 1)
	for range 20 {
		transmit(t, a, sent)
	}
	require.Equal(t, datagram(1000, 1), sent)
	require.Equal(t, uint64(20), a.Stats().Corrupted)
	for _, got := range bt.arrivals() {
		bits := 0
		for i := range got.packet {
			for x := got.packet[i] ^ sent[i]; x != 0; x &= x - 1 {
				bits++
			}
		}
		require.Equal(t, 1, bits)
	}
}

// Where packets may be corrupted checksums are needed, otherwise not.
func TestPipeOffersChecksumOffloadWhereItMay(t *testing.T) {
	offload := stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
	a, b := NewPipe(PipeConfig{})
	require.Equal(t, offload, a.Capabilities())
	require.NoError(t, a.SetShape(Shape{Corrupt: 0.1}))
	require.Zero(t, a.Capabilities())
	require.Zero(t, b.Capabilities())
	require.NoError(t, a.SetShape(Shape{Loss: 0.1}))
	require.Equal(t, offload, b.Capabilities())
	c, _ := NewPipe(PipeConfig{Checksum: true})
	require.Zero(t, c.Capabilities())
}

func TestPipeLosesPackets(t *testing.T) {
	a, b := NewPipe(PipeConfig{AB: Shape{Loss: 0.25}, Seed: 1})
	bt := attachSink(b)
	for range 4000 {
		transmit(t, a, datagram(100, 1))
	}
	// Four standard deviations of a binomial distribution: 4*sqrt(4000*0.25*0.75) = 110.
	require.InDelta(t, 1000, a.Stats().DroppedLoss, 110)
	require.Equal(t, 4000, len(bt.arrivals())+int(a.Stats().DroppedLoss))
}

func TestPipeDownLosesWhatIsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewPipe(PipeConfig{AB: Shape{Delay: ms(10)}})
		at, bt := attachSink(a), attachSink(b)
		transmit(t, a, datagram(100, 1))
		time.Sleep(ms(5))
		a.SetUp(false)
		transmit(t, a, datagram(100, 2))
		transmit(t, b, datagram(100, 3))
		time.Sleep(ms(15))
		b.SetUp(true)
		transmit(t, a, datagram(100, 4))
		transmit(t, b, datagram(100, 5))
		time.Sleep(ms(15))
		require.Equal(t, []time.Duration{ms(30)}, bt.times())
		require.Equal(t, []time.Duration{ms(20)}, at.times())
		require.Equal(t, uint64(2), a.Stats().DroppedDown)
		require.Equal(t, uint64(1), b.Stats().DroppedDown)
	})
}

// What was sent before a host went away arrives; what comes for it does not.
func TestClosedPipeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := Shape{Delay: ms(10)}
		a, b := NewPipe(PipeConfig{AB: shape, BA: shape})
		at, bt := attachSink(a), attachSink(b)
		transmit(t, a, datagram(100, 1))
		transmit(t, b, datagram(100, 2))
		a.Attach(nil)
		a.Close()
		a.Wait()
		transmit(t, b, datagram(100, 3))
		time.Sleep(ms(20))
		require.Equal(t, []time.Duration{ms(10)}, bt.times())
		require.Empty(t, at.times())
	})
}

func TestInvalidShapesAreRefused(t *testing.T) {
	require.PanicsWithValue(t, "netstack: link: Loss 2 is not a probability", func() { NewPipe(PipeConfig{BA: Shape{Loss: 2}}) })
	a, _ := NewPipe(PipeConfig{})
	require.ErrorContains(t, a.SetShape(Shape{Rate: -1}), "Rate")
}

// Many senders on a link with a rate: everything arrives, in the order of each
// sender.
func TestPipeWithManySenders(t *testing.T) {
	a, b := NewPipe(PipeConfig{AB: Shape{Rate: 1e9, Delay: ms(1), QueueBytes: 1 << 20}})
	bt := attachSink(b)
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for i := range 100 {
				p := datagram(200, byte(i))
				p[150] = byte(s)
				transmit(t, a, p)
			}
		})
	}
	senders.Wait()
	require.Eventually(t, func() bool { return len(bt.times()) == 400 }, 5*time.Second, time.Millisecond)
	var next [4]byte
	for _, got := range bt.arrivals() {
		s := got.packet[150]
		require.Equal(t, next[s], got.packet[199])
		next[s]++
	}
}

// superSegment makes an outbound packet as a host does.
func superSegment(src, dst netip.Addr, payload []byte, mss int, flags header.TCPFlags) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: 100, Payload: buffer.MakeWithData(payload)})
	header.TCP(pkt.TransportHeader().Push(32)).Encode(&header.TCPFields{
		SrcPort: 1000, DstPort: 2000, SeqNum: 1<<32 - 1000, AckNum: 7, DataOffset: 32, Flags: flags, WindowSize: 99,
	})
	copy(pkt.TransportHeader().Slice()[20:], "\x01\x01\x08\x0a\x00\x00\x00\x01\x00\x00\x00\x02")
	pkt.GSOOptions = stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: uint16(mss)}
	if src.Is6() {
		pkt.GSOOptions.Type = stack.GSOTCPv6
		header.IPv6(pkt.NetworkHeader().Push(40)).Encode(&header.IPv6Fields{
			PayloadLength: uint16(32 + len(payload)), TransportProtocol: 6, HopLimit: 64,
			SrcAddr: toAddress(src), DstAddr: toAddress(dst),
		})
		return pkt
	}
	ip := header.IPv4(pkt.NetworkHeader().Push(20))
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(52 + len(payload)), TTL: 64, Protocol: 6, SrcAddr: toAddress(src), DstAddr: toAddress(dst),
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	return pkt
}

func TestShapedPipeCutsSuperSegments(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 350)
	for _, net := range []struct{ src, dst string }{{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}} {
		t.Run(net.src, func(t *testing.T) {
			src, dst := netip.MustParseAddr(net.src), netip.MustParseAddr(net.dst)
			// The least loss there is makes the link no longer perfect.
			a, b := NewPipe(PipeConfig{AB: Shape{Loss: 1e-300}, Offload: true, Checksum: true})
			bt := attachSink(b)
			pkt := superSegment(src, dst, payload, 1448, header.TCPFlagAck|header.TCPFlagPsh|header.TCPFlagFin|header.TCPFlagCwr)
			var list stack.PacketBufferList
			list.PushBack(pkt)
			_, err := a.WritePackets(list)
			require.Nil(t, err)
			pkt.DecRef()

			require.Len(t, bt.arrivals(), 3)
			var whole []byte
			for i, want := range []struct {
				seq   uint32
				size  int
				flags header.TCPFlags
			}{
				{1<<32 - 1000, 1448, header.TCPFlagAck | header.TCPFlagCwr},
				{448, 1448, header.TCPFlagAck},
				{1896, 604, header.TCPFlagAck | header.TCPFlagPsh | header.TCPFlagFin},
			} {
				b := bt.arrivals()[i].packet
				size := 40
				if src.Is4() {
					size = 20
					require.True(t, header.IPv4(b).IsValid(len(b)))
					require.True(t, header.IPv4(b).IsChecksumValid())
				} else {
					require.True(t, header.IPv6(b).IsValid(len(b)))
				}
				tcp := header.TCP(b[size:])
				require.Equal(t, want.seq, tcp.SequenceNumber())
				require.Equal(t, want.flags, tcp.Flags())
				require.Equal(t, uint16(99), tcp.WindowSize())
				require.Equal(t, "\x01\x01\x08\x0a\x00\x00\x00\x01\x00\x00\x00\x02", string(tcp.Options()))
				require.Len(t, tcp.Payload(), want.size)
				require.Zero(t, wire.TCPChecksum(src, dst, tcp, nil))
				whole = append(whole, tcp.Payload()...)
			}
			require.Equal(t, payload, whole)
		})
	}
}

// A perfect pipe passes a super-segment whole; with checksums wanted it
// completes the one that the stack left to the link.
func TestPerfectPipePassesSuperSegments(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	a, b := NewPipe(PipeConfig{Offload: true, Checksum: true})
	bt := attachSink(b)
	pkt := superSegment(src, dst, make([]byte, 60000), 1448, header.TCPFlagAck)
	var list stack.PacketBufferList
	list.PushBack(pkt)
	_, err := a.WritePackets(list)
	require.Nil(t, err)
	pkt.DecRef()
	require.Len(t, bt.arrivals(), 1)
	require.Len(t, bt.arrivals()[0].packet, 60052)
	require.Zero(t, wire.TCPChecksum(src, dst, bt.arrivals()[0].packet[20:], nil))
}

func TestMarkSetsCE(t *testing.T) {
	v4 := datagram(100, 1)
	header.IPv4(v4).SetTOS(0xb8|uint8(wire.ECT0), 0)
	header.IPv4(v4).SetChecksum(0)
	header.IPv4(v4).SetChecksum(^header.IPv4(v4).CalculateChecksum())
	v6 := make([]byte, 60)
	header.IPv6(v6).Encode(&header.IPv6Fields{TrafficClass: 0xb8 | uint8(wire.ECT0), FlowLabel: 0xabcde, PayloadLength: 20, HopLimit: 9})
	for _, b := range [][]byte{v4, v6} {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
		require.True(t, capable(pkt))
		require.Equal(t, wire.ECT0, ecnOf(b))
		pkt = marked(pkt)
		got := pkt.Data().AsRange().ToSlice()
		require.Equal(t, wire.CE, ecnOf(got))
		if b[0]>>4 == 4 {
			require.True(t, header.IPv4(got).IsChecksumValid())
			tos, _ := header.IPv4(got).TOS()
			require.Equal(t, uint8(0xbb), tos)
		} else {
			tos, label := header.IPv6(got).TOS()
			require.Equal(t, uint8(0xbb), tos)
			require.Equal(t, uint32(0xabcde), label)
		}
		pkt.DecRef()
	}
}

// capableDatagram is a datagram that can be marked.
func capableDatagram(label byte) []byte {
	b := datagram(1500, label)
	header.IPv4(b).SetTOS(uint8(wire.ECT0), 0)
	header.IPv4(b).SetChecksum(0)
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	return b
}

// Queues that mark by a Shape: of packets of 1500 bytes that come at once those
// that find more than MarkBytes waiting, 3000; by RED, whose average follows at
// once here, those that find Max or more, and there one that can't be marked is
// dropped.
func TestShapeMarks(t *testing.T) {
	for name, tt := range map[string]struct {
		shape Shape
		marks []bool
		plain uint64 // packets that can't be marked and are dropped
	}{
		"step": {Shape{Rate: 12e6, MarkBytes: 3000}, []bool{false, false, false, true, true}, 0},
		"RED":  {Shape{Rate: 12e6, RED: RED{Min: 1000, Max: 1500, Weight: 1}}, []bool{false, true, true, true, true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := NewPipe(PipeConfig{AB: tt.shape})
				bt := attachSink(b)
				marks := uint64(0)
				for i, want := range tt.marks {
					transmit(t, a, capableDatagram(byte(i)))
					if want {
						marks++
					}
				}
				transmit(t, a, datagram(1500, 9))
				time.Sleep(ms(50))
				synctest.Wait()
				for i, want := range tt.marks {
					require.Equal(t, want, ecnOf(bt.arrivals()[i].packet) == wire.CE, "packet %d", i)
				}
				st := a.Stats()
				require.Equal(t, marks, st.Marked)
				require.Equal(t, tt.plain, st.DroppedQueue)
			})
		})
	}
}
