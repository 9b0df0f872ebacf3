package mptcp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestCountersByTheNamesOfLinux(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed, delayed}}, func(p *pair) {
		client, server := p.connect()
		p.transfer(client, server, pattern(1<<20))
		settle(time.Second)
		cc, sc := p.client.Counters().MIB, p.server.Counters().MIB
		require.Equal(p, uint64(1), cc["MPCapableSYNTX"])
		require.Equal(p, uint64(1), cc["MPCapableSYNACKRX"])
		require.Equal(p, uint64(1), sc["MPCapableSYNRX"])
		require.Equal(p, uint64(1), sc["MPCapableACKRX"])
		require.Equal(p, cc["MPJoinSynAckRx"], sc["MPJoinAckRx"])
		require.Equal(p, uint64(len(client.Subflows())-1), sc["MPJoinAckRx"])
		require.Contains(p, cc, "MPTCPRetrans", "those that are 0 are there, too")

		info := client.Info()
		require.GreaterOrEqual(p, info.SegmentsSent, uint64(1<<20/60000))
		require.NotZero(p, info.SegmentsReceived)
		require.Zero(p, info.BytesRetransmitted)
	})
}

// TestRetransmissionsOutliveTheirSubflow loses one link in the middle.
func TestRetransmissionsOutliveTheirSubflow(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed, delayed}}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		p.links[0].SetFilter(func(*wire.Segment) bool { return false })
		p.transfer(client, server, pattern(1<<20))
		settle(time.Second) // the other link may have been faster than a timeout
		require.NotZero(p, client.Info().Timeouts)
		require.NotZero(p, p.client.Counters().MIB["MPTCPRetrans"])
		settle(10 * time.Minute)
		require.Equal(p, 1, client.Info().Subflows)
		require.NotZero(p, client.Info().Timeouts)
		require.NotZero(p, client.Info().SegmentsRetransmitted)
	})
}

func TestBlackHoleIsToldByInfo(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		p.links[0].SetFilter(func(seg *wire.Segment) bool {
			return seg.Flags != wire.SYN || seg.Has&wire.OptMPCapable == 0
		})
		l := p.listen()
		defer l.Close()
		for _, why := range []string{"syn with mp_capable unanswered", "destination drops mptcp"} {
			begun := time.Now()
			c := p.dial()
			require.Equal(p, why, c.Info().Fallback)
			require.WithinRange(p, c.Info().FallbackAt, begun, time.Now())
			if why == "destination drops mptcp" {
				require.Less(p, time.Since(begun), 100*time.Millisecond)
			}
		}
		require.Equal(p, uint64(1), p.client.Counters().MIB["Blackhole"])
	})
}
