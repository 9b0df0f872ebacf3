package netstack

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Data on a SYN passes gVisor's IP layer, IPv4 and IPv6, over pipes that deliver
// before they return and over such that take time.
func TestFastOpenOverPipes(t *testing.T) {
	for name, pipes := range map[string][]PipeConfig{"perfect": {{}}, "shaped": twoPaths} {
		for _, server := range []string{serverAddr(0).String(), "fd00:0::2"} {
			t.Run(name+" "+server, func(t *testing.T) {
				inBubble(t, &mptcp.Config{FastOpen: true}, nil, pipes, func(p *pair) {
					l, err := p.server.Listen("mptcp", ":80")
					require.NoError(t, err)
					defer l.Close()
					for i := range 3 {
						c, err := p.client.Dial("mptcp", net.JoinHostPort(server, "80"))
						require.NoError(t, err)
						accepted := make(chan net.Conn)
						go func() {
							a, err := l.Accept()
							if err != nil {
								t.Error(err)
							}
							accepted <- a
						}()
						n, err := c.Write(pattern(1000))
						require.NoError(t, err)
						require.Equal(t, 1000, n)
						a := <-accepted
						transfer(t, a, c, 100_000)
						b := make([]byte, 1000)
						_, err = io.ReadFull(a, b)
						require.NoError(t, err)
						require.Equal(t, pattern(1000), b)
						require.Equal(t, i > 0, c.(*mptcp.Conn).Info().SYNData == 1000)
						require.True(t, a.(*mptcp.Conn).Info().MPTCP)
						transfer(t, c, a, 100_000)
						require.NoError(t, c.Close())
						require.NoError(t, a.Close())
					}
				})
			})
		}
	}
}
