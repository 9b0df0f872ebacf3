//go:build !race

package mptcp_test

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// In steady state a segment costs no allocation, whichever its size.
func TestSegmentsCostNoAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   mptcp.Config
		paths int
		path  mptcp.PathInfo
		write int
	}{
		"tcp":                      {mptcp.Config{Plain: true}, 1, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp":                    {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp, two subflows":      {mptcp.Config{}, 2, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp, super-segments":    {mptcp.Config{}, 2, mptcp.PathInfo{MTU: 1480, SegmentMax: 65000}, 256 << 10},
		"mptcp, small messages":    {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 64},
		"tcp, small messages":      {mptcp.Config{Plain: true}, 1, mptcp.PathInfo{MTU: 1480}, 64},
		"mptcp, medium messages":   {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 700},
		"checksum, messages":       {mptcp.Config{Checksum: true}, 1, mptcp.PathInfo{MTU: 1480}, 64},
		"checksum, bulk":           {mptcp.Config{Checksum: true}, 2, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"checksum, super-segments": {mptcp.Config{Checksum: true}, 2, mptcp.PathInfo{MTU: 1480, SegmentMax: 65000}, 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.ReadBuffer, c.cfg.WriteBuffer = 1<<20, 1<<20
			a, b := &cable{path: c.path}, &cable{path: c.path}
			for i := range c.paths {
				a.locals = append(a.locals, mptcp.LocalAddr{Addr: clientAddr(i), Link: "a"})
				b.locals = append(b.locals, mptcp.LocalAddr{Addr: serverAddr(i), Link: "b"})
			}
			client, server := mptcp.NewStack(a, &c.cfg), mptcp.NewStack(b, &c.cfg)
			a.peer, b.peer = server, client
			defer server.Close()
			defer client.Close()
			l, err := server.Listen("mptcp", ":80")
			require.NoError(t, err)
			from, err := client.Dial("mptcp", netip.AddrPortFrom(serverAddr(0), 80).String())
			require.NoError(t, err)
			to, err := l.Accept()
			require.NoError(t, err)
			out, in := make([]byte, c.write), make([]byte, c.write)
			round := func() {
				for _, way := range [][2]io.ReadWriter{{from, to}, {to, from}} {
					_, err := way[0].Write(out)
					if err == nil {
						_, err = io.ReadFull(way[1], in)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			round()
			require.Eventually(t, func() bool { return from.(*mptcp.Conn).Info().Subflows == c.paths }, 5*time.Second, time.Millisecond)
			for range 2000 {
				round()
			}
			// The average is rounded down, so that what the garbage collector
			// takes out of pools meanwhile does not count.
			require.Zero(t, testing.AllocsPerRun(200, round), "allocations to send %d bytes each way", c.write)
		})
	}
}
