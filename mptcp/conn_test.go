package mptcp_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

func TestConnIsNoSyscallConn(t *testing.T) {
	_, ok := any(&mptcp.Conn{}).(syscall.Conn)
	require.False(t, ok, "libraries would look for a file descriptor")
}

func TestDataArrivesInBothDirections(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		mp, err := client.MultipathTCP()
		require.NoError(p, err)
		require.True(p, mp)
		for _, way := range []struct{ from, to *mptcp.Conn }{{client, server}, {server, client}} {
			want := pattern(300_000)
			sent := goResult(func() (int, error) { return way.from.Write(want) })
			got := make([]byte, len(want))
			_, err := io.ReadFull(way.to, got)
			require.NoError(p, err)
			require.True(p, bytes.Equal(want, got))
			r := <-sent
			require.NoError(p, r.err)
			require.Equal(p, len(want), r.value)
		}
		require.Equal(p, client.LocalAddr(), server.RemoteAddr())
		require.Equal(p, client.RemoteAddr(), server.LocalAddr())
	})
}

func TestReadWaitsForData(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		buf := make([]byte, 10)
		begin := time.Now()
		read := goResult(func() (int, error) { return client.Read(buf) })
		settle(time.Second)
		_, err := server.Write([]byte("hello"))
		require.NoError(p, err)
		r := <-read
		require.NoError(p, r.err)
		require.Equal(p, "hello", string(buf[:r.value]))
		require.Equal(p, time.Second+10*time.Millisecond, time.Since(begin))
	})
}

func TestEmptyReadAndWriteReturnAtOnce(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, _ := p.connect()
		n, err := client.Read(nil)
		require.NoError(p, err)
		require.Zero(p, n)
		n, err = client.Write(nil)
		require.NoError(p, err)
		require.Zero(p, n)
		require.NoError(p, client.Close())
		_, err = client.Read(nil)
		require.ErrorIs(p, err, net.ErrClosed)
	})
}

func TestWriteWaitsForRoom(t *testing.T) {
	small := &mptcp.Config{ReadBuffer: 64 << 10, WriteBuffer: 32 << 10}
	inBubble(t, setup{client: small, server: small}, func(p *pair) {
		client, server := p.connect()
		want := pattern(1 << 20)
		sent := goResult(func() (int, error) { return client.Write(want) })
		settle(time.Second)
		require.Empty(p, sent, "Write returned though nobody reads")
		// What the two buffers cannot hold is still with the caller.
		info := client.Info()
		require.LessOrEqual(p, info.Unsent+info.Unacked, 32<<10)
		require.LessOrEqual(p, server.Info().Readable, 64<<10)

		got := make([]byte, len(want))
		_, err := io.ReadFull(server, got)
		require.NoError(p, err)
		require.True(p, bytes.Equal(want, got))
		require.NoError(p, (<-sent).err)
	})
}

func TestConcurrentWritesDoNotMix(t *testing.T) {
	small := &mptcp.Config{ReadBuffer: 64 << 10, WriteBuffer: 32 << 10}
	inBubble(t, setup{client: small, server: small}, func(p *pair) {
		client, server := p.connect()
		const writers, size = 4, 200_000
		for i := range writers {
			go client.Write(bytes.Repeat([]byte{byte(i)}, size))
		}
		seen := map[byte]bool{}
		block := make([]byte, size)
		for range writers {
			_, err := io.ReadFull(server, block)
			require.NoError(p, err)
			require.Equal(p, size, bytes.Count(block, block[:1]), "a Write was broken up by another")
			seen[block[0]] = true
		}
		require.Len(p, seen, writers)
	})
}

func TestReadDeadline(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		buf := make([]byte, 1)

		require.NoError(p, client.SetReadDeadline(time.Now().Add(time.Second)))
		begin := time.Now()
		_, err := client.Read(buf)
		requireExpired(p.T, err)
		require.Equal(p, time.Second, time.Since(begin))

		// It has passed: calls fail even if there is something to read.
		_, err = server.Write([]byte("x"))
		require.NoError(p, err)
		settle(time.Millisecond)
		_, err = client.Read(buf)
		requireExpired(p.T, err)

		require.NoError(p, client.SetReadDeadline(time.Time{}))
		n, err := client.Read(buf)
		require.NoError(p, err)
		require.Equal(p, "x", string(buf[:n]))
	})
}

