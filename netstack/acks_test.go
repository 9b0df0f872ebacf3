package netstack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// What is sent at once is acknowledged at once, though it is cut on its way: the
// several super-segments of a Write have one ACK.
func TestWriteHasOneACK(t *testing.T) {
	const size = 160 << 10
	for name, plain := range map[string]bool{"tcp": true, "mptcp": false} {
		t.Run(name, func(t *testing.T) {
			cfg := &mptcp.Config{Plain: plain, ReadBuffer: 16 * size, WriteBuffer: 16 * size}
			inBubble(t, cfg, nil, []PipeConfig{{Checksum: true}}, func(p *pair) {
				client, server := p.connect("10.0.0.2")
				transfer(p, client, server, 16*size) // a window of more than a Write
				before := p.far[0].Stats().Packets
				for i := range 4 {
					n, err := client.Write(make([]byte, size))
					require.NoError(p, err)
					require.Equal(p, size, n)
					require.EqualValues(p, i+1, p.far[0].Stats().Packets-before)
				}
			})
		})
	}
}
