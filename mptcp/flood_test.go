package mptcp_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// TestDialsSucceedInAFloodOfSYNs has connections begin by SYN cookies.
func TestDialsSucceedInAFloodOfSYNs(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed, delayed}}, func(p *pair) {
		flood := func(from, n int) {
			for i := from; i < from+n; i++ {
				src := netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)})
				syn := wire.Segment{Src: netip.AddrPortFrom(src, 1000), Dst: p.target()}
				syn.Header = wire.Header{Seq: seq.SSN(i), Flags: wire.SYN, Wnd: 65535}
				var b [60]byte
				p.server.Deliver([]mptcp.Packet{{Src: syn.Src, Dst: syn.Dst, Header: b[:wire.Build(&b, &syn)]}})
			}
		}
		l := p.listen()
		defer l.Close()
		flood(0, 5000)
		for i := range 3 {
			client := p.dial()
			flood(5000+i*1000, 1000)
			require.NoError(p, write(client, "hello"))
			server, err := l.AcceptMPTCP()
			require.NoError(p, err)
			p.conns = append(p.conns, server)
			b := make([]byte, 5)
			_, err = server.Read(b)
			require.NoError(p, err)
			require.Equal(p, "hello", string(b))
			require.True(p, server.Info().MPTCP && client.Info().MPTCP)
			p.transfer(client, server, pattern(1<<18))
			settle(time.Second)
			require.Equal(p, 2, client.Info().Subflows)
			require.NoError(p, client.Close())
			require.NoError(p, server.Close())
		}
		counters := p.server.Counters()
		require.Equal(p, uint64(3), counters.MIB["SyncookiesRecv"])
		require.Greater(p, counters.MIB["SyncookiesSent"], uint64(7900))
		require.LessOrEqual(p, counters.HalfOpen, 64)
	})
}

func write(c *mptcp.Conn, s string) error {
	_, err := c.Write([]byte(s))
	return err
}
