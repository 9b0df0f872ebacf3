package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// Sizes that all contenders share.
const (
	writeSize  = 256 << 10
	bufferSize = 4 << 20
	port       = 80
)

// links are what the contenders run over: perfect pipes, so that nothing but
// the stacks takes time.
var links = []struct {
	name string
	cfg  netstack.PipeConfig
}{
	// As a link without offloads: every packet is cut and summed by the host.
	{"mtu1500", netstack.PipeConfig{MTU: 1500, Checksum: true}},
	// As a network card, or a TUN, that takes super-segments.
	{"mtu1500-offload", netstack.PipeConfig{MTU: 1500, Offload: true}},
	// As the loopback interface.
	{"mtu65535", netstack.PipeConfig{MTU: 65535}},
}

// contender is a way to have a connection.
type contender struct {
	name  string
	paths int
	build func(b *testing.B, near, far []*netstack.PipeEnd) rig
}

var contenders = []contender{
	{"gvisor", 1, buildGVisor},
	{"tcp", 1, ours(&mptcp.Config{Plain: true, ReadBuffer: bufferSize, WriteBuffer: bufferSize})},
	{"mptcp1", 1, ours(&mptcp.Config{ReadBuffer: bufferSize, WriteBuffer: bufferSize})},
	{"mptcp2", 2, ours(&mptcp.Config{ReadBuffer: bufferSize, WriteBuffer: bufferSize})},
}

// rig is two hosts.
type rig struct {
	listen func() (net.Listener, error)
	dial   func() (net.Conn, error)
	close  func()
}

// each runs f as a sub-benchmark for every contender on a link.
func each(b *testing.B, cfg netstack.PipeConfig, f func(b *testing.B, c contender, r rig)) {
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			near, far := make([]*netstack.PipeEnd, c.paths), make([]*netstack.PipeEnd, c.paths)
			for i := range near {
				near[i], far[i] = netstack.NewPipe(cfg)
			}
			r := c.build(b, near, far)
			defer r.close()
			f(b, c, r)
		})
	}
}

func address(path, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(path), byte(host)})
}

// ours returns two hosts of this module.
func ours(cfg *mptcp.Config) func(*testing.B, []*netstack.PipeEnd, []*netstack.PipeEnd) rig {
	return func(b *testing.B, near, far []*netstack.PipeEnd) rig {
		var hosts [2]*netstack.Host
		for k, ends := range [][]*netstack.PipeEnd{near, far} {
			h, err := netstack.New(netstack.Config{MPTCP: cfg})
			require.NoError(b, err)
			for i, end := range ends {
				require.NoError(b, h.AddLink(netstack.LinkConfig{
					Name: fmt.Sprint("pipe", i), Link: end,
					Addrs: []netip.Prefix{netip.PrefixFrom(address(i, k+1), 24)},
				}))
			}
			hosts[k] = h
		}
		at := netip.AddrPortFrom(address(0, 2), port).String()
		return rig{
			listen: func() (net.Listener, error) { return hosts[1].Listen("mptcp", at) },
			dial:   func() (net.Conn, error) { return hosts[0].Dial("mptcp", at) },
			close: func() {
				require.NoError(b, hosts[0].Close())
				require.NoError(b, hosts[1].Close())
			},
		}
	}
}

// buildGVisor returns two of gVisor's stacks with its own TCP.
func buildGVisor(b *testing.B, near, far []*netstack.PipeEnd) rig {
	client, server := gvisorStack(b, near[0], 1), gvisorStack(b, far[0], 2)
	at := tcpip.FullAddress{Addr: tcpip.AddrFrom4(address(0, 2).As4()), Port: port}
	return rig{
		listen: func() (net.Listener, error) { return gonet.ListenTCP(server, at, ipv4.ProtocolNumber) },
		dial: func() (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return gonet.DialContextTCP(ctx, client, at, ipv4.ProtocolNumber)
		},
		close: func() {
			client.Destroy()
			server.Destroy()
		},
	}
}

func gvisorStack(b *testing.B, link stack.LinkEndpoint, host int) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	sack := tcpip.TCPSACKEnabled(true)
	for _, o := range []tcpip.SettableTransportProtocolOption{
		&sack,
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: bufferSize, Max: bufferSize},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: bufferSize, Max: bufferSize},
	} {
		require.Nil(b, s.SetTransportProtocolOption(header.TCPProtocolNumber, o))
	}
	require.Nil(b, s.CreateNIC(1, link))
	require.Nil(b, s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(address(0, host).As4()), PrefixLen: 24},
	}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	return s
}

// connect returns both ends of a connection that has all its subflows.
func (r *rig) connect(b *testing.B, c contender) (client, server net.Conn) {
	l, err := r.listen()
	require.NoError(b, err)
	defer l.Close()
	client, err = r.dial()
	require.NoError(b, err)
	server, err = l.Accept()
	require.NoError(b, err)
	exchange(b, client, server, make([]byte, 1))
	m, ok := client.(*mptcp.Conn)
	if !ok {
		return client, server
	}
	require.Eventually(b, func() bool { return m.Info().Subflows == c.paths }, 5*time.Second, time.Millisecond)
	require.Equal(b, c.name != "tcp", m.Info().MPTCP)
	return client, server
}

// exchange sends buf to and fro.
func exchange(b *testing.B, client, server net.Conn, buf []byte) {
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		_, err := way[0].Write(buf)
		require.NoError(b, err)
		_, err = io.ReadFull(way[1], buf)
		require.NoError(b, err)
	}
}
