package mptcp_test

import (
	"io"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// counted is a cable that counts packets.
type counted struct {
	cable
	packets *atomic.Int64
}

func (c *counted) Send(batch []mptcp.Packet) {
	c.packets.Add(int64(len(batch)))
	c.cable.Send(batch)
}

// Questions and answers cost no packet but those that carry them, and connections
// no more than TCP's least, which is 8: three for the handshake, one each way, FIN,
// FIN and the last ACK. A further subflow has an announcement, its echo, the
// handshake of four and the end of three.
func TestPacketsOfQuestionAndAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   mptcp.Config
		paths int
		most  int64 // packets of a connection for one question
	}{
		"tcp":                 {mptcp.Config{Plain: true}, 1, 8},
		"mptcp":               {mptcp.Config{}, 1, 8},
		"mptcp, two subflows": {mptcp.Config{}, 2, 17},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var packets atomic.Int64
				path := mptcp.PathInfo{MTU: 1480}
				a, b := &counted{cable{path: path}, &packets}, &counted{cable{path: path}, &packets}
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
				echoed := make(chan error, 1)
				go func() {
					_, err := io.Copy(to, to)
					to.Close()
					echoed <- err
				}()
				ask := func() {
					_, err := from.Write([]byte("?"))
					require.NoError(t, err)
					_, err = io.ReadFull(from, make([]byte, 1))
					require.NoError(t, err)
				}
				ask()
				synctest.Wait() // for the further subflow
				first := packets.Load()
				for range 40 {
					ask()
				}
				require.EqualValues(t, 2*40, packets.Load()-first)
				require.Equal(t, c.paths, from.(*mptcp.Conn).Info().Subflows)
				require.NoError(t, from.Close())
				require.NoError(t, <-echoed)
				synctest.Wait()
				require.LessOrEqual(t, packets.Load()-2*40, c.most)
			})
		})
	}
}

// Who waits for more after a message has it acknowledged at once: the peer may
// have held the rest back until then, by Nagle's algorithm.
func TestReaderThatWaitsAcknowledges(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		require.NoError(p, client.SetNoDelay(false))
		began := time.Now()
		got := goResult(func() (int, error) { return io.ReadFull(server, make([]byte, 20)) })
		for range 2 {
			_, err := client.Write(make([]byte, 10))
			require.NoError(p, err)
			synctest.Wait()
		}
		require.NoError(p, (<-got).err)
		require.Zero(p, time.Since(began), "the second half waited for a delayed ACK")
	})
}
