//go:build !race

package mptcp_test

import (
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// A dial, a byte each way and both closes take few allocations of both ends
// together. The bounds are a sixth above what was counted, for other builds of
// Go; gVisor's TCP takes 166.
func TestDialsAllocateLittle(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  mptcp.Config
		most float64
	}{
		"tcp":   {mptcp.Config{Plain: true}, 75},
		"mptcp": {mptcp.Config{}, 91},
	} {
		t.Run(name, func(t *testing.T) {
			path := mptcp.PathInfo{MTU: 1480}
			a := &cable{path: path, locals: []mptcp.LocalAddr{{Addr: clientAddr(0), Link: "a"}}}
			b := &cable{path: path, locals: []mptcp.LocalAddr{{Addr: serverAddr(0), Link: "b"}}}
			client, server := mptcp.NewStack(a, &c.cfg), mptcp.NewStack(b, &c.cfg)
			a.peer, b.peer = server, client
			defer server.Close()
			defer client.Close()
			l, err := server.Listen("mptcp", ":80")
			require.NoError(t, err)
			d := mptcp.Dialer{Stack: client}
			to, buf := netip.AddrPortFrom(serverAddr(0), 80), make([]byte, 1)
			dial := func() {
				from, err := d.DialMPTCP(t.Context(), to)
				require.NoError(t, err)
				at, err := l.Accept()
				require.NoError(t, err)
				for _, way := range [][2]io.ReadWriter{{from, at}, {at, from}} {
					_, err := way[0].Write(buf)
					require.NoError(t, err)
					_, err = io.ReadFull(way[1], buf)
					require.NoError(t, err)
				}
				require.NoError(t, from.Close())
				require.NoError(t, at.Close())
			}
			n := testing.AllocsPerRun(500, dial)
			t.Log(n, "allocations")
			require.Less(t, n, c.most)
		})
	}
}
