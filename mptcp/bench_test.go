package mptcp_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/simnet"
	"github.com/gomptcp/gomptcp/mptcp"
)

// BenchmarkTransfer sends 64 KiB at a time over a perfect link in real time.
func BenchmarkTransfer(b *testing.B) {
	for _, bb := range []struct {
		name string
		cfg  *mptcp.Config
		link simnet.LinkConfig
	}{
		{"mptcp/mtu1500", nil, simnet.LinkConfig{}},
		{"mptcp/mtu65535", nil, simnet.LinkConfig{MTU: 65535}},
		{"plain/mtu65535", &mptcp.Config{Plain: true}, simnet.LinkConfig{MTU: 65535}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			net := simnet.New(1)
			defer net.Close()
			client, server := net.Node(bb.cfg), net.Node(bb.cfg)
			net.Join("link", end(client, clientAddr(0)), end(server, serverAddr(0)), bb.link)
			l, err := server.Listen("mptcp", ":80")
			require.NoError(b, err)
			done := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err == nil {
					_, err = io.Copy(io.Discard, c)
					c.Close()
				}
				done <- err
			}()
			c, err := client.Dial("mptcp", "10.0.0.2:80")
			require.NoError(b, err)
			chunk := make([]byte, 64<<10)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := c.Write(chunk)
				require.NoError(b, err)
			}
			require.NoError(b, c.Close())
			require.NoError(b, <-done)
		})
	}
}
