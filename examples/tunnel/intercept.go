package main

import (
	"errors"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// nic is the only interface of the intercepting stack.
const nic = 1

// interceptor is a network stack that takes every TCP connection, and every flow
// of UDP datagrams, as its own, whatever its destination.
type interceptor struct {
	stack *stack.Stack
	link  stack.LinkEndpoint
}

// flow is a TCP connection that an application asks for.
type flow struct {
	dst     netip.AddrPort // where it wants to go
	request *tcp.ForwarderRequest
}

// packetFlow are the UDP datagrams of an application between two addresses and
// ports.
type packetFlow struct {
	dst     netip.AddrPort
	request *udp.ForwarderRequest
}

// accept returns the socket that the application's datagrams come to.
func (f *packetFlow) accept() (*gonet.UDPConn, error) {
	var queue waiter.Queue
	ep, err := f.request.CreateEndpoint(&queue)
	if err != nil {
		return nil, errors.New(err.String())
	}
	return gonet.NewUDPConn(&queue, ep), nil
}

// intercept puts an interceptor behind a link. handle is called on a goroutine
// of its own for each flow and must accept or refuse it; at most pending flows
// wait for that at a time. packets is called with the first datagram of each
// flow of them, must not wait, and reports whether it has accepted the flow.
func intercept(link stack.LinkEndpoint, pending int, handle func(*flow), packets func(*packetFlow) bool) (*interceptor, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	forwarder := tcp.NewForwarder(s, 0, pending, func(r *tcp.ForwarderRequest) {
		handle(&flow{dst: destination(r.ID()), request: r})
	})
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	datagrams := udp.NewForwarder(s, func(r *udp.ForwarderRequest) bool {
		return packets(&packetFlow{dst: destination(r.ID()), request: r})
	})
	s.SetTransportProtocolHandler(udp.ProtocolNumber, datagrams.HandlePacket)
	if err := configure(s, link); err != nil {
		s.Destroy()
		return nil, err
	}
	return &interceptor{s, link}, nil
}

// configure lets the stack receive for, and send from, any address, with
// windows that do not limit a flow below the rate of its links.
func configure(s *stack.Stack, link stack.LinkEndpoint) error {
	sack := tcpip.TCPSACKEnabled(true)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: 1 << 20, Max: 8 << 20}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: 1 << 20, Max: 8 << 20}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &receive, &send} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return errors.New(err.String())
		}
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return errors.New(err.String())
	}
	if err := s.SetPromiscuousMode(nic, true); err != nil {
		return errors.New(err.String())
	}
	if err := s.SetSpoofing(nic, true); err != nil {
		return errors.New(err.String())
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nic},
		{Destination: header.IPv6EmptySubnet, NIC: nic},
	})
	return nil
}

// destination is where the first packet of a connection wanted to go.
func destination(id stack.TransportEndpointID) netip.AddrPort {
	address, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	return netip.AddrPortFrom(address, id.LocalPort)
}

// refuse answers the application with a reset.
func (f *flow) refuse() { f.request.Complete(true) }

// accept completes the handshake with the application.
func (f *flow) accept() (half, error) {
	var queue waiter.Queue
	ep, err := f.request.CreateEndpoint(&queue)
	if err != nil {
		f.request.Complete(true)
		return nil, errors.New(err.String())
	}
	f.request.Complete(false)
	ep.SocketOptions().SetKeepAlive(true)
	return &application{gonet.NewTCPConn(&queue, ep), ep}, nil
}

// application is the connection of an application.
type application struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
}

// SetLinger is net.TCPConn's.
func (a *application) SetLinger(seconds int) error {
	a.endpoint.SocketOptions().SetLinger(tcpip.LingerOption{
		Enabled: seconds >= 0, Timeout: time.Duration(max(seconds, 0)) * time.Second,
	})
	return nil
}

// close ends the link and all connections. The link goes first: Destroy holds
// a lock while it waits for the link, which may need it to deliver a packet.
func (in *interceptor) close() {
	in.link.Close()
	in.link.Wait()
	in.stack.Destroy()
}
