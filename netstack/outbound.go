package netstack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// maxHeaders is the most that IP and TCP headers take of the 64 KiB of a
// super-segment.
const maxHeaders = header.IPv4MaximumHeaderSize + header.TCPHeaderMaximumSize

// maxWhole is the most bytes of a super-segment, its IP header included: what
// the length field of IPv4 can say.
const maxWhole = 1<<16 - 1

// maxRoutes bounds the cache of routes; beyond it, it starts anew.
const maxRoutes = 4096

// adapter is the mptcp.Network of a host: it turns packets into those of
// gVisor and back.
type adapter struct {
	gvisor *stack.Stack
	stats  tcpip.TCPStats // of gvisor
	core   *mptcp.Stack   // set before the first packet

	gatherer gatherer // of inbound packets; its deliver is set before the first

	// own are the links of this package's making, by their number.
	own     atomic.Pointer[map[tcpip.NICID]ownLink]
	locals  atomic.Pointer[[]mptcp.LocalAddr]
	homes   atomic.Pointer[homes]
	watched atomic.Bool // gVisor's IP layer is to see everything

	mu     sync.RWMutex
	routes map[path]*stack.Route // guarded by mu; each holds a reference; nil = there is none
}

var _ mptcp.Network = (*adapter)(nil)

// ownLink is a link that knows hosts.
type ownLink interface {
	stack.LinkWriter
	// belong says whose link it is.
	belong(to *home)
	// takesWhole reports whether super-segments may be written to it, whether
	// or not it offers that to all: it passes them on, or cuts them.
	takesWhole() bool
	// far returns what receives at the other end before a write returns; nil if
	// nothing does.
	far() *gatherer
}

// path is a local and a remote address.
type path struct{ local, remote netip.Addr }

// route returns a route for the path, nil if there is none. The caller
// releases it.
func (a *adapter) route(p path) *stack.Route {
	a.mu.RLock()
	r, known := a.known(p)
	a.mu.RUnlock()
	if known {
		return r
	}
	return a.findRoute(p)
}

// known looks a route up among those asked for before.
func (a *adapter) known(p path) (r *stack.Route, ok bool) {
	if r, ok = a.routes[p]; r != nil {
		r.Acquire()
	}
	return r, ok
}

// findRoute asks gVisor and remembers the answer, also that there is no route: none
// comes without the Host's knowing.
func (a *adapter) findRoute(p path) *stack.Route {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, ok := a.known(p); ok {
		return r
	}
	if len(a.routes) >= maxRoutes {
		a.dropRoutes()
	}
	r, err := a.gvisor.FindRoute(0, toAddress(p.local), toAddress(p.remote), protocolOf(p.remote), false)
	if err != nil {
		a.routes[p] = nil
		return nil
	}
	r.Acquire()
	a.routes[p] = r
	return r
}

// forgetRoute drops a route that failed.
func (a *adapter) forgetRoute(p path) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.routes[p]; r != nil {
		r.Release()
		delete(a.routes, p)
	}
}

// forgetRoutes empties the cache, since links or addresses changed.
func (a *adapter) forgetRoutes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropRoutes()
}

// dropRoutes is called with mu held.
func (a *adapter) dropRoutes() {
	for _, r := range a.routes {
		if r != nil {
			r.Release()
		}
	}
	clear(a.routes)
}

// Locals implements mptcp.Network.
func (a *adapter) Locals() []mptcp.LocalAddr { return *a.locals.Load() }

// Path implements mptcp.Network.
func (a *adapter) Path(local, remote netip.Addr) (mptcp.PathInfo, bool) {
	r := a.route(path{local, remote})
	if r == nil {
		return mptcp.PathInfo{}, false
	}
	defer r.Release()
	info := mptcp.PathInfo{MTU: int(r.MTU())}
	if a.takesWhole(r) {
		info.SegmentMax = maxWhole - maxHeaders
	}
	return info, true
}

// Source implements mptcp.Network.
func (a *adapter) Source(remote netip.Addr) (netip.Addr, bool) {
	r := a.route(path{remote: remote})
	if r == nil {
		return netip.Addr{}, false
	}
	defer r.Release()
	return fromAddress(r.LocalAddress()), true
}

// Allocator implements mptcp.Network.
func (a *adapter) Allocator() mptcp.BlockAllocator { return allocator{} }

// Send implements mptcp.Network. Packets of one path mostly come one after the
// other, and share a look-up; who receives before Send returns gets all of the
// batch at once, whichever paths it takes.
func (a *adapter) Send(batch []mptcp.Packet) {
	var held *gatherer
	for len(batch) > 0 {
		on := path{batch[0].Src.Addr(), batch[0].Dst.Addr()}
		n := 1
		for n < len(batch) && on == (path{batch[n].Src.Addr(), batch[n].Dst.Addr()}) {
			n++
		}
		if r := a.route(on); r != nil {
			held = a.hold(r, held)
			a.sendRun(r, on, batch[:n])
			r.Release()
		} else {
			a.stats.SegmentSendErrors.IncrementBy(uint64(n))
		}
		batch = batch[n:]
	}
	if held != nil {
		held.release()
	}
}

// hold has who receives at the other end of a route wait for more, instead of
// who was held before. It returns who is held.
func (a *adapter) hold(r *stack.Route, held *gatherer) *gatherer {
	far := a.far(r)
	if far == held {
		return held
	}
	if held != nil {
		held.release()
	}
	if far != nil {
		far.hold()
	}
	return far
}

