package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// bed is the whole tunnel in one process: an application's stack, whose
// packets enter the client, two links from there to the server, and an origin
// host that the server dials.
type bed struct {
	app    *stack.Stack
	server *netstack.Host
	origin net.Listener
	far    *netstack.Host // where the origin is
}

var originAddr = netip.MustParseAddrPort("198.18.0.1:80")

func newBed(t *testing.T, flows int, allow ...string) *bed {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bed{}
	newHost := func() *netstack.Host {
		h, err := netstack.New(netstack.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { h.Close() })
		return h
	}
	join := func(name string, x, y *netstack.Host, subnet string) {
		shape := netstack.Shape{Rate: 400e6, Delay: 2 * time.Millisecond}
		p, q := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		base := netip.MustParsePrefix(subnet)
		one := base.Addr().Next()
		require.NoError(t, x.AddLink(netstack.LinkConfig{Name: name, Link: p, Addrs: []netip.Prefix{netip.PrefixFrom(one, base.Bits())}}))
		require.NoError(t, y.AddLink(netstack.LinkConfig{Name: name, Link: q, Addrs: []netip.Prefix{netip.PrefixFrom(one.Next(), base.Bits())}}))
	}
	clientHost, originHost := newHost(), newHost()
	b.server = newHost()
	join("up0", clientHost, b.server, "10.21.1.0/24")
	join("up1", clientHost, b.server, "10.21.2.0/24")
	join("origin", originHost, b.server, "198.18.0.0/24") // origin is .1
	var err error
	b.far = originHost
	b.origin, err = originHost.Listen("tcp", originAddr.String())
	require.NoError(t, err)

	s := &server{slots: make(slots, flows), dial: func(ctx context.Context, dst netip.AddrPort) (half, error) {
		d := mptcp.Dialer{Stack: b.server.Stack, Config: &mptcp.Config{Plain: true}}
		return d.DialMPTCP(ctx, dst)
	}, dialUDP: func(_ context.Context, dst netip.AddrPort) (net.Conn, error) {
		to := tcpip.FullAddress{Addr: tcpip.AddrFromSlice(dst.Addr().AsSlice()), Port: dst.Port()}
		return gonet.DialUDP(b.server.GVisor(), nil, &to, ipv4.ProtocolNumber)
	}}
	for _, a := range allow {
		r, err := parseRule(a)
		require.NoError(t, err)
		s.allow = append(s.allow, r)
	}
	l, err := b.server.Listen("mptcp", "10.21.1.2:7000")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, l) }()

	c := newClient(clientHost, netip.MustParseAddrPort("10.21.1.2:7000"), flows)
	outside, inside := netstack.NewPipe(netstack.PipeConfig{})
	in, err := intercept(inside, flows, func(f *flow) { c.handle(ctx, f) }, func(f *packetFlow) bool { return c.handlePackets(ctx, f) })
	require.NoError(t, err)
	b.app = newApp(t, outside)
	t.Cleanup(func() {
		cancel()
		c.slots.wait()
		in.close()
		require.NoError(t, <-served)
	})
	return b
}

// newApp returns a stack with gVisor's own TCP, as an application would use.
func newApp(t *testing.T, link stack.LinkEndpoint) *stack.Stack {
	t.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	require.Nil(t, s.CreateNIC(1, link))
	require.Nil(t, s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4([4]byte{198, 19, 0, 1}).WithPrefix(),
	}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	t.Cleanup(s.Destroy)
	return s
}

// dial connects the application to an address beyond the tunnel.
func (b *bed) dial(to netip.AddrPort) (*gonet.TCPConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return gonet.DialContextTCP(ctx, b.app, tcpip.FullAddress{
		NIC: 1, Addr: tcpip.AddrFromSlice(to.Addr().AsSlice()), Port: to.Port(),
	}, ipv4.ProtocolNumber)
}

