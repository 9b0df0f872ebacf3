package netstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/mptcp"
)

// pair is two hosts joined by pipes. Pipe i has the addresses 10.0.i.1 and
// fd00:i::1 at the client, 10.0.i.2 and fd00:i::2 at the server.
type pair struct {
	*testing.T
	client, server *Host
	// near and far are the ends of each pipe at the client and at the server.
	near, far []*PipeEnd
}

// wrapLink lets a test put something between a host and a pipe.
type wrapLink func(i int, end *PipeEnd) stack.LinkEndpoint

func clientAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 1}) }
func serverAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 2}) }

func addrs(i, node int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.0.%d.%d/24", i, node)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:%d::%d/64", i, node)),
	}
}

func newPair(t *testing.T, cfg *mptcp.Config, wrap wrapLink, pipes ...PipeConfig) *pair {
	t.Helper()
	p := &pair{T: t}
	var err error
	p.client, err = New(Config{MPTCP: cfg})
	require.NoError(t, err)
	p.server, err = New(Config{MPTCP: cfg})
	require.NoError(t, err)
	for i, pc := range pipes {
		a, b := NewPipe(pc)
		p.near, p.far = append(p.near, a), append(p.far, b)
		var link stack.LinkEndpoint = a
		if wrap != nil {
			link = wrap(i, a)
		}
		name := fmt.Sprintf("pipe%d", i)
		require.NoError(t, p.client.AddLink(LinkConfig{Name: name, Link: link, Addrs: addrs(i, 1)}))
		require.NoError(t, p.server.AddLink(LinkConfig{Name: name, Link: b, Addrs: addrs(i, 2)}))
	}
	return p
}

func (p *pair) close() {
	p.Helper()
	require.NoError(p, p.client.Close())
	require.NoError(p, p.server.Close())
}

// inBubble runs f with two hosts in virtual time.
func inBubble(t *testing.T, cfg *mptcp.Config, wrap wrapLink, pipes []PipeConfig, f func(p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, cfg, wrap, pipes...)
		defer p.close()
		f(p)
	})
}

// connect makes a connection from the client to the server's address.
func (p *pair) connect(server string) (client, accepted *mptcp.Conn) {
	p.Helper()
	l, err := p.server.Listen("mptcp", net.JoinHostPort("", "80"))
	require.NoError(p, err)
	defer l.Close()
	c, err := p.client.Dial("mptcp", net.JoinHostPort(server, "80"))
	require.NoError(p, err)
	a, err := l.Accept()
	require.NoError(p, err)
	return c.(*mptcp.Conn), a.(*mptcp.Conn)
}

// transfer sends n bytes from one end to the other and compares them.
func transfer(t testing.TB, from, to net.Conn, n int) {
	t.Helper()
	data := pattern(n)
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		sent <- err
	}()
	got := make([]byte, n)
	_, err := io.ReadFull(to, got)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, sha256.Sum256(data), sha256.Sum256(got))
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	return b
}

var twoPaths = []PipeConfig{
	{AB: Shape{Rate: 20e6, Delay: ms(10)}, BA: Shape{Rate: 20e6, Delay: ms(10)}},
	{AB: Shape{Rate: 10e6, Delay: ms(20)}, BA: Shape{Rate: 10e6, Delay: ms(20)}},
}

func TestMPTCPOverTwoPipes(t *testing.T) {
	for _, server := range []string{"10.0.0.2", "fd00:0::2"} {
		t.Run(server, func(t *testing.T) {
			inBubble(t, nil, nil, twoPaths, func(p *pair) {
				c, s := p.connect(server)
				defer c.Close()
				defer s.Close()
				mp, err := c.MultipathTCP()
				require.NoError(p, err)
				require.True(p, mp)
				transfer(p, c, s, 2<<20)
				transfer(p, s, c, 2<<20)

				links := map[string]uint64{}
				for _, sub := range c.Subflows() {
					links[sub.Link] += sub.BytesAcked
				}
				require.Greater(p, links["pipe0"], uint64(200<<10), "%v", c.Subflows())
				require.Greater(p, links["pipe1"], uint64(200<<10), "%v", c.Subflows())
				require.Greater(p, p.far[1].Stats().Bytes, uint64(200<<10))
			})
		})
	}
}

