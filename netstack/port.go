package netstack

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/ports"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// port is the one transport endpoint of a host, registered for port 0, which
// protocol.ParsePorts says every packet is of.
type port struct{ to *adapter }

var _ stack.TransportEndpoint = (*port)(nil)

// HandlePacket brings a TCP packet to the adapter.
func (p *port) HandlePacket(id stack.TransportEndpointID, pkt *stack.PacketBuffer) {
	p.to.receive(id, pkt)
}

// HandleError brings an ICMP error about a TCP packet to the adapter.
func (p *port) HandleError(err stack.TransportError, pkt *stack.PacketBuffer) {
	p.to.receiveError(err, pkt)
}

// Abort and Wait have nothing to do: Host.Close ends connections.
func (p *port) Abort() {}
func (p *port) Wait()  {}

// register makes the endpoint known to gVisor.
func (p *port) register(s *stack.Stack) error {
	return toError(s.RegisterTransportEndpoint(
		[]tcpip.NetworkProtocolNumber{header.IPv4ProtocolNumber, header.IPv6ProtocolNumber},
		header.TCPProtocolNumber, stack.TransportEndpointID{}, p, ports.Flags{}, 0,
	))
}

// unregister ends what register began.
func (p *port) unregister(s *stack.Stack) {
	s.UnregisterTransportEndpoint(
		[]tcpip.NetworkProtocolNumber{header.IPv4ProtocolNumber, header.IPv6ProtocolNumber},
		header.TCPProtocolNumber, stack.TransportEndpointID{}, p, ports.Flags{}, 0,
	)
}
