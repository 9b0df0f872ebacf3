package mptcp_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// TestNettest runs the conformance test for net.Conn in real time.
func TestNettest(t *testing.T) {
	plain := &mptcp.Config{Plain: true}
	short := link.Config{Delay: 200 * time.Microsecond}
	for _, tt := range []struct {
		name     string
		setup    setup
		subflows int
		dying    bool // the first path dies soon
	}{
		{name: "one subflow", setup: setup{}, subflows: 1},
		{name: "one subflow with delay", setup: setup{links: []link.Config{short}}, subflows: 1},
		{name: "two subflows", setup: setup{links: []link.Config{short, short}}, subflows: 2},
		{name: "a path dies", setup: setup{links: []link.Config{short, short}}, subflows: 2, dying: true},
		{name: "plain client", setup: setup{client: plain}, subflows: 1},
		{name: "plain server", setup: setup{server: plain}, subflows: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				p := newPair(t, tt.setup)
				client, server := p.connect()
				if tt.subflows > 1 {
					p.exchange(client, server)
					for end := time.Now().Add(5 * time.Second); len(live(client)) < tt.subflows || len(live(server)) < tt.subflows; {
						if time.Now().After(end) {
							t.Error("second subflow does not come up")
							break
						}
						time.Sleep(time.Millisecond)
					}
				}
				if tt.dying {
					time.AfterFunc(5*time.Millisecond, func() { p.links[0].SetUp(false) })
				}
				return client, server, func() {
					client.Close()
					server.Close()
					p.net.Close()
				}, nil
			})
		})
	}
}
