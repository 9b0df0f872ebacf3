package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/gomptcp/gomptcp/mptcp"
)

// makePipe returns a nettest.MakePipe of connections between two hosts with n
// subflows. meanwhile is called when the connection stands.
func makePipe(t *testing.T, n int, cfg PipeConfig, meanwhile func(p *pair)) nettest.MakePipe {
	return func() (c1, c2 net.Conn, stop func(), err error) {
		p := &pair{T: t}
		for _, h := range []**Host{&p.client, &p.server} {
			if *h, err = New(Config{}); err != nil {
				return
			}
		}
		for i := range n {
			a, b := NewPipe(cfg)
			p.near, p.far = append(p.near, a), append(p.far, b)
			name := fmt.Sprint("pipe", i)
			err = errors.Join(err,
				p.client.AddLink(LinkConfig{Name: name, Link: a, Addrs: []netip.Prefix{netip.PrefixFrom(clientAddr(i), 24)}}),
				p.server.AddLink(LinkConfig{Name: name, Link: b, Addrs: []netip.Prefix{netip.PrefixFrom(serverAddr(i), 24)}}))
		}
		if err != nil {
			return
		}
		c, s := p.connect("10.0.0.2")
		if err = p.awaitSubflows(c, s, n); err != nil {
			return
		}
		if meanwhile != nil {
			meanwhile(p)
		}
		return c, s, func() {
			c.Close()
			s.Close()
			p.close()
		}, nil
	}
}

// awaitSubflows exchanges a byte, which lets subflows join, and waits for n.
func (p *pair) awaitSubflows(c, s *mptcp.Conn, n int) error {
	b := []byte{1}
	for _, way := range [][2]*mptcp.Conn{{c, s}, {s, c}} {
		if _, err := way[0].Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(way[1], b); err != nil {
			return err
		}
	}
	for end := time.Now().Add(5 * time.Second); c.Info().Subflows < n || s.Info().Subflows < n; {
		if time.Now().After(end) {
			return fmt.Errorf("%d and %d subflows instead of %d", c.Info().Subflows, s.Info().Subflows, n)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func TestConnOneSubflow(t *testing.T) {
	nettest.TestConn(t, makePipe(t, 1, PipeConfig{}, nil))
}

func TestConnTwoSubflows(t *testing.T) {
	nettest.TestConn(t, makePipe(t, 2, PipeConfig{}, nil))
}

func TestConnTwoShapedSubflows(t *testing.T) {
	shape := Shape{Rate: 200e6, Delay: time.Millisecond}
	nettest.TestConn(t, makePipe(t, 2, PipeConfig{AB: shape, BA: shape}, nil))
}

// The first path dies without a word shortly after the test began.
func TestConnWithADyingPath(t *testing.T) {
	nettest.TestConn(t, makePipe(t, 2, PipeConfig{}, func(p *pair) {
		time.AfterFunc(2*time.Millisecond, func() { p.near[0].SetUp(false) })
	}))
}

// The first path dies and the client notices.
func TestConnWithALinkGoingDown(t *testing.T) {
	nettest.TestConn(t, makePipe(t, 2, PipeConfig{}, func(p *pair) {
		time.AfterFunc(2*time.Millisecond, func() { _ = p.client.SetLinkUp("pipe0", false) })
	}))
}

// plainPeer is a host with gVisor's own TCP, which knows nothing of MPTCP.
func plainPeer(t testing.TB, link stack.LinkEndpoint) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	require.Nil(t, s.CreateNIC(1, link))
	for _, p := range addrs(0, 2) {
		require.Nil(t, s.AddProtocolAddress(1, tcpip.ProtocolAddress{
			Protocol:          protocolOf(p.Addr()),
			AddressWithPrefix: tcpip.AddressWithPrefix{Address: toAddress(p.Addr()), PrefixLen: p.Bits()},
		}, stack.AddressProperties{}))
	}
	s.SetRouteTable([]tcpip.Route{{Destination: toSubnet(allIPv4), NIC: 1}, {Destination: toSubnet(allIPv6), NIC: 1}})
	return s
}

// plainPair joins a host to a plainPeer.
func plainPair(t testing.TB, cfg PipeConfig) (h *Host, peer *stack.Stack, stop func()) {
	a, b := NewPipe(cfg)
	h, err := New(Config{})
	require.NoError(t, err)
	require.NoError(t, h.AddLink(LinkConfig{Name: "pipe", Link: a, Addrs: addrs(0, 1)}))
	peer = plainPeer(t, b)
	return h, peer, func() {
		require.NoError(t, h.Close())
		peer.Destroy()
	}
}

func full(addr string, port uint16) (tcpip.FullAddress, tcpip.NetworkProtocolNumber) {
	a := netip.MustParseAddr(addr)
	return tcpip.FullAddress{Addr: toAddress(a), Port: port}, protocolOf(a)
}

// dialPlain connects our host to gVisor's listener.
func dialPlain(h *Host, peer *stack.Stack, addr string) (ours *mptcp.Conn, theirs net.Conn, err error) {
	at, proto := full(addr, 80)
	l, err := gonet.ListenTCP(peer, at, proto)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	c, err := h.Dial("mptcp", net.JoinHostPort(addr, "80"))
	if err != nil {
		return nil, nil, err
	}
	theirs, err = l.Accept()
	return c.(*mptcp.Conn), theirs, err
}

// acceptPlain connects gVisor to our host's listener.
func acceptPlain(h *Host, peer *stack.Stack, addr string) (ours *mptcp.Conn, theirs net.Conn, err error) {
	l, err := h.Listen("mptcp", ":80")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	at, proto := full(addr, 80)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	theirs, err = gonet.DialContextTCP(ctx, peer, at, proto)
	if err != nil {
		return nil, nil, err
	}
	c, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	return c.(*mptcp.Conn), theirs, nil
}

func TestConnDialsPlainTCP(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		h, peer, end := plainPair(t, PipeConfig{})
		ours, theirs, err := dialPlain(h, peer, "10.0.0.2")
		return ours, theirs, func() {
			ours.Close()
			theirs.Close()
			end()
		}, err
	})
}