func TestDeadlineMovesWhileReadWaits(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, _ := p.connect()
		begin := time.Now()
		require.NoError(p, client.SetReadDeadline(begin.Add(time.Hour)))
		read := goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		settle(time.Second)
		require.NoError(p, client.SetReadDeadline(begin.Add(2*time.Second)))
		settle(500 * time.Millisecond)
		require.NoError(p, client.SetReadDeadline(begin.Add(3*time.Second)))
		requireExpired(p.T, (<-read).err)
		require.Equal(p, 3*time.Second, time.Since(begin))

		require.NoError(p, client.SetReadDeadline(time.Time{}))
		read = goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		settle(time.Hour)
		require.Empty(p, read)
		require.NoError(p, client.SetReadDeadline(time.Unix(1, 0)))
		requireExpired(p.T, (<-read).err)
	})
}

func TestWriteDeadlineKeepsWhatWasWritten(t *testing.T) {
	small := &mptcp.Config{ReadBuffer: 64 << 10, WriteBuffer: 32 << 10}
	inBubble(t, setup{client: small, server: small}, func(p *pair) {
		client, server := p.connect()
		want := pattern(1 << 20)
		require.NoError(p, client.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := client.Write(want)
		requireExpired(p.T, err)
		require.Positive(p, n)
		require.Less(p, n, len(want))

		got := goResult(func() ([]byte, error) { return io.ReadAll(server) })
		require.NoError(p, client.SetWriteDeadline(time.Time{}))
		_, err = client.Write(want[n:])
		require.NoError(p, err)
		require.NoError(p, client.Close())
		r := <-got
		require.NoError(p, r.err)
		require.True(p, bytes.Equal(want, r.value))
	})
}

func requireExpired(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var ne net.Error
	require.ErrorAs(t, err, &ne)
	require.True(t, ne.Timeout())
	var oe *net.OpError
	require.ErrorAs(t, err, &oe)
	require.Equal(t, "mptcp", oe.Net)
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	small := &mptcp.Config{ReadBuffer: 64 << 10, WriteBuffer: 32 << 10}
	inBubble(t, setup{client: small, server: small}, func(p *pair) {
		client, _ := p.connect()
		read := goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		second := goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		write := goResult(func() (int, error) { return client.Write(make([]byte, 1<<20)) })
		synctest.Wait()
		require.NoError(p, client.Close())
		for _, ch := range []<-chan result[int]{read, second, write} {
			require.ErrorIs(p, (<-ch).err, net.ErrClosed)
		}
		for op, err := range map[string]error{
			"close":       client.Close(),
			"deadline":    client.SetDeadline(time.Now()),
			"close write": client.CloseWrite(),
			"close read":  client.CloseRead(),
			"linger":      client.SetLinger(0),
		} {
			require.ErrorIs(p, err, net.ErrClosed, op)
		}
	})
}

func TestCloseDeliversWhatWasWritten(t *testing.T) {
	inBubble(t, setup{client: &mptcp.Config{WriteBuffer: 2 << 20}, links: []link.Config{{Rate: 8e6, Delay: 10 * time.Millisecond}}}, func(p *pair) {
		client, server := p.connect()
		want := pattern(1 << 20)
		_, err := client.Write(want)
		require.NoError(p, err)
		begin := time.Now()
		require.NoError(p, client.Close())
		require.Zero(p, time.Since(begin), "Close must not wait for the peer")
		got, err := io.ReadAll(server)
		require.NoError(p, err)
		require.True(p, bytes.Equal(want, got))
		require.NoError(p, server.Close())
		settle(2 * time.Minute)
		require.Zero(p, p.client.Counters().Conns)
		require.Zero(p, p.server.Counters().Conns)
		require.Zero(p, p.client.Counters().TimeWait)
	})
}

func TestHalfClose(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		echoed := goResult(func() (int64, error) {
			b, err := io.ReadAll(server)
			if err != nil {
				return 0, err
			}
			if _, err := server.Write(b); err != nil {
				return 0, err
			}
			return int64(len(b)), server.CloseWrite()
		})
		_, err := client.Write([]byte("hello"))
		require.NoError(p, err)
		require.NoError(p, client.CloseWrite())
		_, err = client.Write([]byte("more"))
		require.ErrorIs(p, err, syscall.EPIPE)
		got, err := io.ReadAll(client)
		require.NoError(p, err)
		require.Equal(p, "hello", string(got))
		require.NoError(p, (<-echoed).err)
		require.NoError(p, client.Close())
		require.NoError(p, server.Close())
	})
}

