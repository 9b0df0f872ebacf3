package netstack

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// router is a link that answers packets it does not like with ICMP.
type router struct {
	stack.LinkEndpoint
	host stack.NetworkDispatcher

	mtu     int  // packet too big above it; 0 = no limit
	refuse  bool // TCP packets get port unreachable
	sent    atomic.Int32
	quoting func(tcp []byte) // changes the quoted TCP header
}

func (r *router) Attach(d stack.NetworkDispatcher) {
	r.host = d
	r.LinkEndpoint.Attach(d)
}

func (r *router) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		tooBig := r.mtu > 0 && pkt.Size() > r.mtu
		if (tooBig || r.refuse) && pkt.TransportProtocolNumber == header.TCPProtocolNumber {
			r.sent.Add(1)
			r.answer(pkt, tooBig)
			continue
		}
		var one stack.PacketBufferList
		one.PushBack(pkt)
		if _, err := r.LinkEndpoint.WritePackets(one); err != nil {
			return 0, err
		}
	}
	return pkts.Len(), nil
}

// answer sends an ICMP error that quotes the IP header and 8 bytes more.
func (r *router) answer(pkt *stack.PacketBuffer, tooBig bool) {
	buf := pkt.ToBuffer()
	quote := buf.Flatten()
	buf.Release()
	ip := len(pkt.NetworkHeader().Slice())
	quote = quote[:ip+8]
	if r.quoting != nil {
		r.quoting(quote[ip:])
	}
	var b []byte
	proto := pkt.NetworkProtocolNumber
	if proto == header.IPv4ProtocolNumber {
		b = make([]byte, 28+len(quote))
		copy(b[28:], quote)
		icmp := header.ICMPv4(b[20:])
		icmp.SetType(header.ICMPv4DstUnreachable)
		icmp.SetCode(header.ICMPv4PortUnreachable)
		if tooBig {
			icmp.SetCode(header.ICMPv4FragmentationNeeded)
			icmp.SetMTU(uint16(r.mtu))
		}
		icmp.SetChecksum(^checksum.Checksum(icmp, 0))
		from := header.IPv4(quote)
		header.IPv4(b).Encode(&header.IPv4Fields{
			TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber),
			SrcAddr: from.DestinationAddress(), DstAddr: from.SourceAddress(),
		})
		header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	} else {
		b = make([]byte, 48+len(quote))
		copy(b[48:], quote)
		icmp := header.ICMPv6(b[40:])
		icmp.SetType(header.ICMPv6DstUnreachable)
		icmp.SetCode(header.ICMPv6PortUnreachable)
		if tooBig {
			icmp.SetType(header.ICMPv6PacketTooBig)
			icmp.SetCode(0)
			icmp.SetMTU(uint32(r.mtu))
		}
		from := header.IPv6(quote)
		icmp.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
			Header: icmp, Src: from.DestinationAddress(), Dst: from.SourceAddress(),
		}))
		header.IPv6(b).Encode(&header.IPv6Fields{
			PayloadLength: uint16(len(b) - 40), TransportProtocol: header.ICMPv6ProtocolNumber, HopLimit: 64,
			SrcAddr: from.DestinationAddress(), DstAddr: from.SourceAddress(),
		})
	}
	in := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	r.host.DeliverNetworkPacket(proto, in)
	in.DecRef()
}

var icmpServers = []struct {
	address string
	header  int
}{{"10.0.0.2", 20}, {"fd00:0::2", 40}}

// A router with a smaller MTU tells the subflow, whose segments then fit.
func TestPacketTooBigReachesTheSubflow(t *testing.T) {
	for _, server := range icmpServers {
		t.Run(server.address, func(t *testing.T) {
			var r *router
			wrap := func(_ int, end *PipeEnd) stack.LinkEndpoint {
				r = &router{LinkEndpoint: end, mtu: 1300}
				return r
			}
			inBubble(t, nil, wrap, twoPaths[:1], func(p *pair) {
				c, s := p.connect(server.address)
				defer c.Close()
				defer s.Close()
				transfer(p, c, s, 1<<20)
				require.NotZero(p, r.sent.Load())
				require.Less(p, r.sent.Load(), int32(100))
				for _, sub := range c.Subflows() {
					if sub.BytesSent > 100<<10 {
						require.LessOrEqual(p, sub.MSS, 1300-server.header-20, "%+v", sub)
					}
				}
			})
		})
	}
}

// An ICMP message about a sequence number that was never sent is a forgery.
func TestForgedPacketTooBigIsIgnored(t *testing.T) {
	var r *router
	wrap := func(_ int, end *PipeEnd) stack.LinkEndpoint {
		r = &router{LinkEndpoint: end, quoting: func(tcp []byte) { tcp[4] ^= 0x80 }}
		return r
	}
	inBubble(t, nil, wrap, twoPaths[:1], func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 10_000)
		mss := c.Subflows()[0].MSS
		r.mtu = 1300
		c.Write(make([]byte, 100_000))
		time.Sleep(100 * time.Millisecond)
		require.NotZero(p, r.sent.Load())
		require.Equal(p, mss, c.Subflows()[0].MSS)
	})
}

func TestPortUnreachableEndsADial(t *testing.T) {
	for _, server := range icmpServers {
		t.Run(server.address, func(t *testing.T) {
			wrap := func(_ int, end *PipeEnd) stack.LinkEndpoint { return &router{LinkEndpoint: end, refuse: true} }
			inBubble(t, nil, wrap, twoPaths[:1], func(p *pair) {
				start := time.Now()
				_, err := p.client.Dial("mptcp", net.JoinHostPort(server.address, "80"))
				require.True(p, errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH), "%v", err)
				require.Less(p, time.Since(start), time.Second)
			})
		})
	}
}
