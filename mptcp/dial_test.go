package mptcp_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

func TestDialReturnsAfterOneRoundTrip(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		p.listen()
		begin := time.Now()
		for _, network := range []string{"mptcp", "mptcp4", "tcp", "tcp4"} {
			c, err := p.client.Dial(network, p.target().String())
			require.NoError(p, err)
			require.Equal(p, p.target().String(), c.RemoteAddr().String())
		}
		require.Equal(p, 4*20*time.Millisecond, time.Since(begin))
	})
}

func TestDialRefused(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		c, err := p.client.Dial("mptcp", p.target().String())
		require.Nil(p, c)
		require.ErrorIs(p, err, syscall.ECONNREFUSED)
		var he *mptcp.HandshakeError
		require.ErrorAs(p, err, &he)
		var oe *net.OpError
		require.ErrorAs(p, err, &oe)
		require.Equal(p, "dial", oe.Op)
		require.Equal(p, "mptcp", oe.Net)
		require.Equal(p, p.target().String(), oe.Addr.String())
		require.False(p, oe.Timeout())
		settle(time.Minute)
		require.Zero(p, p.client.Counters().Conns)
	})
}

func TestDialToASilentAddressTimesOut(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		p.links[0].SetUp(false)
		_, err := p.client.Dial("mptcp", p.target().String())
		require.ErrorIs(p, err, syscall.ETIMEDOUT)
		var ne net.Error
		require.ErrorAs(p, err, &ne)
		require.True(p, ne.Timeout())
		require.Zero(p, p.client.Counters().Conns)
	})
}

func TestDialGivesUpWhenTold(t *testing.T) {
	type test struct {
		name   string
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		dialer func() mptcp.Dialer
		want   error
		after  time.Duration
	}
	plain := func() mptcp.Dialer { return mptcp.Dialer{} }
	background := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	for _, tt := range []test{
		{"cancelled before", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, plain, context.Canceled, 0},
		{"cancelled meanwhile", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, plain, context.Canceled, time.Second},
		{"context deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, plain, context.DeadlineExceeded, time.Second},
		{"Timeout", background, func() mptcp.Dialer {
			return mptcp.Dialer{Timeout: time.Second}
		}, context.DeadlineExceeded, time.Second},
		{"Deadline", background, func() mptcp.Dialer {
			return mptcp.Dialer{Deadline: time.Now().Add(time.Second)}
		}, context.DeadlineExceeded, time.Second},
		{"the earlier of both", background, func() mptcp.Dialer {
			return mptcp.Dialer{Timeout: time.Hour, Deadline: time.Now().Add(time.Second)}
		}, context.DeadlineExceeded, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(p *pair) {
				p.links[0].SetUp(false)
				d := tt.dialer()
				d.Stack = p.client.Stack
				ctx, cancel := tt.ctx(p.Context())
				defer cancel()
				begin := time.Now()
				_, err := d.DialContext(ctx, "mptcp", p.target().String())
				require.ErrorIs(p, err, tt.want)
				var oe *net.OpError
				require.ErrorAs(p, err, &oe)
				require.Equal(p, tt.want == context.DeadlineExceeded, oe.Timeout())
				require.Equal(p, tt.after, time.Since(begin))
				settle(0)
				require.Zero(p, p.client.Counters().Conns, "the attempt goes on")
			})
		})
	}
}

func TestContextHasNoEffectOnceConnected(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		l := p.listen()
		ctx, cancel := context.WithCancel(p.Context())
		client, err := p.client.DialContext(ctx, "mptcp", p.target().String())
		require.NoError(p, err)
		server, err := l.Accept()
		require.NoError(p, err)
		cancel()
		settle(time.Second)
		_, err = client.Write([]byte("x"))
		require.NoError(p, err)
		_, err = io.ReadFull(server, make([]byte, 1))
		require.NoError(p, err)
	})
}