func TestCloseReadDropsInput(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		read := goResult(func() (int, error) { return client.Read(make([]byte, 1)) })
		synctest.Wait()
		require.NoError(p, client.CloseRead())
		require.Equal(p, io.EOF, (<-read).err)
		_, err := server.Write(pattern(100_000))
		require.NoError(p, err)
		settle(time.Second)
		_, err = client.Read(make([]byte, 1))
		require.Equal(p, io.EOF, err)
		// Writing goes on.
		_, err = client.Write([]byte("x"))
		require.NoError(p, err)
		_, err = io.ReadFull(server, make([]byte, 1))
		require.NoError(p, err)
	})
}

func TestLingerZeroResets(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		require.NoError(p, client.SetLinger(0))
		_, err := client.Write(pattern(200_000))
		require.NoError(p, err)
		require.NoError(p, client.Close())
		_, err = io.Copy(io.Discard, server)
		requireReset(p.T, err, true)
		_, err = server.Write([]byte("x"))
		requireReset(p.T, err, true)
	})
}

func TestCloseWithUnreadDataResets(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		_, err := server.Write([]byte("not read"))
		require.NoError(p, err)
		settle(time.Second)
		require.NoError(p, client.Close())
		_, err = server.Read(make([]byte, 1))
		requireReset(p.T, err, true)
	})
}

func TestDataAfterCloseResets(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		require.NoError(p, client.Close())
		settle(time.Second)
		_, err := server.Write([]byte("too late"))
		require.NoError(p, err)
		settle(time.Second)
		_, err = server.Write([]byte("x"))
		requireReset(p.T, err, true)
	})
}

func TestBufferedDataIsReadBeforeTheReset(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		_, err := client.Write([]byte("hello"))
		require.NoError(p, err)
		settle(time.Second)
		require.NoError(p, client.SetLinger(0))
		require.NoError(p, client.Close())
		settle(time.Second)
		buf := make([]byte, 10)
		n, err := server.Read(buf)
		require.NoError(p, err)
		require.Equal(p, "hello", string(buf[:n]))
		_, err = server.Read(buf)
		requireReset(p.T, err, true)
	})
}

func requireReset(t *testing.T, err error, remote bool) {
	t.Helper()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	var re *mptcp.ResetError
	require.ErrorAs(t, err, &re)
	require.Equal(t, remote, re.Remote)
}

func TestKeepAliveFindsDeadPeer(t *testing.T) {
	inBubble(t, setup{client: &mptcp.Config{OrphanTimeout: -1}}, func(p *pair) {
		client, _ := p.connect()
		require.NoError(p, client.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: 10 * time.Second, Interval: time.Second, Count: 5,
		}))
		settle(time.Minute) // the peer answers
		p.links[0].SetUp(false)
		begin := time.Now()
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(p, err, syscall.ETIMEDOUT)
		require.WithinDuration(p, begin.Add(15*time.Second), time.Now(), 10*time.Second)
	})
}

func TestWithoutKeepAliveADeadPeerIsNotMissed(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		for _, c := range []*mptcp.Conn{client, server} {
			require.NoError(p, c.SetKeepAlive(false))
		}
		p.links[0].SetUp(false)
		require.NoError(p, client.SetReadDeadline(time.Now().Add(24*time.Hour)))
		_, err := client.Read(make([]byte, 1))
		requireExpired(p.T, err)
	})
}

func TestNagleWaitsForTheAcknowledgment(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		settle(time.Second)
		for _, noDelay := range []bool{true, false} {
			require.NoError(p, client.SetNoDelay(noDelay))
			begin := time.Now()
			for range 2 {
				_, err := client.Write([]byte("x"))
				require.NoError(p, err)
			}
			_, err := io.ReadFull(server, make([]byte, 2))
			require.NoError(p, err)
			if noDelay {
				require.Equal(p, 10*time.Millisecond, time.Since(begin))
			} else {
				require.GreaterOrEqual(p, time.Since(begin), 30*time.Millisecond)
			}
			settle(time.Second)
		}
	})
}
