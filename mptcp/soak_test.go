package mptcp_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

func TestSoak(t *testing.T) {
	for _, cfg := range []*mptcp.Config{nil, {Checksum: true}, {Plain: true}, {ReadBuffer: 8192, WriteBuffer: 8192}} {
		shape := link.Config{Rate: 20e6, Delay: 10 * time.Millisecond, Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Corrupt: 0.01, Jitter: 2 * time.Millisecond}
		inBubble(t, setup{client: cfg, server: cfg, links: []link.Config{shape, shape, {Delay: 50 * time.Millisecond, Loss: 0.1}}}, func(p *pair) {
			l := p.listen()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						io.Copy(c, c)
					}()
				}
			}()
			const n = 10
			results := make(chan error, n)
			for i := range n {
				go func() {
					results <- func() error {
						c, err := p.client.Dial("mptcp", p.target().String())
						if err != nil {
							return err
						}
						defer c.Close()
						want := pattern(300_000 + i*10_000)
						go func() {
							c.Write(want)
							c.(*mptcp.Conn).CloseWrite()
						}()
						got, err := io.ReadAll(c)
						if err != nil {
							return err
						}
						if !bytes.Equal(got, want) {
							return errors.New(fmt.Sprint("mismatch ", len(got), len(want)))
						}
						return nil
					}()
				}()
			}
			for range n {
				require.NoError(p, <-results)
			}
			settle(5 * time.Minute)
			require.Zero(p, p.client.Counters().Conns)
			require.Zero(p, p.server.Counters().Conns)
		})
	}
}
