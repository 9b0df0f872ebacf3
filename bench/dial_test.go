package bench

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDial opens connections one after the other; an operation is a dial,
// one byte to the server and back, and a close by both sides.
//
// With two paths the joins of the second run meanwhile.
func BenchmarkDial(b *testing.B) {
	each(b, links[0].cfg, func(b *testing.B, _ contender, r rig) {
		l, err := r.listen()
		require.NoError(b, err)
		served := make(chan error, 1)
		go func() {
			buf := make([]byte, 1)
			for {
				c, err := l.Accept()
				if err != nil {
					served <- nil
					return
				}
				_, err = io.ReadFull(c, buf)
				if err == nil {
					_, err = c.Write(buf)
				}
				c.Close()
				if err != nil {
					served <- err
					return
				}
			}
		}()
		buf := make([]byte, 1)
		b.ReportAllocs()
		for b.Loop() {
			c, err := r.dial()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, l.Close())
		require.NoError(b, <-served)
	})
}
