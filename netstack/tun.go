package netstack

import (
	"fmt"
	"sync"

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

	// NoOffload has every packet cross the device as it would a wire: of at
	// most MTU bytes and with its checksum. Otherwise, on Linux, super-segments
	// of up to 64 KiB cross it both ways, and TCP checksums are left out,
	// unless the link is shaped.
	NoOffload bool
}

// TUN is a link to the operating system's network stack through a TUN device;
// it implements stack.LinkEndpoint. Addresses, routes and state of the device
// on the system's side are the caller's business, as is the network namespace
// that OpenTUN is called in.
type TUN struct {
	rawLink
	name    string
	dev     device
	offload bool
	in, out *shaper
	readers sync.WaitGroup // the goroutine that reads, while attached
}

var (
	_ stack.LinkEndpoint = (*TUN)(nil)
	_ stack.GSOEndpoint  = (*TUN)(nil)
	_ ownLink            = (*TUN)(nil)
)

// device is an open TUN device.
type device interface {
	// receive waits for packets and appends those that are there, up to about
	// burstMost, to dst. It fails after interrupt and after Close.
	receive(dst []*stack.PacketBuffer) ([]*stack.PacketBuffer, error)
	interrupt()
	// send writes packets: without offload, each is of at most the MTU and has
	// its checksum.
	send(pkts []*stack.PacketBuffer) error
	Close() error
}

// OpenTUN opens or creates a TUN device; on systems other than Linux through
// golang.zx2c4.com/wireguard/tun, where there is one. It needs the right to do
// so (CAP_NET_ADMIN). Close, or the removal of the link from its host, gives
// the device up; unless it was made persistent it is gone then.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	for _, s := range []*Shape{&cfg.In, &cfg.Out} {
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("tun %s: %w", cfg.Name, err)
		}
	}
	dev, opened, err := openDevice(&cfg)
	if err != nil {
		return nil, fmt.Errorf("tun %s: %w", cfg.Name, err)
	}
	t := &TUN{name: opened.name, dev: dev, offload: opened.offload}
	t.mtu.Store(uint32(opened.mtu))
	t.in = newShaper(cfg.In, cfg.Seed, 0, t.receive)
	t.out = newShaper(cfg.Out, cfg.Seed, 1, t.transmit)
	return t, nil
}

// opened is what became of a TUNConfig.
type opened struct {
	name    string
	mtu     int
	offload bool // the device passes super-segments
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

// Capabilities returns none: packets other than super-segments leave with
// their checksums, and gVisor verifies those of protocols other than TCP.
func (t *TUN) Capabilities() stack.LinkEndpointCapabilities { return stack.CapabilityNone }

// SupportedGSO offers super-segments if the device passes them.
func (t *TUN) SupportedGSO() stack.SupportedGSO {
	if t.offload {
		return stack.HostGSOSupported
	}
	return stack.GSONotSupported
}

// GSOMaxSize returns the largest super-segment in bytes, IP header included.
func (t *TUN) GSOMaxSize() uint32 { return maxWhole }

func (t *TUN) takesWhole() bool { return t.offload || t.out.perfect.Load() }

func (t *TUN) far() *gatherer { return nil }

// Attach connects the link to a stack and begins to read, or with nil
// disconnects it and ends that.
func (t *TUN) Attach(d stack.NetworkDispatcher) {
	t.rawLink.Attach(d)
	if d == nil {
		t.dev.interrupt()
		return
	}
	t.readers.Go(t.read)
}

// read brings packets from the device into the stack until the device is gone
// or the link is detached.
func (t *TUN) read() {
	var whole, cuts burst
	for {
		var err error
		whole.pkts, err = t.dev.receive(whole.pkts[:0])
		pkts := whole.pkts
		if !t.in.perfect.Load() {
			cuts.pkts = toWire(pkts, cuts.pkts[:0])
			pkts = cuts.pkts
		}
		t.in.send(pkts)
		clear(whole.pkts)
		clear(cuts.pkts)
		if err != nil {
			return
		}
	}
}

// receive takes packets that have passed the shape.
func (t *TUN) receive(pkts []*stack.PacketBuffer) { t.arriveTogether(pkts, false) }

// toWire appends to dst what packets of the device look like on a wire: cut,
// and with their checksums. It takes the packets over.
func toWire(pkts, dst []*stack.PacketBuffer) []*stack.PacketBuffer {
	for _, pkt := range pkts {
		switch {
		case pkt.GSOOptions.Type != stack.GSONone:
			dst = cut(pkt, true, dst)
			pkt.DecRef()
			continue
		case pkt.GSOOptions.NeedsCsum:
			if ip, tcp := headersOf(pkt); tcp != nil && plain(ip, pkt.Size()) {
				payload, _ := bytesFrom(pkt, len(ip)+len(tcp), nil, nil)
				setChecksum(ip, tcp, payload)
			}
			pkt.GSOOptions.NeedsCsum = false
		}
		dst = append(dst, pkt)
	}
	return dst
}

// WritePackets sends packets to the operating system.
func (t *TUN) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	whole := t.offload && t.out.perfect.Load()
	b := burstPool.Get().(*burst)
	defer b.free()
	for _, pkt := range pkts.AsSlice() {
		if pkt.GSOOptions.Type != stack.GSONone && !whole {
			b.pkts = cut(pkt, true, b.pkts)
			continue
		}
		in := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: pkt.ToBuffer()})
		in.GSOOptions = pkt.GSOOptions
		b.pkts = append(b.pkts, in)
	}
	t.out.send(b.pkts)
	return pkts.Len(), nil
}

// transmit writes packets to the device. A packet that the device refuses,
// because it is down or gone, is lost like one on a cable.
func (t *TUN) transmit(pkts []*stack.PacketBuffer) {
	_ = t.dev.send(pkts)
	for _, pkt := range pkts {
		pkt.DecRef()
	}
}

// Close gives the device up.
func (t *TUN) Close() {
	t.in.close()
	t.out.close()
	_ = t.dev.Close()
}

// Wait waits for the reader to end, after Close or detachment.
func (t *TUN) Wait() { t.readers.Wait() }