func TestFlowCrossesTheTunnelBothWays(t *testing.T) {
	b := newBed(t, 4, "198.18.0.0/24:80")
	const n = 4 << 20
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(data)
	go func() {
		c, err := b.origin.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		// Only after the end of the request the answer begins: the half close
		// has to cross the tunnel.
		got, err := io.ReadAll(c)
		if err == nil {
			sum := sha256.Sum256(got)
			c.Write(sum[:])
			c.Write(got)
		}
	}()
	c, err := b.dial(originAddr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = c.Write(data)
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	want := sha256.Sum256(data)
	require.Equal(t, want[:], got[:min(len(got), sha256.Size)])
	require.True(t, bytes.Equal(data, got[sha256.Size:]))
}

func TestWhatIsNotAllowedIsRefused(t *testing.T) {
	b := newBed(t, 4, "198.18.0.0/24:80")
	for _, to := range []string{"198.18.0.1:81", "198.18.1.1:80"} {
		_, err := b.dial(netip.MustParseAddrPort(to))
		require.ErrorContains(t, err, "refused", to)
	}
}

func TestWhatDoesNotListenIsRefused(t *testing.T) {
	b := newBed(t, 4, "198.18.0.0/24:*")
	_, err := b.dial(netip.MustParseAddrPort("198.18.0.1:81"))
	require.ErrorContains(t, err, "refused")
}

func TestFlowsAreBounded(t *testing.T) {
	b := newBed(t, 1, "198.18.0.0/24:80")
	first, err := b.dial(originAddr)
	require.NoError(t, err)
	defer first.Close()
	_, err = b.dial(originAddr)
	require.ErrorContains(t, err, "refused")
}

func TestRequest(t *testing.T) {
	for _, text := range []string{"192.0.2.1:443", "[2001:db8::1]:80"} {
		for _, packets := range []bool{false, true} {
			want := request{dst: netip.MustParseAddrPort(text), datagrams: packets}
			b := appendRequest(nil, want)
			r := bytes.NewReader(append(b, "data"...))
			got, err := readRequest(r)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, 4, r.Len(), "what follows the request is the flow's")
			for n := range b {
				_, err := readRequest(bytes.NewReader(b[:n]))
				require.Error(t, err, "%d bytes of %s", n, text)
			}
		}
	}
	// version 1, length 4, 192.0.2.1, port 443 = 0x01bb
	to := request{dst: netip.MustParseAddrPort("192.0.2.1:443")}
	require.Equal(t, []byte{1, 4, 192, 0, 2, 1, 0x01, 0xbb}, appendRequest(nil, to))
	to.datagrams = true
	require.Equal(t, []byte{1, 0x84, 192, 0, 2, 1, 0x01, 0xbb}, appendRequest(nil, to))
	for _, bad := range [][]byte{{2, 4, 1, 1, 1, 1, 0, 80}, {1, 5, 1, 1, 1, 1, 1, 0, 80}} {
		_, err := readRequest(bytes.NewReader(bad))
		require.ErrorIs(t, err, errRequest)
	}
	require.NoError(t, readStatus(bytes.NewReader([]byte{byte(statusOK)})))
	require.ErrorContains(t, readStatus(bytes.NewReader([]byte{byte(statusDenied)})), "not allowed")
	require.ErrorContains(t, readStatus(bytes.NewReader([]byte{77})), "77")
}

func TestAllowList(t *testing.T) {
	var l allowList
	require.False(t, l.permits(netip.MustParseAddrPort("192.0.2.1:80")), "the empty list allows nothing")
	for _, s := range []string{"192.0.2.0/24:80", "198.51.100.7/32:1000-2000", "2001:db8::/32:*", "[2001:db9::/32]:443"} {
		r, err := parseRule(s)
		require.NoError(t, err, s)
		l = append(l, r)
	}
	for text, want := range map[string]bool{
		"192.0.2.1:80":          true,
		"192.0.2.1:81":          false,
		"192.0.3.1:80":          false,
		"[::ffff:192.0.2.1]:80": true,
		"198.51.100.7:1000":     true,
		"198.51.100.7:2000":     true,
		"198.51.100.7:2001":     false,
		"[2001:db8::1]:65535":   true,
		"[2001:db9::1]:443":     true,
		"[2001:db9::1]:444":     false,
	} {
		require.Equal(t, want, l.permits(netip.MustParseAddrPort(text)), text)
	}
	for _, s := range []string{"", "192.0.2.0/24", "192.0.2.1:80", "192.0.2.0/24:0", "192.0.2.0/24:65536", "192.0.2.0/24:90-80", "192.0.2.0/24:x"} {
		_, err := parseRule(s)
		require.Error(t, err, s)
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	const l = "-link up0,10.21.1.2/24,10.21.1.1,10.20.0.0/16 "
	for _, c := range []struct{ args, want string }{
		{"", "usage"},
		{"both", "unknown mode"},
		{"server " + l, "-allow"},
		{"server -allow 1.0.0.0/8:80", "-link"},
		{"server " + l + "-allow 1.0.0.0/8:80 -flows 0", "-flows"},
		{"server " + l + "-allow 1.0.0.0/8:80 more", "unexpected"},
		{"server -link up0,10.21.1.2/24,10.22.1.1 -allow 1.0.0.0/8:80", "10.22.1.1 must be"},
		{"client " + l, "-server"},
		{"client " + l + "-server 10.20.0.1:7000", "-dev"},
		{"client " + l + "-server 10.20.0.1:7000 -dev app0,198.19.0.1/24", "-route"},
		{"client " + l + "-server 10.20.0.1:7000 -dev app0 -route 198.18.0.0/16", "want name"},
		{"client " + l + "-server 10.20.0.1:7000 -dev app0,198.19.0.1/24 -route 0.0.0.0/0", "contains the server"},
	} {
		require.ErrorContains(t, command(context.Background(), strings.Fields(c.args)), c.want, c.args)
	}
}
