package netstack

import (
	"io"
	"sync"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// PcapWriter writes the packets of one or more taps as one pcapng file, an
// interface a tap. It is safe for concurrent use.
//
// Wireshark and tshark decode MPTCP in such a file as it is. Packets of a link
// without checksums (see PipeConfig.Checksum) are written as they travel,
// without them.
type PcapWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ng    *pcapgo.NgWriter // nil until the first tap
	taps  int
	err   error // the first that happened; nothing is written after it
	frame []byte
}

// NewPcapWriter returns a PcapWriter that writes to w.
func NewPcapWriter(w io.Writer) *PcapWriter { return &PcapWriter{w: w} }

// Flush writes what is buffered and returns the first error since the
// beginning. Closing the file is the caller's business.
func (p *PcapWriter) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && p.ng != nil {
		p.err = p.ng.Flush()
	}
	return p.err
}

// addInterface begins an interface and returns its number.
func (p *PcapWriter) addInterface(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.taps
	p.taps++
	if p.err != nil {
		return id
	}
	// LINKTYPE_RAW: the packet begins with its IP header.
	intf := pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeRaw}
	if p.ng != nil {
		_, p.err = p.ng.AddInterface(intf)
	} else {
		p.ng, p.err = pcapgo.NewNgWriterInterface(p.w, intf, pcapgo.NgWriterOptions{
			SectionInfo: pcapgo.NgSectionInfo{Application: "gomptcp"},
		})
	}
	return id
}

// write appends a packet from its IP header on. The time is taken under the
// lock, so that the file is in order of time.
func (p *PcapWriter) write(id int, pkt *stack.PacketBuffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	views, skip := pkt.AsViewList()
	skip += len(pkt.VirtioNetHeader().Slice()) + len(pkt.LinkHeader().Slice())
	p.frame = p.frame[:0]
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		n := min(skip, len(b))
		p.frame = append(p.frame, b[n:]...)
		skip -= n
	}
	p.err = p.ng.WritePacket(gopacket.CaptureInfo{
		Timestamp:      time.Now(),
		CaptureLength:  len(p.frame),
		Length:         len(p.frame),
		InterfaceIndex: id,
	}, p.frame)
}

// tap shows what crosses a link to a PcapWriter.
type tap struct {
	stack.LinkEndpoint
	w  *PcapWriter
	id int

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher // guarded by mu; nil = not attached
}

// NewTap wraps ep so that w records all packets that a host sends and receives
// over it, under the given interface name. Use the result in LinkConfig.Link in
// place of ep.
func NewTap(ep stack.LinkEndpoint, name string, w *PcapWriter) stack.LinkEndpoint {
	return &tap{LinkEndpoint: ep, w: w, id: w.addInterface(name)}
}

// WritePackets records and forwards outbound packets.
func (t *tap) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		t.w.write(t.id, pkt)
	}
	return t.LinkEndpoint.WritePackets(pkts)
}

// Attach puts the tap between the link and the stack.
func (t *tap) Attach(d stack.NetworkDispatcher) {
	t.mu.Lock()
	t.dispatcher = d
	t.mu.Unlock()
	if d == nil {
		t.LinkEndpoint.Attach(nil)
		return
	}
	t.LinkEndpoint.Attach(t)
}

// DeliverNetworkPacket records and forwards inbound packets.
func (t *tap) DeliverNetworkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if d := t.target(); d != nil {
		t.w.write(t.id, pkt)
		d.DeliverNetworkPacket(proto, pkt)
	}
}

// DeliverLinkPacket forwards.
func (t *tap) DeliverLinkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if d := t.target(); d != nil {
		d.DeliverLinkPacket(proto, pkt)
	}
}

func (t *tap) target() stack.NetworkDispatcher {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.dispatcher
}

// SupportedGSO is the link's.
func (t *tap) SupportedGSO() stack.SupportedGSO {
	if g, ok := t.LinkEndpoint.(stack.GSOEndpoint); ok {
		return g.SupportedGSO()
	}
	return stack.GSONotSupported
}

// GSOMaxSize is the link's.
func (t *tap) GSOMaxSize() uint32 {
	if g, ok := t.LinkEndpoint.(stack.GSOEndpoint); ok {
		return g.GSOMaxSize()
	}
	return 0
}
