package main

import (
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/netstack"
)

// offset is the room that WireGuard asks for before each packet.
const offset = 16

// packet is an IPv4 packet in the eyes of a link.
func packet(size int, label byte) []byte {
	b := make([]byte, size)
	b[0], b[size-1] = 0x45, label
	return b
}

// send has the host send packets.
func send(t *testing.T, link *netstack.PipeEnd, packets ...[]byte) {
	t.Helper()
	var list stack.PacketBufferList
	defer list.Reset()
	for _, b := range packets {
		list.PushBack(stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)}))
	}
	_, err := link.WritePackets(list)
	require.Nil(t, err)
}

// read reads up to n packets.
func read(t *testing.T, dev tun.Device, n int) [][]byte {
	t.Helper()
	bufs, sizes := make([][]byte, n), make([]int, n)
	for i := range bufs {
		bufs[i] = make([]byte, offset+mtu)
	}
	n, err := dev.Read(bufs, sizes, offset)
	require.NoError(t, err)
	var got [][]byte
	for i := range n {
		got = append(got, bufs[i][offset:offset+sizes[i]])
	}
	return got
}

func TestReadTakesWhatIsThere(t *testing.T) {
	dev, link := newTUN("wg0", netstack.PipeConfig{MTU: mtu})
	defer dev.Close()
	send(t, link, packet(100, 1), packet(mtu, 2), packet(40, 3))
	require.Equal(t, [][]byte{packet(100, 1), packet(mtu, 2)}, read(t, dev, 2))
	require.Equal(t, [][]byte{packet(40, 3)}, read(t, dev, 2))
}

func TestReadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, link := newTUN("wg0", netstack.PipeConfig{MTU: mtu})
		defer dev.Close()
		got := make(chan [][]byte, 1)
		go func() { got <- read(t, dev, 1) }()
		synctest.Wait()
		require.Empty(t, got)
		send(t, link, packet(100, 1))
		require.Equal(t, [][]byte{packet(100, 1)}, <-got)
	})
}

// A packet that does not fit is no reason to end a tunnel, which an error of
// Read would be.
func TestReadPassesOverWhatDoesNotFit(t *testing.T) {
	dev, link := newTUN("wg0", netstack.PipeConfig{MTU: 2000})
	defer dev.Close()
	send(t, link, packet(2000, 1), packet(100, 2))
	require.Equal(t, [][]byte{{}, packet(100, 2)}, read(t, dev, 2))
	require.EqualValues(t, 1, dev.dropped.Load())
}

func TestFullQueueDrops(t *testing.T) {
	dev, link := newTUN("wg0", netstack.PipeConfig{MTU: mtu})
	defer dev.Close()
	for range queueLen + 5 {
		send(t, link, packet(40, 1))
	}
	require.Len(t, read(t, dev, 2*queueLen), queueLen)
	require.EqualValues(t, 5, dev.dropped.Load())
}

// sink is the stack behind a link.
type sink struct{ got [][]byte }

func (s *sink) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	s.got = append(s.got, pkt.ToView().AsSlice())
}

func (s *sink) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// WireGuard uses its buffers again once Write has returned.
func TestWriteCopies(t *testing.T) {
	dev, link := newTUN("wg0", netstack.PipeConfig{MTU: mtu})
	defer dev.Close()
	var s sink
	link.Attach(&s)
	bufs := [][]byte{append(make([]byte, offset), packet(100, 1)...), append(make([]byte, offset), packet(200, 2)...)}
	n, err := dev.Write(bufs, offset)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	clear(bufs[0])
	clear(bufs[1])
	require.Equal(t, [][]byte{packet(100, 1), packet(200, 2)}, s.got)
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, link := newTUN("wg0", netstack.PipeConfig{MTU: mtu})
		ended := make(chan error, 1)
		go func() {
			_, err := dev.Read([][]byte{make([]byte, offset+mtu)}, make([]int, 1), offset)
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, dev.Close())
		require.ErrorIs(t, <-ended, os.ErrClosed)
		_, err := dev.Write([][]byte{packet(100, 1)}, 0)
		require.ErrorIs(t, err, os.ErrClosed)
		send(t, link, packet(100, 1)) // the host may live on
		require.NoError(t, dev.Close())
		_, more := <-dev.Events()
		require.False(t, more)
	})
}