func TestConnAcceptsPlainTCP(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		h, peer, end := plainPair(t, PipeConfig{})
		ours, theirs, err := acceptPlain(h, peer, "10.0.0.1")
		return ours, theirs, func() {
			ours.Close()
			theirs.Close()
			end()
		}, err
	})
}

// Data of every kind of link arrives whole in both directions, and the
// connection says that it is plain TCP, and why.
func TestFallbackToPlainTCP(t *testing.T) {
	shape := Shape{Rate: 200e6, Delay: time.Millisecond}
	lossy := Shape{Rate: 200e6, Delay: time.Millisecond, Loss: 0.005, Reorder: 0.01}
	for _, link := range []struct {
		name string
		cfg  PipeConfig
	}{
		{"perfect", PipeConfig{}},
		{"checksums", PipeConfig{Checksum: true}},
		{"offload", PipeConfig{Offload: true}},
		{"offload with checksums", PipeConfig{Offload: true, Checksum: true}},
		{"shaped", PipeConfig{AB: shape, BA: shape}},
		{"shaped offload", PipeConfig{AB: shape, BA: shape, Offload: true, Checksum: true}},
		{"lossy", PipeConfig{AB: lossy, BA: lossy, Seed: 1}},
	} {
		for _, way := range []struct {
			name    string
			connect func(*Host, *stack.Stack, string) (*mptcp.Conn, net.Conn, error)
			addrs   [2]string
			why     string
		}{
			{"dial", dialPlain, [2]string{"10.0.0.2", "fd00::2"}, "peer's syn/ack without mp_capable"},
			{"accept", acceptPlain, [2]string{"10.0.0.1", "fd00::1"}, "peer's syn without mp_capable"},
		} {
			for _, addr := range way.addrs {
				t.Run(fmt.Sprintf("%s/%s/%s", link.name, way.name, addr), func(t *testing.T) {
					h, peer, stop := plainPair(t, link.cfg)
					defer stop()
					ours, theirs, err := way.connect(h, peer, addr)
					require.NoError(t, err)
					defer ours.Close()
					defer theirs.Close()
					transfer(t, ours, theirs, 2<<20)
					transfer(t, theirs, ours, 2<<20)
					info := ours.Info()
					require.False(t, info.MPTCP)
					require.Equal(t, way.why, info.Fallback)
					_, err = ours.AddSubflow(t.Context(), mptcp.SubflowConfig{})
					require.ErrorIs(t, err, mptcp.ErrFallback)
				})
			}
		}
	}
}

func TestPlainPeerRefuses(t *testing.T) {
	h, _, stop := plainPair(t, PipeConfig{})
	defer stop()
	_, err := h.Dial("mptcp", "10.0.0.2:80")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
