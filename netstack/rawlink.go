package netstack

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// defaultMTU is the MTU of links that were not given another.
const defaultMTU = 1500

// rawLink is what links without a link-layer header have in common: the part
// of stack.LinkEndpoint that says so, the MTU, and the way into the stack.
type rawLink struct {
	mtu  atomic.Uint32
	host atomic.Pointer[home] // nil = it belongs to none

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher // guarded by mu; nil = not attached
}

// MTU returns the largest IP packet in bytes.
func (l *rawLink) MTU() uint32 { return l.mtu.Load() }

// SetMTU changes the MTU.
func (l *rawLink) SetMTU(mtu uint32) { l.mtu.Store(mtu) }

// MaxHeaderLength returns 0: there is no link header.
func (l *rawLink) MaxHeaderLength() uint16 { return 0 }

// LinkAddress returns the empty address.
func (l *rawLink) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress does nothing.
func (l *rawLink) SetLinkAddress(tcpip.LinkAddress) {}

// ARPHardwareType says that there is no ARP.
func (l *rawLink) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader does nothing.
func (l *rawLink) AddHeader(*stack.PacketBuffer) {}

// ParseHeader does nothing and reports success.
func (l *rawLink) ParseHeader(*stack.PacketBuffer) bool { return true }

// SetOnCloseAction does nothing: these links are closed by the stack or after
// they were removed from it.
func (l *rawLink) SetOnCloseAction(func()) {}

// Attach connects the link to a stack, or with nil disconnects it.
func (l *rawLink) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dispatcher = d
}

// IsAttached reports whether the link belongs to a stack.
func (l *rawLink) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher != nil
}

// belong tells the link which Host it belongs to.
func (l *rawLink) belong(to *home) { l.host.Store(to) }

// arriveTogether is arrive for a burst of which no sender makes a batch: what is
// for a Host comes as one.
func (l *rawLink) arriveTogether(pkts []*stack.PacketBuffer, trusted bool) {
	if host := l.host.Load(); host != nil && len(pkts) > 1 {
		host.to.gatherer.hold()
		defer host.to.gatherer.release()
	}
	l.arrive(pkts, trusted)
}

// arrive hands inbound packets to the stack and gives up the caller's
// references. Those for a Host come merged; with trusted their checksums need no
// verification.
func (l *rawLink) arrive(pkts []*stack.PacketBuffer, trusted bool) {
	host := l.host.Load()
	if host == nil || len(pkts) == 1 {
		for _, pkt := range pkts {
			l.inject(host, pkt, trusted)
		}
		return
	}
	c := coalescerPool.Get().(*coalescer)
	defer c.free()
	for _, pkt := range c.merge(pkts, trusted) {
		l.inject(host, pkt, trusted)
	}
}

// inject hands an inbound packet to the Host, if there is one and it takes it, or
// else to the stack, and gives up the caller's reference.
func (l *rawLink) inject(host *home, pkt *stack.PacketBuffer, trusted bool) {
	defer pkt.DecRef()
	if host != nil && host.take(pkt, trusted) {
		return
	}
	l.mu.RLock()
	d := l.dispatcher
	l.mu.RUnlock()
	if proto, ok := versionOf(pkt); ok && d != nil {
		d.DeliverNetworkPacket(proto, pkt)
	}
}

// burst is memory for packets on their way through a link.
type burst struct{ pkts []*stack.PacketBuffer }

var burstPool = sync.Pool{New: func() any { return new(burst) }}

// free gives the memory back; the packets are others' by now.
func (b *burst) free() {
	clear(b.pkts)
	b.pkts = b.pkts[:0]
	burstPool.Put(b)
}

// versionOf returns the network protocol that an inbound packet is known to
// be of, or that its first byte names.
func versionOf(pkt *stack.PacketBuffer) (tcpip.NetworkProtocolNumber, bool) {
	if pkt.NetworkProtocolNumber != 0 {
		return pkt.NetworkProtocolNumber, true
	}
	b, ok := pkt.Data().PullUp(1)
	if !ok {
		return 0, false
	}
	switch b[0] >> 4 {
	case header.IPv4Version:
		return header.IPv4ProtocolNumber, true
	case header.IPv6Version:
		return header.IPv6ProtocolNumber, true
	}
	return 0, false
}
