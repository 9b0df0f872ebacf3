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
// direction, though nothing ever forces them to. Guard: askSilent of package
// mpconn; the retransmission timer alone would take twice as long.
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
			require.Less(p, p.trickle(from, to, 60), time.Second, "the first of them waits for a timeout")
			require.Less(p, p.trickle(from, to, 10), long+short, "one way of the other path")

			p.links[0].SetFilter(nil)
			p.trickle(from, to, 20) // a question each eighth of the outage, and an answer
			require.Less(p, p.trickle(from, to, 20), long, "they take the short path again")
			require.Len(p, live(client), 2)
		})
	}
}

// An idle connection keeps every path of its open, as boxes on the way forget
// what they have not seen for long: each subflow is heard of at least every
// 15 s, for hours, and is there when it is needed.
func TestIdleSubflowsKeepTheirPathsOpen(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		require.Len(p, live(client), 2)
		var silent [2]time.Duration // the longest, on each link
		for i, l := range p.links {
			last := time.Now()
			l.SetFilter(func(*wire.Segment) bool {
				silent[i] = max(silent[i], time.Since(last))
				last = time.Now()
				return true
			})
		}
		settle(3 * time.Hour)
		for i, d := range silent {
			require.Positive(p, d)
			require.LessOrEqual(p, d, 15*time.Second, "link %d", i)
		}
		require.Len(p, live(client), 2)
		require.Len(p, live(server), 2)
		p.transfer(client, server, pattern(1<<20))
		for _, s := range client.Subflows() {
			require.NotZero(p, s.BytesSent, "subflow %d", s.ID)
		}
	})
}