// way is how the packets of a run leave.
type way struct {
	*stack.Route
	direct ownLink // which they are written to as they are; nil = gVisor's IP layer has them
}

// sendRun sends packets of one path.
func (a *adapter) sendRun(r *stack.Route, on path, run []mptcp.Packet) {
	w := way{r, a.direct(r, on.local)}
	for i := range run {
		if !a.send(w, &run[i]) {
			a.stats.SegmentSendErrors.IncrementBy(uint64(len(run) - 1 - i))
			a.forgetRoute(on)
			return
		}
	}
}

// takesWhole reports whether super-segments may be sent over the route: the link
// takes them, or is one of ours that cuts them itself.
func (a *adapter) takesWhole(r *stack.Route) bool {
	if r.HasHostGSOCapability() {
		return true
	}
	l := a.ownLink(r)
	return l != nil && l.takesWhole()
}

// ownLink returns the link of a route if it is of this package's making, else
// nil.
func (a *adapter) ownLink(r *stack.Route) ownLink { return (*a.own.Load())[r.OutgoingNIC()] }

// far returns what receives at the other end of a route before a write to it
// returns; nil if nothing does.
func (a *adapter) far(r *stack.Route) *gatherer {
	if l := a.ownLink(r); l != nil {
		return l.far()
	}
	return nil
}

// send sends one packet, cut if the link can't take it whole. It returns false
// when the route is no longer of use.
//
// gVisor fragments a packet that exceeds the MTU of the route, DF or not, so
// none may: what the route says now counts, not what the connection once
// heard.
func (a *adapter) send(w way, p *mptcp.Packet) bool {
	size := 0
	for _, v := range p.Payload {
		size += len(v)
	}
	most := int(w.MTU()) - len(p.Header)
	switch {
	case size <= most && (p.SegSize == 0 || size <= p.SegSize):
		return a.write(w, p, stack.GSO{})
	case p.SegSize > 0 && p.SegSize <= most && size+maxHeaders <= maxWhole && a.takesWhole(w.Route):
		return a.write(w, p, gsoOf(w.Route, p.SegSize))
	}
	return a.sendCut(w, p, most)
}

// sendCut sends a packet as several of at most most payload bytes.
func (a *adapter) sendCut(w way, p *mptcp.Packet, most int) bool {
	var whole, part wire.Segment
	if most <= 0 || wire.Parse(p.Header, &whole) != reason.DropNone {
		a.stats.SegmentSendErrors.Increment()
		return true
	}
	whole.Payload, whole.Blocks, whole.SegSize = p.Payload, p.Blocks, most
	if p.SegSize > 0 {
		whole.SegSize = min(most, p.SegSize)
	}
	var head [header.TCPHeaderMaximumSize]byte
	h := head[:copy(head[:], p.Header)]
	for cutter := wire.Split(&whole); cutter.Next(&part); {
		writeHeader(&part, h)
		one := mptcp.Packet{Src: p.Src, Dst: p.Dst, Header: h, Payload: part.Payload, Blocks: part.Blocks, ECN: p.ECN}
		if !a.write(w, &one, stack.GSO{}) {
			return false
		}
	}
	return true
}

// gsoOf describes a super-segment to be cut into payloads of size bytes.
func gsoOf(r *stack.Route, size int) stack.GSO {
	gso := stack.GSO{
		Type:       stack.GSOTCPv4,
		NeedsCsum:  true,
		CsumOffset: header.TCPChecksumOffset,
		MSS:        uint16(size),
		L3HdrLen:   header.IPv4MinimumSize,
		MaxSize:    maxWhole,
	}
	if r.NetProto() == header.IPv6ProtocolNumber {
		gso.Type, gso.L3HdrLen = stack.GSOTCPv6, header.IPv6MinimumSize
	}
	return gso
}

// write makes a packet of gVisor's and sends it. It returns false when the
// route is no longer of use.
func (a *adapter) write(w way, p *mptcp.Packet, gso stack.GSO) bool {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: len(p.Header) + int(w.MaxHeaderLength()),
		Payload:            payloadOf(p.Payload, p.Blocks),
	})
	defer pkt.DecRef()
	tcp := header.TCP(pkt.TransportHeader().Push(len(p.Header)))
	copy(tcp, p.Header)
	pkt.TransportProtocolNumber = header.TCPProtocolNumber
	pkt.GSOOptions = gso
	switch {
	case gso.Type != stack.GSONone:
		// The link adds the rest, or leaves it to who cuts the packet.
		tcp.SetChecksum(w.PseudoHeaderChecksum(header.TCPProtocolNumber, uint16(pkt.Size())))
	case w.RequiresTXTransportChecksum():
		wire.PutChecksum(tcp, wire.TCPChecksum(p.Src.Addr(), p.Dst.Addr(), tcp, p.Payload))
	}
	var err tcpip.Error
	if w.direct != nil {
		err = writeTo(w.direct, w.Route, pkt, p.ECN)
	} else {
		err = w.WritePacket(stack.NetworkHeaderParams{
			Protocol: header.TCPProtocolNumber,
			TTL:      w.DefaultTTL(),
			TOS:      p.ECN,
			DF:       true,
		}, pkt)
	}
	switch err.(type) {
	case nil:
		a.stats.SegmentsSent.Increment()
		return true
	case *tcpip.ErrInvalidEndpointState:
		a.stats.SegmentSendErrors.Increment()
		return false
	}
	a.stats.SegmentSendErrors.Increment()
	return true
}