// Perfect pipes hand packets over on the sender's goroutine, so that each side
// is called from within its own sending.
func TestMPTCPOverPerfectPipes(t *testing.T) {
	for _, cfg := range []PipeConfig{{}, {Checksum: true}, {Offload: true}, {Offload: true, Checksum: true}, {MTU: 1280}, {MTU: 65535}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			inBubble(t, nil, nil, []PipeConfig{cfg, cfg}, func(p *pair) {
				c, s := p.connect("10.0.0.2")
				defer c.Close()
				defer s.Close()
				transfer(p, c, s, 4<<20)
				transfer(p, s, c, 4<<20)
				require.Zero(p, p.server.GVisor().Stats().TCP.ChecksumErrors.Value())
				st := p.near[0].Stats()
				if cfg.Offload {
					require.Greater(p, st.Bytes/st.Packets, uint64(3000), "no super-segments: %+v", st)
				} else {
					require.LessOrEqual(p, st.Bytes/st.Packets, uint64(p.near[0].MTU()))
				}
			})
		})
	}
}

// A shaped pipe with offload carries packets of the MTU.
func TestMPTCPOffloadOverShapedPipes(t *testing.T) {
	cfg := twoPaths[0]
	cfg.Offload = true
	inBubble(t, nil, nil, []PipeConfig{cfg}, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 4<<20)
		st := p.near[0].Stats()
		require.Less(p, st.Bytes/st.Packets, uint64(1501))
		require.GreaterOrEqual(p, st.Packets, uint64(4<<20/1460))
	})
}

func TestCorruptionIsDetected(t *testing.T) {
	bad := Shape{Rate: 50e6, Delay: ms(2), Corrupt: 0.02}
	inBubble(t, nil, nil, []PipeConfig{{AB: bad, BA: bad, Seed: 3}}, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 2<<20)
		require.Greater(p, p.near[0].Stats().Corrupted, uint64(10))
		require.NotZero(p, p.server.GVisor().Stats().TCP.ChecksumErrors.Value())
	})
}

func TestClosedPortRefuses(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		for _, server := range []string{"10.0.0.2:81", "[fd00:0::2]:81"} {
			_, err := p.client.Dial("mptcp", server)
			require.ErrorIs(p, err, syscall.ECONNREFUSED)
		}
		require.Equal(p, uint64(2), p.server.Counters().ResetsSent)
	})
}

func TestDialWithoutRoute(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		_, err := p.client.Dial("mptcp", "192.0.2.1:80")
		require.ErrorIs(p, err, syscall.ENETUNREACH)
	})
}

// Addresses beyond the networks of a link need a route.
func TestDefaultRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{T: t}
		var err error
		p.client, err = New(Config{})
		require.NoError(t, err)
		p.server, err = New(Config{})
		require.NoError(t, err)
		defer p.close()
		for i := range 2 {
			a, b := NewPipe(PipeConfig{AB: Shape{Delay: ms(1)}, BA: Shape{Delay: ms(1)}})
			require.NoError(t, p.client.AddLink(LinkConfig{
				Name: fmt.Sprint(i), Link: a, Default: true, Addrs: []netip.Prefix{netip.PrefixFrom(clientAddr(i), 32)},
			}))
			require.NoError(t, p.server.AddLink(LinkConfig{
				Name: fmt.Sprint(i), Link: b, Default: true, Addrs: []netip.Prefix{netip.PrefixFrom(serverAddr(i), 32)},
			}))
		}
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(t, c, s, 100_000)
	})
}

