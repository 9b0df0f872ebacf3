package mptcp_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// gate is a cable that holds back what is sent while it is shut.
type gate struct {
	cable
	shut         chan struct{} // nil = open
	inside, sent atomic.Int64
}

func (g *gate) Send(batch []mptcp.Packet) {
	if g.shut != nil {
		g.inside.Add(1)
		<-g.shut
		g.inside.Add(-1)
	}
	g.sent.Add(int64(len(batch)))
	g.cable.Send(batch)
}

// Timers that go off together do not have a goroutine each, and none is forgotten.
func TestTimersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conns = 300
		path := mptcp.PathInfo{MTU: 1480}
		a, b := &gate{cable: cable{path: path}}, &cable{path: path}
		a.locals = []mptcp.LocalAddr{{Addr: clientAddr(0), Link: "a"}}
		b.locals = []mptcp.LocalAddr{{Addr: serverAddr(0), Link: "b"}}
		client := mptcp.NewStack(a, &mptcp.Config{KeepAlive: time.Minute})
		server := mptcp.NewStack(b, &mptcp.Config{KeepAlive: -1})
		a.peer, b.peer = server, client
		defer server.Close()
		defer client.Close()
		l, err := server.Listen("mptcp", ":80")
		require.NoError(t, err)
		for range conns {
			_, err := client.Dial("mptcp", netip.AddrPortFrom(serverAddr(0), 80).String())
			require.NoError(t, err)
			_, err = l.Accept()
			require.NoError(t, err)
		}
		time.Sleep(30 * time.Second)
		before := a.sent.Load()
		a.shut = make(chan struct{})
		time.Sleep(40 * time.Second) // until after the probes of the keepalive
		synctest.Wait()
		require.EqualValues(t, 64, a.inside.Load())
		close(a.shut)
		synctest.Wait()
		require.Zero(t, a.inside.Load())
		require.EqualValues(t, conns, a.sent.Load()-before)
	})
}
