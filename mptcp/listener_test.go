package mptcp_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

func TestListenerAccepts(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		l := p.listen()
		require.Equal(p, "[::]:80", l.Addr().String())
		accepted := goResult(func() (net.Conn, error) { return l.Accept() })
		settle(time.Second)
		require.Empty(p, accepted)
		c := p.dial()
		r := <-accepted
		require.NoError(p, r.err)
		require.Equal(p, c.LocalAddr().String(), r.value.RemoteAddr().String())
	})
}

func TestEveryWaitingAcceptGetsAConnection(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		l := p.listen()
		const n = 5
		results := make(chan error, n)
		for range n {
			go func() {
				_, err := l.Accept()
				results <- err
			}()
			go p.client.Dial("mptcp", p.target().String())
		}
		for range n {
			require.NoError(p, <-results)
		}
	})
}

func TestListenerClose(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		l := p.listen()
		client := p.dial()
		server, err := l.Accept()
		require.NoError(p, err)
		pending := p.dial()

		accepted := goResult(func() (int, error) {
			for {
				if _, err := l.Accept(); err != nil {
					return 0, err
				}
			}
		})
		_ = pending
		synctest.Wait()
		late := goResult(func() (net.Conn, error) { return l.Accept() })
		synctest.Wait()
		require.NoError(p, l.Close())
		require.ErrorIs(p, (<-accepted).err, net.ErrClosed)
		require.ErrorIs(p, (<-late).err, net.ErrClosed)
		require.ErrorIs(p, l.Close(), net.ErrClosed)
		require.ErrorIs(p, l.SetDeadline(time.Now()), net.ErrClosed)

		_, err = p.client.Dial("mptcp", p.target().String())
		require.ErrorIs(p, err, syscall.ECONNREFUSED)
		// What was accepted lives on.
		_, err = client.Write([]byte("x"))
		require.NoError(p, err)
		_, err = io.ReadFull(server, make([]byte, 1))
		require.NoError(p, err)
	})
}

func TestListenerCloseResetsWhatWasNotAccepted(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		l := p.listen()
		pending := p.dial()
		settle(time.Second)
		require.NoError(p, l.Close())
		_, err := pending.Read(make([]byte, 1))
		requireReset(p.T, err, true)
		settle(time.Minute)
		require.Zero(p, p.server.Counters().Conns)
	})
}

func TestListenerDeadline(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		l := p.listen()
		begin := time.Now()
		require.NoError(p, l.SetDeadline(begin.Add(time.Second)))
		_, err := l.Accept()
		requireExpired(p.T, err)
		require.Equal(p, time.Second, time.Since(begin))
		require.NoError(p, l.SetDeadline(time.Time{}))
		p.dial()
		_, err = l.Accept()
		require.NoError(p, err)
	})
}

func TestBacklogIsBounded(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		l := p.listenWith(&mptcp.ListenConfig{Stack: p.server.Stack, Backlog: 2})
		p.dial()
		p.dial()
		d := mptcp.Dialer{Stack: p.client.Stack, Timeout: 500 * time.Millisecond}
		_, err := d.Dial("mptcp", p.target().String())
		require.ErrorIs(p, err, context.DeadlineExceeded)
		require.NotZero(p, p.server.Counters().Drops["backlog full"])

		// A place that becomes free is taken by a repeated SYN.
		d.Timeout = 5 * time.Second
		dialed := goResult(func() (net.Conn, error) { return d.Dial("mptcp", p.target().String()) })
		settle(500 * time.Millisecond)
		_, err = l.Accept()
		require.NoError(p, err)
		require.NoError(p, (<-dialed).err)
	})
}

func TestListenErrors(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		l := p.listen()
		s := p.server.Stack
		for _, tt := range []struct {
			name             string
			lc               mptcp.ListenConfig
			network, address string
			want             error
		}{
			{"port in use", mptcp.ListenConfig{Stack: s}, "mptcp", ":80", syscall.EADDRINUSE},
			{"no stack", mptcp.ListenConfig{}, "mptcp", ":0", mptcp.ErrNoStack},
			{"unknown network", mptcp.ListenConfig{Stack: s}, "unix", ":0", net.UnknownNetworkError("unix")},
			{"bad configuration", mptcp.ListenConfig{Stack: s, Config: &mptcp.Config{ReadBuffer: 1}}, "mptcp", ":0", nil},
		} {
			_, err := tt.lc.Listen(p.Context(), tt.network, tt.address)
			var oe *net.OpError
			require.ErrorAs(p, err, &oe, tt.name)
			require.Equal(p, "listen", oe.Op)
			if tt.want != nil {
				require.ErrorIs(p, err, tt.want, tt.name)
			}
		}
		require.NoError(p, l.Close())
		chosen, err := p.server.Listen("mptcp4", "0.0.0.0:0")
		require.NoError(p, err)
		require.NotZero(p, chosen.Addr().(*net.TCPAddr).Port)
		p.listen()
	})
}
