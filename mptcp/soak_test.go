package mptcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// TestEchoesOverBadLinks: whatever the links do, bytes arrive as they were
// sent, and every connection ends.
func TestEchoesOverBadLinks(t *testing.T) {
	bad := link.Config{
		Rate: 20e6, Delay: 10 * time.Millisecond, Jitter: 2 * time.Millisecond,
		Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Corrupt: 0.01,
	}
	for name, cfg := range map[string]*mptcp.Config{
		"default":       nil,
		"checksums":     {Checksum: true},
		"plain":         {Plain: true},
		"small buffers": {ReadBuffer: 8 << 10, WriteBuffer: 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{client: cfg, server: cfg, links: []link.Config{bad, bad}}, func(p *pair) {
				go echoAll(p.listen())
				const n = 5
				results := make(chan error, n)
				for i := range n {
					go func() { results <- p.echo(pattern(100_000 + i)) }()
				}
				for range n {
					require.NoError(p, <-results)
				}
				settle(5 * time.Minute)
				require.Zero(p, p.client.Counters().Conns)
				require.Zero(p, p.server.Counters().Conns)
			})
		})
	}
}

// echoAll sends back what comes in on each connection.
func echoAll(l net.Listener) {
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
}

// echo has the server send want back.
func (p *pair) echo(want []byte) error {
	c, err := p.client.Dial("mptcp", p.target().String())
	if err != nil {
		return err
	}
	defer c.Close()
	go func() {
		c.Write(want)
		c.(*mptcp.Conn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%d bytes came back, not those that were sent (%d)", len(got), len(want))
	}
	return err
}
