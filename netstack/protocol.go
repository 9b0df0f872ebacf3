package netstack

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/header/parse"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/waiter"
)

// protocol stands in a gVisor stack for TCP, with nothing of it: ports and
// connections are the mptcp.Stack's, to which port brings the packets.
type protocol struct{}

var _ stack.TransportProtocol = (*protocol)(nil)

// Number returns the protocol number of TCP.
func (*protocol) Number() tcpip.TransportProtocolNumber { return header.TCPProtocolNumber }

// NewEndpoint refuses: there are no sockets of gVisor's kind.
func (*protocol) NewEndpoint(tcpip.NetworkProtocolNumber, *waiter.Queue) (tcpip.Endpoint, tcpip.Error) {
	return nil, &tcpip.ErrNotSupported{}
}

// NewRawEndpoint refuses, too.
func (*protocol) NewRawEndpoint(tcpip.NetworkProtocolNumber, *waiter.Queue) (tcpip.Endpoint, tcpip.Error) {
	return nil, &tcpip.ErrNotSupported{}
}

// MinimumPacketSize returns the size of a TCP header without options.
func (*protocol) MinimumPacketSize() int { return header.TCPMinimumSize }

// ParsePorts says that every packet, and every packet that an ICMP message
// quotes, is of port 0.
//
// gVisor asks for ports only to find the endpoint of a packet or of an ICMP
// error. With one answer for all, the one endpoint of port 0 receives
// everything, at the price of no registration at all per connection or port;
// the true ports are read where the addresses are.
func (*protocol) ParsePorts([]byte) (src, dst uint16, err tcpip.Error) { return 0, 0, nil }

// Parse sets the transport header of an inbound packet.
func (*protocol) Parse(pkt *stack.PacketBuffer) bool { return parse.TCP(pkt) }

// HandleUnknownDestinationPacket receives the packets that come while the
// endpoint is not registered: before the host is complete and after it was
// closed. Nobody is there to answer.
func (*protocol) HandleUnknownDestinationPacket(stack.TransportEndpointID, *stack.PacketBuffer) stack.UnknownDestinationPacketDisposition {
	return stack.UnknownDestinationPacketHandled
}

// SendBufferSize is asked for by Stack.TCPSendBufferLimits, which panics on a
// protocol 6 that has no answer. Nothing here uses it.
func (*protocol) SendBufferSize() tcpip.TCPSendBufferSizeRangeOption {
	return tcpip.TCPSendBufferSizeRangeOption{Min: blockSize, Default: blockSize, Max: blockSize}
}

// SetOption knows no option.
func (*protocol) SetOption(tcpip.SettableTransportProtocolOption) tcpip.Error {
	return &tcpip.ErrUnknownProtocolOption{}
}

// Option knows no option.
func (*protocol) Option(tcpip.GettableTransportProtocolOption) tcpip.Error {
	return &tcpip.ErrUnknownProtocolOption{}
}

// Close, Wait, Pause, Resume and Restore have nothing to do: there are no
// goroutines.
func (*protocol) Close()   {}
func (*protocol) Wait()    {}
func (*protocol) Pause()   {}
func (*protocol) Resume()  {}
func (*protocol) Restore() {}
