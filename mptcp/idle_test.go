//go:build !race

package mptcp_test

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// A connection on which nothing happens gives up what it does not need. The bounds
// are a sixth above what was measured, for other builds of Go; gVisor's TCP takes
// about 12,500 bytes for both ends.
func TestIdleConnectionsAreSmall(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   mptcp.Config
		paths int
		most  float64 // bytes for both ends
	}{
		"tcp":                 {mptcp.Config{Plain: true, KeepAlive: -1}, 1, 10_000},
		"mptcp, two subflows": {mptcp.Config{KeepAlive: -1}, 2, 17_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := mptcp.PathInfo{MTU: 1480}
				a, b := &cable{path: path}, &cable{path: path}
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
				var idle []net.Conn
				open := func(n int) float64 {
					for range n {
						from, err := client.Dial("mptcp", netip.AddrPortFrom(serverAddr(0), 80).String())
						require.NoError(t, err)
						to, err := l.Accept()
						require.NoError(t, err)
						say(t, from, to)
						say(t, to, from)
						idle = append(idle, from, to)
					}
					time.Sleep(3 * time.Second)
					synctest.Wait()
					a.forget()
					b.forget()
					return heapInUse()
				}
				const n = 500
				before := open(n)
				each := (open(n) - before) / n
				t.Logf("%.0f bytes", each)
				require.Less(t, each, c.most, "bytes of an idle connection, both ends")
				for _, c := range idle {
					require.Equal(t, c.(*mptcp.Conn).Info().Subflows, len(a.locals))
				}
			})
		})
	}
}

// say sends a message that is read.
func say(t *testing.T, from, to net.Conn) {
	_, err := from.Write([]byte("hello"))
	require.NoError(t, err)
	_, err = io.ReadFull(to, make([]byte, 5))
	require.NoError(t, err)
}

// heapInUse returns the bytes of live heap objects.
func heapInUse() float64 {
	var m runtime.MemStats
	for range 3 { // sync.Pools give up what they hold at the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
