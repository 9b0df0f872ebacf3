package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Capture writes what the senders of a simulation put on its links, in
// pcapng, with one interface a link. Packets that a link then loses are in it.
type Capture struct {
	w     *pcapgo.NgWriter
	links int
	buf   []byte
	err   error
}

// StartCapture captures to w from now on. Call Close of the result in the end.
// It must come after the first Connect; links that are added later are
// captured too.
func (s *Sim) StartCapture(w io.Writer) (*Capture, error) {
	if len(s.links) == 0 {
		return nil, fmt.Errorf("a capture needs a link")
	}
	ng, err := pcapgo.NewNgWriterInterface(w, ngInterface(s.links[0].Name), pcapgo.DefaultNgWriterOptions)
	if err != nil {
		return nil, err
	}
	c := &Capture{w: ng, links: 1}
	for _, l := range s.links[1:] {
		c.addLink(l.Name)
	}
	s.capture = c
	return c, nil
}

func ngInterface(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeRaw, SnapLength: 0, TimestampResolution: 9}
}

// addLink adds the interface of a link; links come in the order of their
// indices.
func (c *Capture) addLink(name string) {
	if _, err := c.w.AddInterface(ngInterface(name)); err != nil && c.err == nil {
		c.err = err
	}
	c.links++
}

// Close writes what is buffered. It returns the first error of the capture.
func (c *Capture) Close() error {
	if err := c.w.Flush(); c.err == nil {
		c.err = err
	}
	return c.err
}

// write adds a packet on a link.
func (c *Capture) write(now mono.Time, link int, p *packet) {
	if p.head == nil {
		p.build()
	}
	c.buf = appendIP(c.buf[:0], p)
	info := gopacket.CaptureInfo{
		Timestamp:      time.Unix(0, int64(now)).UTC(),
		CaptureLength:  len(c.buf),
		Length:         len(c.buf),
		InterfaceIndex: link,
	}
	if err := c.w.WritePacket(info, c.buf); err != nil && c.err == nil {
		c.err = err
	}
}

// Fields of the IP headers.
const (
	protocolTCP = 6
	hopLimit    = 64
	dontFrag    = 0x4000
)

// appendIP appends the packet with IP header and checksums.
func appendIP(b []byte, p *packet) []byte {
	tcp := len(p.head) + int(p.payloadLen)
	if p.src.Addr().Is4() {
		b = appendIPv4(b, p, tcp)
	} else {
		b = append(b, 0x60, byte(p.ecn)<<4, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(tcp))
		b = append(b, protocolTCP, hopLimit)
		b = append(b, p.src.Addr().AsSlice()...)
		b = append(b, p.dst.Addr().AsSlice()...)
	}
	at := len(b)
	b = append(b, p.head...)
	views := append([][]byte{p.payload}, p.more...)
	wire.PutChecksum(b[at:], wire.TCPChecksum(p.src.Addr(), p.dst.Addr(), p.head, views))
	for _, v := range views {
		b = append(b, v...)
	}
	return b
}

func appendIPv4(b []byte, p *packet, tcp int) []byte {
	at := len(b)
	b = append(b, 0x45, byte(p.ecn))
	b = binary.BigEndian.AppendUint16(b, uint16(headerIPv4+tcp))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, dontFrag)
	b = append(b, hopLimit, protocolTCP, 0, 0)
	b = append(b, p.src.Addr().AsSlice()...)
	b = append(b, p.dst.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(b[at+10:], ^uint16(wire.Sum(b[at:], 0)))
	return b
}