func TestDialErrors(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		s := p.client.Stack
		udp := &net.UDPAddr{}
		for _, tt := range []struct {
			name             string
			dialer           mptcp.Dialer
			network, address string
			want             error
		}{
			{"no route", mptcp.Dialer{Stack: s}, "mptcp", "192.0.2.1:80", syscall.ENETUNREACH},
			{"no such local address", mptcp.Dialer{Stack: s, LocalAddr: &net.TCPAddr{IP: net.IP{192, 0, 2, 1}}}, "mptcp", "10.0.0.2:80", syscall.ENETUNREACH},
			{"no stack", mptcp.Dialer{}, "mptcp", "10.0.0.2:80", mptcp.ErrNoStack},
			{"unknown network", mptcp.Dialer{Stack: s}, "udp", "10.0.0.2:80", net.UnknownNetworkError("udp")},
			{"wrong family", mptcp.Dialer{Stack: s}, "mptcp6", "10.0.0.2:80", nil},
			{"no host", mptcp.Dialer{Stack: s}, "mptcp", ":80", nil},
			{"no port", mptcp.Dialer{Stack: s}, "mptcp", "10.0.0.2", nil},
			{"bad port", mptcp.Dialer{Stack: s}, "mptcp", "10.0.0.2:65536", nil},
			{"local address of another kind", mptcp.Dialer{Stack: s, LocalAddr: udp}, "mptcp", "10.0.0.2:80", nil},
			{"bad configuration", mptcp.Dialer{Stack: s, Config: &mptcp.Config{MaxSubflows: -1}}, "mptcp", "10.0.0.2:80", nil},
		} {
			c, err := tt.dialer.Dial(tt.network, tt.address)
			require.Nil(p, c, tt.name)
			var oe *net.OpError
			require.ErrorAs(p, err, &oe, tt.name)
			require.Equal(p, "dial", oe.Op)
			if tt.want != nil {
				require.ErrorIs(p, err, tt.want, tt.name)
			}
		}
	})
}

func TestDialFromLocalAddr(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		p.listen()
		from := &net.TCPAddr{IP: clientAddr(0).AsSlice(), Port: 4711}
		d := mptcp.Dialer{Stack: p.client.Stack, LocalAddr: from}
		c, err := d.Dial("mptcp", p.target().String())
		require.NoError(p, err)
		require.Equal(p, from.String(), c.LocalAddr().String())
		_, err = d.Dial("mptcp", p.target().String())
		require.ErrorIs(p, err, syscall.EADDRINUSE)
	})
}

func TestNamesAreResolvedAndTheirAddressesTriedInTurn(t *testing.T) {
	// Package net reads its configuration at the first look-up, and must not
	// do that within a bubble.
	_, err := fakeResolver(t, func(string) []netip.Addr { return nil }).LookupHost(t.Context(), "first.example")
	require.Error(t, err)
	inBubble(t, setup{links: []link.Config{delayed, delayed}}, func(p *pair) {
		// The first address is dead, the second refuses, the third serves.
		p.links[0].SetUp(false)
		lc := mptcp.ListenConfig{Stack: p.server.Stack}
		l, err := lc.Listen(p.Context(), "mptcp", netip.AddrPortFrom(serverAddr(1), 8080).String())
		require.NoError(p, err)
		defer l.Close()

		asked := 0
		d := mptcp.Dialer{
			Stack: p.client.Stack, Timeout: 30 * time.Second,
			Resolver: fakeResolver(t, func(name string) []netip.Addr {
				asked++
				require.Equal(p, "server.example.", name)
				return []netip.Addr{serverAddr(0), netip.MustParseAddr("192.0.2.7"), serverAddr(1)}
			}),
		}
		begin := time.Now()
		c, err := d.Dial("mptcp4", "server.example:8080")
		require.NoError(p, err)
		require.Equal(p, serverAddr(1).String()+":8080", c.RemoteAddr().String())
		require.Equal(p, 1, asked)
		require.WithinDuration(p, begin.Add(10*time.Second), time.Now(), time.Second, "a third of the time for the dead address")

		c, err = d.Dial("mptcp", serverAddr(1).String()+":8080")
		require.NoError(p, err)
		require.Equal(p, 1, asked, "IP addresses are not looked up")
		require.NoError(p, c.Close())

		d.Resolver = fakeResolver(t, func(string) []netip.Addr { return nil })
		_, err = d.Dial("mptcp4", "nowhere.example:8080")
		var de *net.DNSError
		require.ErrorAs(p, err, &de)
	})
}

// fakeResolver asks answer about every name, over DNS.
func fakeResolver(t *testing.T, answer func(name string) []netip.Addr) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				serveDNS(t, theirs, answer)
			}()
			return ours, nil
		},
	}
}

// serveDNS answers queries in the form that DNS has over TCP.
func serveDNS(t *testing.T, c net.Conn, answer func(name string) []netip.Addr) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, int(size[0])<<8|int(size[1]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(query); err != nil {
			t.Error(err)
			return
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		for _, a := range answer(q.Name.String()) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
		if len(m.Answers) == 0 {
			m.RCode = dnsmessage.RCodeNameError
		}
		reply, err := m.Pack()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := c.Write(append([]byte{byte(len(reply) >> 8), byte(len(reply))}, reply...)); err != nil {
			return
		}
	}
}
