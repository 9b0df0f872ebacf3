package main

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

var echoAddr = netip.MustParseAddrPort("198.18.0.1:53")

func full(a netip.AddrPort) *tcpip.FullAddress {
	return &tcpip.FullAddress{Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
}

// echo answers every datagram to the origin with itself.
func (b *bed) echo(t *testing.T) {
	t.Helper()
	s, err := gonet.DialUDP(b.far.GVisor(), full(echoAddr), nil, ipv4.ProtocolNumber)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := s.ReadFrom(buf)
			if err != nil {
				return
			}
			s.WriteTo(buf[:n], from)
		}
	}()
}

// Datagrams cross the tunnel one by one, of any size, an empty one too, and come
// back to who sent them.
func TestDatagramsCrossTheTunnel(t *testing.T) {
	b := newBed(t, 4, "198.18.0.0/24:53")
	b.echo(t)
	for i := range 2 {
		c, err := gonet.DialUDP(b.app, nil, full(echoAddr), ipv4.ProtocolNumber)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		buf := make([]byte, 1<<16)
		for _, size := range []int{10, 0, 1, 1200, 1472} {
			want := bytes.Repeat([]byte{byte(size), byte(i)}, size)[:size]
			_, err := c.Write(want)
			require.NoError(t, err)
			n, err := c.Read(buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, buf[:n]), "%d bytes came back of %d", n, size)
		}
	}
}

// Of datagrams that wait the newest are kept, in order.
func TestBacklogKeepsTheNewest(t *testing.T) {
	b := newBacklog()
	const n = 100
	for i := range n {
		b.put(bytes.Repeat([]byte{byte(i)}, 1000))
	}
	kept := backlogBytes / (1000 + datagramCost)
	require.Equal(t, n-kept, b.dropped)
	for i := n - kept; i < n; i++ {
		require.True(t, b.wait())
		require.Equal(t, byte(i), b.take()[0])
	}
	require.Nil(t, b.take())
	for range 10_000 {
		b.put(nil)
	}
	require.LessOrEqual(t, len(b.queue), backlogBytes/datagramCost, "datagrams without a byte are bounded, too")
	b.put(make([]byte, backlogBytes))
	require.Len(t, b.queue, 1, "one is kept however large")
	b.close()
	require.False(t, b.wait())
}

// A destination that is not allowed gets nothing, and what its application sent
// is lost without harm to others.
func TestDatagramsNotAllowed(t *testing.T) {
	b := newBed(t, 4, "198.18.0.0/24:53")
	b.echo(t)
	bad, err := gonet.DialUDP(b.app, nil, full(netip.MustParseAddrPort("198.18.0.1:54")), ipv4.ProtocolNumber)
	require.NoError(t, err)
	defer bad.Close()
	_, err = bad.Write([]byte("x"))
	require.NoError(t, err)
	good, err := gonet.DialUDP(b.app, nil, full(echoAddr), ipv4.ProtocolNumber)
	require.NoError(t, err)
	defer good.Close()
	require.NoError(t, good.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = good.Write([]byte("y"))
	require.NoError(t, err)
	buf := make([]byte, 10)
	n, err := good.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "y", string(buf[:n]))
}
