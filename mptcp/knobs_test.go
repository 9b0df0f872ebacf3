package mptcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// ECN, Pacing and FastCloseByACK of the configuration reach the wire.
func TestKnobsReachTheWire(t *testing.T) {
	const ece, cwr, syn, rst = 0x40, 0x80, 0x02, 0x04
	for _, on := range []bool{false, true} {
		var offered, byACK bool
		cfg := &mptcp.Config{ECN: on, Pacing: on, FastCloseByACK: on, Trace: &mptcp.Trace{SegmentSent: func(s mptcp.SegmentInfo) {
			offered = offered || s.Flags&(syn|ece|cwr) == syn|ece|cwr
			byACK = byACK || s.Flags&rst == 0 && strings.Contains(s.String(), "fastclose")
		}}}
		inBubble(t, setup{client: cfg, links: twoLinks[:1]}, func(p *pair) {
			client, server := p.connect()
			p.exchange(client, server)
			require.Equal(p, on, client.Subflows()[0].PacingRate > 0)
			require.NoError(p, client.SetLinger(0))
			require.NoError(p, client.Close())
			settle(time.Second)
			require.Equal(p, on, offered)
			require.Equal(p, on, byACK)
			_, err := server.Read(make([]byte, 1))
			var reset *mptcp.ResetError
			require.ErrorAs(p, err, &reset)
		})
	}
}
