package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/netstack"
)

// queueLen is how many packets wait for WireGuard at most, as many as a TUN
// device of Linux with wg-quick holds. More are dropped, which TCP understands.
const queueLen = 1000

// memoryTUN is a TUN device without an operating system: WireGuard has the
// device, and a netstack.Host has the other end of the pipe as its link.
type memoryTUN struct {
	name    string
	end     *netstack.PipeEnd // this side's
	queue   chan *stack.PacketBuffer
	events  chan tun.Event
	dropped atomic.Uint64 // packets that found the queue full

	closing sync.Once
	closed  chan struct{}
}

var (
	_ tun.Device              = (*memoryTUN)(nil)
	_ stack.NetworkDispatcher = (*memoryTUN)(nil)
)

// newTUN returns the two sides of a TUN device: dev for device.NewDevice and
// link for the AddLink of a host. Each side closes its own. In shape, AB is the
// direction from the host to WireGuard.
func newTUN(name string, shape netstack.PipeConfig) (dev *memoryTUN, link *netstack.PipeEnd) {
	shape.Checksum = true // packets leave this process
	link, end := netstack.NewPipe(shape)
	dev = &memoryTUN{
		name: name, end: end,
		queue:  make(chan *stack.PacketBuffer, queueLen),
		events: make(chan tun.Event),
		closed: make(chan struct{}),
	}
	end.Attach(dev)
	return dev, link
}

// DeliverNetworkPacket takes a packet that the host sends.
func (d *memoryTUN) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	select {
	case d.queue <- pkt.IncRef():
	default:
		pkt.DecRef()
		d.dropped.Add(1)
	}
}

// DeliverLinkPacket has nothing to do: there is no link layer.
func (d *memoryTUN) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// Read waits for a packet of the host and takes along what else is there.
func (d *memoryTUN) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	select {
	case pkt := <-d.queue:
		sizes[0] = d.fill(bufs[0][offset:], pkt)
	case <-d.closed:
		return 0, os.ErrClosed
	}
	for n = 1; n < len(bufs); n++ {
		select {
		case pkt := <-d.queue:
			sizes[n] = d.fill(bufs[n][offset:], pkt)
		default:
			return n, nil
		}
	}
	return n, nil
}

// fill copies a packet to b, gives it up, and returns its length; 0, which
// WireGuard passes over, if it does not fit.
func (d *memoryTUN) fill(b []byte, pkt *stack.PacketBuffer) (n int) {
	defer pkt.DecRef()
	if pkt.Size() > len(b) {
		d.dropped.Add(1)
		return 0
	}
	for _, piece := range pkt.AsSlices() {
		n += copy(b[n:], piece)
	}
	return n
}

// Write brings packets that WireGuard has decrypted to the host.
func (d *memoryTUN) Write(bufs [][]byte, offset int) (int, error) {
	select {
	case <-d.closed:
		return 0, os.ErrClosed
	default:
	}
	var pkts stack.PacketBufferList
	defer pkts.Reset()
	for _, b := range bufs {
		pkts.PushBack(stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b[offset:])}))
	}
	if _, err := d.end.WritePackets(pkts); err != nil {
		return 0, fmt.Errorf("%s: %v", d.name, err)
	}
	return len(bufs), nil
}

// BatchSize is how many packets a Read or Write moves at most.
func (d *memoryTUN) BatchSize() int { return conn.IdealBatchSize }

// MTU returns the MTU of the host's link.
func (d *memoryTUN) MTU() (int, error) { return int(d.end.MTU()), nil }

// Name returns the name given to newTUN.
func (d *memoryTUN) Name() (string, error) { return d.name, nil }

// File returns nil: there is no file.
func (d *memoryTUN) File() *os.File { return nil }

// Events says nothing before Close: Device.Up is for when the keys are set.
func (d *memoryTUN) Events() <-chan tun.Event { return d.events }

// Close ends a waiting Read and stops what the host sends.
func (d *memoryTUN) Close() error {
	d.closing.Do(func() {
		d.end.Attach(nil)
		d.end.Close()
		close(d.closed)
		close(d.events)
	})
	return nil
}
