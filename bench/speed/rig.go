package speed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// Port is where servers listen.
const Port = 80

// BufferSize is that of send and receive buffers where none is given.
const BufferSize = 4 << 20

// Setup says what two hosts of one process are like.
type Setup struct {
	Link   netstack.PipeConfig // of each path
	Paths  int                 // pipes between the hosts, one subflow each; 0 = 1
	GVisor bool                // gVisor's own TCP, on one path
	// MPTCP configures this module's stack; nil = its defaults. Buffers that it
	// leaves at 0 become BufferSize, unless Tuned is set.
	MPTCP *mptcp.Config
	Tuned bool
}

// Links that comparisons are made on: perfect pipes, so that nothing but the
// stacks takes time.
var (
	// Wire offers no offload: hosts cut, sum and verify every packet.
	Wire = netstack.PipeConfig{MTU: 1500, Checksum: true}
	// Jumbo is the same with large frames.
	Jumbo = netstack.PipeConfig{MTU: 9000, Checksum: true}
	// Offload takes super-segments without checksums, as a network card or a
	// TUN does.
	Offload = netstack.PipeConfig{MTU: 1500, Offload: true}
	// Loopback takes large packets without checksums, as a loopback interface
	// does.
	Loopback = netstack.PipeConfig{MTU: 65535}
)

// Rig is two hosts: one that dials and one that listens.
type Rig struct {
	Listen func(port int) (net.Listener, error)
	Dial   func(port int) (net.Conn, error)
	Close  func() error
	paths  int
	up     chan struct{} // a subflow of a client came up; nil = nothing tells
}

// New builds a rig.
func New(s Setup) (*Rig, error) {
	s.Paths = max(s.Paths, 1)
	near, far := make([]*netstack.PipeEnd, s.Paths), make([]*netstack.PipeEnd, s.Paths)
	for i := range near {
		near[i], far[i] = netstack.NewPipe(s.Link)
	}
	if s.GVisor {
		return newGVisorRig(near[0], far[0])
	}
	cfg := &mptcp.Config{}
	if s.MPTCP != nil {
		cfg = s.MPTCP.Clone()
	}
	if !s.Tuned && cfg.ReadBuffer == 0 {
		cfg.ReadBuffer = BufferSize
	}
	if !s.Tuned && cfg.WriteBuffer == 0 {
		cfg.WriteBuffer = BufferSize
	}
	up := make(chan struct{}, 1)
	dials := cfg.Clone()
	if s.Paths > 1 && !s.Tuned { // a trace takes memory
		dials.Trace = &mptcp.Trace{SubflowUp: func(mptcp.SubflowEvent) {
			select {
			case up <- struct{}{}:
			default:
			}
		}}
	}
	client, err := newHost(dials, near, 1)
	if err != nil {
		return nil, err
	}
	server, err := newHost(cfg, far, 2)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Rig{
		Listen: func(port int) (net.Listener, error) { return server.Listen("mptcp", at(port)) },
		Dial:   func(port int) (net.Conn, error) { return client.Dial("mptcp", at(port)) },
		Close:  func() error { return errors.Join(client.Close(), server.Close()) },
		paths:  s.Paths, up: up,
	}, nil
}

func address(path, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(path), byte(host)})
}

// at is where the server is reached over the first path.
func at(port int) string { return netip.AddrPortFrom(address(0, 2), uint16(port)).String() }

func newHost(cfg *mptcp.Config, ends []*netstack.PipeEnd, host int) (*netstack.Host, error) {
	h, err := netstack.New(netstack.Config{MPTCP: cfg})
	if err != nil {
		return nil, err
	}
	for i, end := range ends {
		err := h.AddLink(netstack.LinkConfig{
			Name: fmt.Sprint("pipe", i), Link: end,
			Addrs: []netip.Prefix{netip.PrefixFrom(address(i, host), 24)},
		})
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

func newGVisorRig(near, far stack.LinkEndpoint) (*Rig, error) {
	client, err := newGVisor(near, netip.PrefixFrom(address(0, 1), 24))
	if err != nil {
		return nil, err
	}
	server, err := newGVisor(far, netip.PrefixFrom(address(0, 2), 24))
	if err != nil {
		client.Destroy()
		return nil, err
	}
	to := tcpip.FullAddress{Addr: tcpip.AddrFrom4(address(0, 2).As4())}
	return &Rig{
		Listen: func(port int) (net.Listener, error) {
			to := to
			to.Port = uint16(port)
			return gonet.ListenTCP(server, to, ipv4.ProtocolNumber)
		},
		Dial: func(port int) (net.Conn, error) {
			to := to
			to.Port = uint16(port)
			return dialGVisor(client, to)
		},
		Close: func() error {
			client.Destroy()
			server.Destroy()
			return nil
		},
		paths: 1,
	}, nil
}

func dialGVisor(s *stack.Stack, to tcpip.FullAddress) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, s, to, ipv4.ProtocolNumber)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newGVisor returns a gVisor stack with its own TCP, CUBIC and SACK, and a
// keepalive that is off, as gVisor has it.
func newGVisor(link stack.LinkEndpoint, addr netip.Prefix) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	sack := tcpip.TCPSACKEnabled(true)
	for _, o := range []tcpip.SettableTransportProtocolOption{
		&sack,
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: BufferSize, Max: BufferSize},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: BufferSize, Max: BufferSize},
	} {
		if err := s.SetTransportProtocolOption(header.TCPProtocolNumber, o); err != nil {
			return nil, errors.New(err.String())
		}
	}
	if err := s.CreateNIC(1, link); err != nil {
		return nil, errors.New(err.String())
	}
	if err := s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(addr.Addr().As4()), PrefixLen: addr.Bits()},
	}, stack.AddressProperties{}); err != nil {
		return nil, errors.New(err.String())
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	return s, nil
}

// Connect returns both ends of a connection that has all its subflows.
func (r *Rig) Connect() (client, server net.Conn, err error) {
	l, err := r.Listen(Port)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	return r.pair(l, Port)
}

// pair dials a listener and accepts.
func (r *Rig) pair(l net.Listener, port int) (client, server net.Conn, err error) {
	if client, err = r.Dial(port); err != nil {
		return nil, nil, err
	}
	if server, err = l.Accept(); err == nil {
		if err = exchange(client, server); err == nil {
			if err = r.ready(client); err == nil {
				return client, server, nil
			}
		}
		server.Close()
	}
	client.Close()
	return nil, nil, err
}

// ready waits for all subflows of a connection of ours.
func (r *Rig) ready(client net.Conn) error {
	c, ok := client.(*mptcp.Conn)
	if !ok {
		return nil
	}
	for range 5000 {
		if c.Info().Subflows == r.paths {
			return nil
		}
		select {
		case <-r.up:
		case <-time.After(time.Millisecond):
		}
	}
	return fmt.Errorf("%d of %d subflows after 5 s", c.Info().Subflows, r.paths)
}

// exchange sends a byte to and fro.
func exchange(client, server net.Conn) error {
	buf := make([]byte, 1)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		if _, err := way[0].Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(way[1], buf); err != nil {
			return err
		}
	}
	return nil
}
