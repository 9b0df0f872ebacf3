package mptcp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

var (
	_ io.ReaderFrom = (*mptcp.Conn)(nil)
	_ io.WriterTo   = (*mptcp.Conn)(nil)
)

func TestCopyThroughAConnection(t *testing.T) {
	for name, mtu := range map[string]int{"small packets": 1500, "packets worth borrowing": 65535} {
		t.Run(name, func(t *testing.T) {
			shape := link.Config{Rate: 100e6, Delay: 5 * time.Millisecond}
			inBubble(t, setup{links: []link.Config{shape}, mtu: mtu}, copyBothWays)
		})
	}
}

func copyBothWays(p *pair) {
	client, server := p.connect()
	want := pattern(3 << 20)
	echo := goResult(func() (int64, error) {
		defer server.Close()
		return io.Copy(server, server) // WriteTo: from queue to queue
	})
	sent := goResult(func() (int64, error) {
		n, err := client.ReadFrom(bytes.NewReader(want))
		return n, errors.Join(err, client.CloseWrite())
	})
	var got bytes.Buffer
	n, err := client.WriteTo(&got)
	require.NoError(p, err)
	require.EqualValues(p, len(want), n)
	require.True(p, bytes.Equal(want, got.Bytes()))
	for _, ch := range []<-chan result[int64]{echo, sent} {
		r := <-ch
		require.NoError(p, r.err)
		require.EqualValues(p, len(want), r.value)
	}
}

func TestReadFromReturnsTheReadersError(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		oops := errors.New("oops")
		n, err := client.ReadFrom(io.MultiReader(strings.NewReader("abc"), errReader{oops}))
		require.Equal(p, oops, err)
		require.EqualValues(p, 3, n)
		_, err = io.ReadFull(server, make([]byte, 3))
		require.NoError(p, err)

		require.NoError(p, client.CloseWrite())
		_, err = client.ReadFrom(strings.NewReader("abc"))
		var oe *net.OpError
		require.ErrorAs(p, err, &oe)
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestWriteToReturnsTheWritersError(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		_, err := server.Write(pattern(100_000))
		require.NoError(p, err)
		settle(time.Second)
		n, err := client.WriteTo(&limitedWriter{left: 1000})
		require.Equal(p, io.ErrShortWrite, err)
		require.EqualValues(p, 1000, n)
		_, err = server.Write([]byte("more"))
		require.NoError(p, err)
		n, err = client.WriteTo(&limitedWriter{err: io.EOF})
		require.Equal(p, io.EOF, err, "the writer's io.EOF is no end of the stream")
		require.Zero(p, n)
	})
}

// limitedWriter takes so many bytes and then fails with err.
type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	return n, w.err
}

func TestWriteToObeysTheReadDeadline(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		_, err := server.Write([]byte("abc"))
		require.NoError(p, err)
		require.NoError(p, client.SetReadDeadline(time.Now().Add(time.Second)))
		var got bytes.Buffer
		n, err := client.WriteTo(&got)
		requireExpired(p.T, err)
		require.EqualValues(p, 3, n)
		require.Equal(p, "abc", got.String())
	})
}

// TestCloseDuringWriteTo: what the writer is looking at stays what it is.
func TestCloseDuringWriteTo(t *testing.T) {
	inBubble(t, setup{server: &mptcp.Config{WriteBuffer: 2 << 20}, mtu: 65535}, func(p *pair) {
		client, server := p.connect()
		want := pattern(1 << 20)
		_, err := server.Write(want)
		require.NoError(p, err)
		settle(time.Second)
		w := &slowWriter{enter: make(chan struct{}), leave: make(chan struct{})}
		copied := goResult(func() (int64, error) { return client.WriteTo(w) })
		<-w.enter
		require.NoError(p, client.SetLinger(0))
		require.NoError(p, client.Close())
		settle(time.Second)
		close(w.leave)
		r := <-copied
		require.ErrorIs(p, r.err, net.ErrClosed)
		require.True(p, bytes.Equal(want[:len(w.got)], w.got))
		require.EqualValues(p, len(w.got), r.value)
	})
}

// slowWriter reads its input late.
type slowWriter struct {
	enter, leave chan struct{}
	got          []byte
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if w.got == nil {
		close(w.enter)
		<-w.leave
	}
	w.got = append(w.got, p...)
	return len(p), nil
}

func TestHTTP(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		body := pattern(1 << 20)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, err := io.ReadAll(r.Body)
			if err != nil || !bytes.Equal(got, body) {
				http.Error(w, "bad body", http.StatusBadRequest)
				return
			}
			w.Write(body)
		})}
		go server.Serve(p.listen())
		defer server.Close()
		transport := &http.Transport{DialContext: p.client.DialContext}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		for range 3 {
			resp, err := client.Post("http://10.0.0.2/", "application/octet-stream", bytes.NewReader(body))
			require.NoError(p, err)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.NoError(p, err)
			require.Equal(p, http.StatusOK, resp.StatusCode)
			require.True(p, bytes.Equal(body, got))
		}
		require.EqualValues(p, 1, p.client.Counters().Dialed, "the connection is used again")
	})
}
