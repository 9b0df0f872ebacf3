package mptcp_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// A large message is there when the path has carried it. Only of one that follows
// another at once, with no question in between, may a little be a millisecond late.
func TestLargeMessagesAreNotHeldUp(t *testing.T) {
	const size = 70_000 // a whole super-segment of these links and some more
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		client, server := p.connect()
		buf := make([]byte, 4*size)
		send := func(from, to *mptcp.Conn, n int) time.Duration {
			began := time.Now()
			got := goResult(func() (int, error) { return io.ReadFull(to, buf[:n]) })
			_, err := from.Write(make([]byte, n))
			require.NoError(p, err)
			require.NoError(p, (<-got).err)
			return time.Since(began)
		}
		for range 40 { // for the window
			send(client, server, 4*size)
		}
		send(server, client, 1)
		const trip = 10 * time.Millisecond
		require.Equal(p, trip, send(client, server, size), "after an answer")
		require.Equal(p, trip, send(client, server, size), "after a pause")
		began := time.Now()
		got := goResult(func() (int, error) { return io.ReadFull(server, make([]byte, 2*size)) })
		for range 2 {
			_, err := client.Write(make([]byte, size))
			require.NoError(p, err)
		}
		require.NoError(p, (<-got).err)
		require.Equal(p, trip+time.Millisecond, time.Since(began), "of a stream")
	})
}
