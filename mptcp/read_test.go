package mptcp_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// What comes for a Read that waits is written to its buffer; once it has
// returned, nothing is.
func TestBufferIsTheCallersAfterRead(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		require.NoError(p, client.SetReadDeadline(time.Now().Add(time.Second)))
		buf := []byte("untouched")
		_, err := client.Read(buf)
		require.ErrorIs(p, err, os.ErrDeadlineExceeded)
		_, err = server.Write([]byte("something"))
		require.NoError(p, err)
		settle(time.Second)
		require.Equal(p, "untouched", string(buf))

		require.NoError(p, client.SetReadDeadline(time.Time{}))
		short := make([]byte, 4)
		n, err := client.Read(short)
		require.NoError(p, err)
		require.Equal(p, "some", string(short[:n]))
		rest := make([]byte, 100)
		n, err = client.Read(rest)
		require.NoError(p, err)
		require.Equal(p, "thing", string(rest[:n]))

		read := goResult(func() (int, error) { return client.Read(short) })
		settle(time.Second)
		_, err = server.Write([]byte("anything"))
		require.NoError(p, err)
		r := <-read
		require.NoError(p, r.err)
		require.Equal(p, "anyt", string(short[:r.value]))
		settle(time.Second)
		require.Equal(p, "anyt", string(short))
		n, err = client.Read(rest)
		require.NoError(p, err)
		require.Equal(p, "hing", string(rest[:n]))
	})
}

// Bytes that come in the very instant in which a deadline passes are returned
// or left for the next Read, never lost.
func TestNothingIsLostAtADeadline(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		want := pattern(64_000)
		sent := goResult(func() (int, error) {
			for i := 0; i < len(want); i += 64 {
				if _, err := server.Write(want[i : i+64]); err != nil {
					return i, err
				}
				time.Sleep(time.Millisecond)
			}
			return len(want), server.CloseWrite()
		})
		var got []byte
		buf := make([]byte, 100)
		for err := error(nil); !errors.Is(err, io.EOF); {
			require.NoError(p, client.SetReadDeadline(time.Now().Add(time.Millisecond)))
			var n int
			n, err = client.Read(buf)
			got = append(got, buf[:n]...)
			if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
				require.NoError(p, err)
			}
		}
		require.NoError(p, (<-sent).err)
		require.True(p, bytes.Equal(want, got), "%d bytes", len(got))
	})
}

// A Read that waits is given what has arrived when the connection ends.
func TestReadTakesTheLastBytes(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}, server: &mptcp.Config{Plain: true}}, func(p *pair) {
		client, server := p.connect()
		buf := make([]byte, 100)
		read := goResult(func() (int, error) { return client.Read(buf) })
		settle(time.Second)
		_, err := server.Write([]byte("last"))
		require.NoError(p, err)
		require.NoError(p, server.Close())
		r := <-read
		require.NoError(p, r.err)
		require.Equal(p, "last", string(buf[:r.value]))
		_, err = client.Read(buf)
		require.ErrorIs(p, err, io.EOF)
	})
}
