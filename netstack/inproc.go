package netstack

import (
	"math"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// PipeConfig describes a link between two hosts of one process.
type PipeConfig struct {
	// MTU is the largest IP packet in bytes; 0 = 1500. IPv6 needs 1280.
	MTU int

	// AB shapes the direction from the first end to the second, BA the other.
	// The zero Shape is a perfect link: packets arrive before the sender's
	// call returns.
	AB, BA Shape

	// Offload lets the ends send super-segments of up to 64 KiB, as network
	// cards do. A perfect link carries them whole, a shaped one in packets of
	// the MTU.
	Offload bool

	// Checksum makes the hosts compute and verify TCP and UDP checksums, which
	// memory does not need. Where a Shape corrupts packets they are computed
	// in any case.
	Checksum bool

	// Seed decides the chances of loss, jitter, reordering and the like: the
	// same seed and the same packets give the same chances.
	Seed uint64
}

// PipeEnd is one end of an in-process link; it implements stack.LinkEndpoint.
type PipeEnd struct {
	rawLink
	peer        *PipeEnd
	out         *shaper // towards peer
	offload     bool
	checksum    bool
	corruptible atomic.Bool // out corrupts packets
}

var (
	_ stack.LinkEndpoint = (*PipeEnd)(nil)
	_ stack.GSOEndpoint  = (*PipeEnd)(nil)
	_ ownLink            = (*PipeEnd)(nil)
)

// NewPipe returns the two ends of an in-process link. Give each to the AddLink
// of a host. It panics if a Shape is not valid (see Shape.Validate).
func NewPipe(cfg PipeConfig) (a, b *PipeEnd) {
	for _, s := range []*Shape{&cfg.AB, &cfg.BA} {
		if err := s.Validate(); err != nil {
			panic("netstack: " + err.Error())
		}
	}
	a, b = newPipeEnd(cfg), newPipeEnd(cfg)
	a.peer, b.peer = b, a
	a.out = newShaper(cfg.AB, cfg.Seed, 0, b.receive)
	b.out = newShaper(cfg.BA, cfg.Seed, 1, a.receive)
	a.corruptible.Store(cfg.AB.Corrupt > 0)
	b.corruptible.Store(cfg.BA.Corrupt > 0)
	return a, b
}

func newPipeEnd(cfg PipeConfig) *PipeEnd {
	e := &PipeEnd{offload: cfg.Offload, checksum: cfg.Checksum}
	e.mtu.Store(defaultMTU)
	if cfg.MTU > 0 {
		e.mtu.Store(uint32(cfg.MTU))
	}
	return e
}

// SetShape changes the shape of the direction that leaves this end, for
// packets sent from now on.
func (e *PipeEnd) SetShape(s Shape) error {
	if err := s.Validate(); err != nil {
		return err
	}
	e.corruptible.Store(s.Corrupt > 0)
	e.out.setShape(s)
	return nil
}

// SetUp cuts the link in both directions, with all packets on it, or mends it.
// The hosts are not told: to them it looks like a failure somewhere on the
// path. (Host.SetLinkUp is for a failure that the host notices.)
func (e *PipeEnd) SetUp(up bool) {
	e.out.setUp(up)
	e.peer.out.setUp(up)
}

// Stats returns the counters of the direction that leaves this end.
func (e *PipeEnd) Stats() LinkStats { return e.out.snapshot() }

// Capabilities offers checksum offload, which means here that packets travel
// without checksums, unless something may corrupt them.
func (e *PipeEnd) Capabilities() stack.LinkEndpointCapabilities {
	if e.checksum || e.corruptible.Load() || e.peer.corruptible.Load() {
		return stack.CapabilityNone
	}
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// SupportedGSO offers super-segments with PipeConfig.Offload.
func (e *PipeEnd) SupportedGSO() stack.SupportedGSO {
	if e.offload {
		return stack.HostGSOSupported
	}
	return stack.GSONotSupported
}

// GSOMaxSize returns the largest super-segment in bytes, IP header included.
func (e *PipeEnd) GSOMaxSize() uint32 { return math.MaxUint16 }

// sums reports whether packets have checksums.
func (e *PipeEnd) sums() bool { return e.Capabilities()&stack.CapabilityTXChecksumOffload == 0 }

func (e *PipeEnd) takesWhole() bool { return e.offload || e.out.perfect.Load() }

func (e *PipeEnd) far() *gatherer {
	if !e.out.perfect.Load() {
		return nil
	}
	if h := e.peer.host.Load(); h != nil {
		return &h.to.gatherer
	}
	return nil
}

// receive takes packets from the other end. A Host there has this end's wait until
// all of its batch has arrived, of which these may be a part only: one of several
// super-segments.
func (e *PipeEnd) receive(pkts []*stack.PacketBuffer) {
	if e.peer.host.Load() != nil && e.peer.far() != nil {
		e.arrive(pkts, !e.sums())
		return
	}
	e.arriveTogether(pkts, !e.sums())
}

// WritePackets sends packets to the other end.
func (e *PipeEnd) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	sums := e.sums()
	whole := e.offload && e.out.perfect.Load()
	b := burstPool.Get().(*burst)
	defer b.free()
	for _, pkt := range pkts.AsSlice() {
		super := pkt.GSOOptions.Type != stack.GSONone
		if super && !whole {
			b.pkts = cut(pkt, sums, b.pkts)
			continue
		}
		if super && sums {
			payload, _ := dataOf(pkt, nil, nil)
			setChecksum(pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice(), payload)
		}
		in := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: pkt.ToBuffer()})
		in.NetworkProtocolNumber = pkt.NetworkProtocolNumber
		in.GSOOptions.MSS = pkt.GSOOptions.MSS
		b.pkts = append(b.pkts, in)
	}
	e.out.send(b.pkts)
	return pkts.Len(), nil
}

// Close ends what this end receives. What it has sent still arrives.
func (e *PipeEnd) Close() { e.peer.out.close() }

// Wait returns at once: the link has no goroutines.
func (e *PipeEnd) Wait() {}
