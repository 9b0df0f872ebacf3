package mptcp_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// trickle sends messages of 500 bytes, one each 100 ms, and returns the longest
// time that one of them took.
func (p *pair) trickle(from, to *mptcp.Conn, messages int) (longest time.Duration) {
	p.Helper()
	for range messages {
		begun := time.Now()
		_, err := from.Write(make([]byte, 500))
		require.NoError(p, err)
		_, err = io.ReadFull(to, make([]byte, 500))
		require.NoError(p, err)
		longest = max(longest, time.Since(begun))
		time.Sleep(100*time.Millisecond - time.Since(begun))
	}
	return longest
}

// A program that sends little, and never all that the paths could carry, keeps
// to the path with the short round trip. When that falls silent without notice
// its messages take the other, and when it is back, they return to it, in either
// direction, though nothing ever forces them to.
func TestTrickleReturnsToTheRestoredPath(t *testing.T) {
	const short, long = 5 * time.Millisecond, 50 * time.Millisecond
	for _, byServer := range []bool{false, true} {
		inBubble(t, setup{links: []link.Config{{Delay: short}, {Delay: long}}}, func(p *pair) {
			client, server := p.connect()
			p.exchange(client, server)
			settle(time.Second)
			require.Len(p, live(client), 2)
			from, to := client, server
			if byServer {
				from, to = to, from
			}
			require.Less(p, p.trickle(from, to, 10), long)

			p.links[0].SetFilter(func(*wire.Segment) bool { return false })
			require.Less(p, p.trickle(from, to, 100), time.Second, "the first of them waits for a timeout")
			require.Less(p, p.trickle(from, to, 10), long+short, "one way of the other path")

			p.links[0].SetFilter(nil)
			p.trickle(from, to, 150)
			require.Less(p, p.trickle(from, to, 20), long, "they take the short path again")
			require.Len(p, live(client), 2)
		})
	}
}
