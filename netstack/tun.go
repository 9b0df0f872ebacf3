package netstack

import (
	"fmt"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// TUNConfig describes a TUN device.
type TUNConfig struct {
	// Name is the device's name; empty or with a %d in it, the system chooses
	// (see TUN.Name). A device that exists is taken over.
	Name string

	// MTU is the largest IP packet in bytes, set on the device; 0 = as the
	// device has it, which is 1500 if it is new.
	MTU int

	// In shapes packets from the operating system to the host, Out the other
	// direction. The zero Shape is a perfect link.
	In, Out Shape

	// Seed decides the chances of loss, jitter, reordering and the like.
	Seed uint64
}

// TUN is a link to the operating system's network stack through a TUN device;
// it implements stack.LinkEndpoint. Addresses, routes and state of the device
// on the system's side are the caller's business, as is the network namespace
// that OpenTUN is called in.
type TUN struct {
	rawLink
	name    string
	dev     device
	in, out *shaper
	readers sync.WaitGroup // the goroutine that reads, while attached
}

var _ stack.LinkEndpoint = (*TUN)(nil)

// device is an open TUN device.
type device interface {
	// Read reads one packet. It is interrupted by a deadline and by Close.
	Read(p []byte) (int, error)
	SetReadDeadline(t time.Time) error
	// send writes one packet.
	send(pkt *stack.PacketBuffer) error
	Close() error
}

// OpenTUN opens or creates a TUN device; Linux only. It needs the right to do
// so (CAP_NET_ADMIN). Close, or the removal of the link from its host, gives
// the device up; unless it was made persistent it is gone then.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	for _, s := range []*Shape{&cfg.In, &cfg.Out} {
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("tun %s: %w", cfg.Name, err)
		}
	}
	dev, name, mtu, err := openDevice(cfg.Name, cfg.MTU)
	if err != nil {
		return nil, fmt.Errorf("tun %s: %w", cfg.Name, err)
	}
	t := &TUN{name: name, dev: dev}
	t.mtu.Store(uint32(mtu))
	t.in = newShaper(cfg.In, cfg.Seed, 0, t.inject)
	t.out = newShaper(cfg.Out, cfg.Seed, 1, t.transmit)
	return t, nil
}

// Name returns the device's name.
func (t *TUN) Name() string { return t.name }

// SetShape changes the shapes for packets sent from now on.
func (t *TUN) SetShape(in, out Shape) error {
	if err := in.Validate(); err != nil {
		return err
	}
	if err := out.Validate(); err != nil {
		return err
	}
	t.in.setShape(in)
	t.out.setShape(out)
	return nil
}

// SetUp cuts the link in both directions, with all packets on it, or mends it.
// Neither side is told.
func (t *TUN) SetUp(up bool) {
	t.in.setUp(up)
	t.out.setUp(up)
}

// Stats returns the counters of both directions.
func (t *TUN) Stats() (in, out LinkStats) { return t.in.snapshot(), t.out.snapshot() }

// Capabilities returns none: what crosses the device has its checksums.
func (t *TUN) Capabilities() stack.LinkEndpointCapabilities { return stack.CapabilityNone }

// Attach connects the link to a stack and begins to read, or with nil
// disconnects it and ends that.
func (t *TUN) Attach(d stack.NetworkDispatcher) {
	t.rawLink.Attach(d)
	if d == nil {
		_ = t.dev.SetReadDeadline(time.Unix(1, 0)) // ends read
		return
	}
	t.readers.Go(t.read)
}

// read brings packets from the device into the stack until the device is gone
// or the link is detached.
func (t *TUN) read() {
	for {
		v := buffer.NewViewSize(int(t.MTU()))
		n, err := t.dev.Read(v.AsSlice())
		if err != nil {
			v.Release()
			return
		}
		v.CapLength(n)
		t.in.send(stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)}))
	}
}

// WritePackets sends packets to the operating system.
func (t *TUN) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		t.out.send(stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: pkt.ToBuffer()}))
	}
	return pkts.Len(), nil
}

// transmit writes one packet to the device. A packet that the device refuses,
// because it is down or gone, is lost like one on a cable.
func (t *TUN) transmit(pkt *stack.PacketBuffer) {
	_ = t.dev.send(pkt)
	pkt.DecRef()
}

// Close gives the device up.
func (t *TUN) Close() {
	t.in.close()
	t.out.close()
	_ = t.dev.Close()
}

// Wait waits for the reader to end, after Close or detachment.
func (t *TUN) Wait() { t.readers.Wait() }
