package bench

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPingPong sends 64 bytes to and fro; an operation is a round trip.
func BenchmarkPingPong(b *testing.B) {
	each(b, links[0].cfg, func(b *testing.B, c contender, r rig) {
		client, server := r.connect(b, c)
		echoed := make(chan error, 1)
		go func() {
			buf := make([]byte, 64)
			for {
				if _, err := io.ReadFull(server, buf); err != nil {
					echoed <- server.Close()
					return
				}
				if _, err := server.Write(buf); err != nil {
					echoed <- err
					return
				}
			}
		}()
		buf := make([]byte, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(client, buf); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, client.Close())
		require.NoError(b, <-echoed)
	})
}