func TestHostDialsItself(t *testing.T) {
	inBubble(t, nil, nil, twoPaths[:1], func(p *pair) {
		l, err := p.client.Listen("mptcp", ":80")
		require.NoError(p, err)
		defer l.Close()
		c, err := p.client.Dial("mptcp", "10.0.0.1:80")
		require.NoError(p, err)
		defer c.Close()
		s, err := l.Accept()
		require.NoError(p, err)
		defer s.Close()
		transfer(p, c, s, 1<<20)
		require.Zero(p, p.near[0].Stats().Packets)
	})
}

// A link that goes down takes its subflow with it at once, and a new one is
// opened when it is back.
func TestLinkGoesDownAndUp(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<20)
		time.Sleep(time.Second)
		require.Equal(p, 4, c.Info().Subflows) // two IP versions on two links

		require.NoError(p, p.client.SetLinkUp("pipe0", false))
		require.Equal(p, []mptcp.LocalAddr{{Addr: clientAddr(1), Link: "pipe1"}, {Addr: netip.MustParseAddr("fd00:1::1"), Link: "pipe1"}}, p.client.Addrs())
		transfer(p, c, s, 1<<20)
		transfer(p, s, c, 1<<20)
		require.Equal(p, 2, c.Info().Subflows)

		require.NoError(p, p.client.SetLinkUp("pipe0", true))
		time.Sleep(3 * time.Second)
		require.Equal(p, 4, c.Info().Subflows, "%+v", c.Subflows())
		transfer(p, c, s, 1<<20)
	})
}

func TestLinkIsAddedAndRemoved(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<20)
		require.NoError(p, p.client.RemoveLink("pipe0"))
		transfer(p, c, s, 1<<20)
		require.EqualError(p, p.client.RemoveLink("pipe0"), `link "pipe0": no such link`)

		a, b := NewPipe(twoPaths[0])
		require.NoError(p, p.server.AddLink(LinkConfig{Name: "pipe2", Link: b, Addrs: addrs(2, 2)}))
		require.NoError(p, p.client.AddLink(LinkConfig{Name: "pipe2", Link: a, Addrs: addrs(2, 1)}))
		time.Sleep(time.Second)
		// The server announces its new address, to which the client opens a
		// subflow from its own new one.
		require.Equal(p, 4, c.Info().Subflows, "%+v", c.Subflows())
		transfer(p, c, s, 1<<20)
		require.NotZero(p, a.Stats().Packets)
	})
}

// The MTU of a link may shrink below what a connection was told: nothing is
// fragmented, everything arrives.
func TestMTUOfALinkShrinks(t *testing.T) {
	inBubble(t, nil, nil, twoPaths[:1], func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 100_000)
		p.near[0].SetMTU(600)
		before := p.near[0].Stats()
		transfer(p, c, s, 1<<20)
		after := p.near[0].Stats()
		require.LessOrEqual(p, (after.Bytes-before.Bytes)/(after.Packets-before.Packets), uint64(600))
	})
}

func TestClosedHost(t *testing.T) {
	p := newPair(t, nil, nil, PipeConfig{})
	c, s := p.connect("10.0.0.2")
	l, err := p.server.Listen("mptcp", ":81")
	require.NoError(t, err)
	require.NoError(t, p.server.Close())
	require.NoError(t, p.server.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "the peer was told")
	_, err = p.server.Dial("mptcp", "10.0.0.1:80")
	require.Error(t, err)
	require.Empty(t, p.server.Addrs())
	require.ErrorContains(t, p.server.AddLink(LinkConfig{Name: "late"}), "host is closed")
	require.NoError(t, p.client.Close())
}

func TestLinkConfigIsChecked(t *testing.T) {
	h, err := New(Config{})
	require.NoError(t, err)
	defer h.Close()
	a, b := NewPipe(PipeConfig{})
	small, _ := NewPipe(PipeConfig{MTU: 576})
	one := netip.MustParsePrefix("10.0.0.1/24")
	require.NoError(t, h.AddLink(LinkConfig{Name: "a", Link: a, Addrs: []netip.Prefix{one}}))
	for want, cfg := range map[string]LinkConfig{
		`link "": no Name`:                                      {Link: b},
		`link "a": another link has this Name`:                  {Name: "a", Link: b},
		`link "b": no Link`:                                     {Name: "b"},
		`link "b": no Addrs`:                                    {Name: "b", Link: b},
		`link "b": in Addrs: 10.0.0.1 is in use on link "a"`:    {Name: "b", Link: b, Addrs: []netip.Prefix{one}},
		`link "b": in Addrs: 0.0.0.0/0 is no address of a host`: {Name: "b", Link: b, Addrs: []netip.Prefix{allIPv4}},
		`link "b": in Addrs: fd00::1/64: the link's MTU of 576 is less than the 1280 of IPv6`: {
			Name: "b", Link: small, Addrs: []netip.Prefix{netip.MustParsePrefix("fd00::1/64")},
		},
		`link "b": in Routes: invalid Prefix is no prefix`: {
			Name: "b", Link: b, Addrs: addrs(1, 1), Routes: []netip.Prefix{{}},
		},
		`link "b": in Gateways: 10.0.1.8 is the second of its IP version`: {
			Name: "b", Link: b, Addrs: addrs(1, 1),
			Gateways: []netip.Addr{netip.MustParseAddr("10.0.1.9"), netip.MustParseAddr("10.0.1.8")},
		},
	} {
		require.EqualError(t, h.AddLink(cfg), want)
	}
	require.ErrorContains(t, h.SetLinkUp("b", true), "no such link")
	_, err = New(Config{MPTCP: &mptcp.Config{MaxSubflows: -1}})
	require.ErrorContains(t, err, "MaxSubflows")
}

// What the application writes before it closes arrives, then the end.
func TestHalfClose(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		data := pattern(300_000)
		go func() {
			c.Write(data)
			c.CloseWrite()
		}()
		got, err := io.ReadAll(s)
		require.NoError(p, err)
		require.True(p, bytes.Equal(data, got))
		transfer(p, s, c, 100_000)
	})
}

func TestDialEndsByItsContext(t *testing.T) {
	inBubble(t, nil, nil, twoPaths, func(p *pair) {
		p.near[0].SetUp(false)
		ctx, cancel := context.WithTimeout(p.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := p.client.DialContext(ctx, "mptcp", "10.0.0.2:80")
		require.ErrorIs(p, err, context.DeadlineExceeded)
		require.Equal(p, 3*time.Second, time.Since(start))
	})
}

// A packet from an IPv4-mapped address would be answered by IPv4; gVisor drops
// it.
func TestMappedAddressesAreRefused(t *testing.T) {
	a, b := NewPipe(PipeConfig{})
	h, err := New(Config{})
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.AddLink(LinkConfig{Name: "a", Link: a, Addrs: addrs(0, 1), Default: true}))
	bt := attachSink(b)
	syn := func(src netip.Addr) []byte {
		pkt := superSegment(src, netip.MustParseAddr("fd00::1"), nil, 0, header.TCPFlagSyn)
		defer pkt.DecRef()
		buf := pkt.ToBuffer()
		defer buf.Release()
		return buf.Flatten()
	}
	// One from elsewhere has the same shape and is answered, by a RST.
	transmit(t, b, syn(netip.MustParseAddr("2001:db8::1")))
	require.Len(t, bt.arrivals(), 1)
	mapped := syn(netip.MustParseAddr("2001:db8::1"))
	copy(mapped[8:24], netip.MustParseAddr("::ffff:10.0.0.2").AsSlice())
	transmit(t, b, mapped)
	require.Len(t, bt.arrivals(), 1)
	require.Equal(t, uint64(1), h.GVisor().Stats().TCP.ValidSegmentsReceived.Value())
}
