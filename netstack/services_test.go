package netstack

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/scheduler"
)

// phone runs f in virtual time with a client that has Wi-Fi, 30 Mb/s with a
// round trip of 20 ms, and a cellular link, 10 Mb/s with 60 ms.
func phone(t *testing.T, cfg mptcp.Config, backup bool, f func(p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{T: t}
		var err error
		p.client, err = New(Config{MPTCP: &cfg})
		require.NoError(t, err)
		p.server, err = New(Config{MPTCP: &mptcp.Config{Scheduler: cfg.Scheduler}})
		require.NoError(t, err)
		defer p.close()
		for i, name := range []string{"wifi", "cellular"} {
			shape := []Shape{{Rate: 30e6, Delay: ms(10)}, {Rate: 10e6, Delay: ms(30)}}[i]
			a, b := NewPipe(PipeConfig{AB: shape, BA: shape})
			p.near, p.far = append(p.near, a), append(p.far, b)
			require.NoError(t, p.client.AddLink(LinkConfig{Name: name, Link: a, Addrs: addrs(i, 1), Backup: backup && i == 1}))
			require.NoError(t, p.server.AddLink(LinkConfig{Name: name, Link: b, Addrs: addrs(i, 2)}))
		}
		f(p)
	})
}

// messages sends one of 1000 bytes every 10 ms for a time, and returns how long
// each took.
func messages(p *pair, from, to *mptcp.Conn, d time.Duration) []time.Duration {
	n := int(d / ms(10))
	go func() {
		b := make([]byte, 1000)
		for range n {
			binary.BigEndian.PutUint64(b, uint64(time.Now().UnixNano()))
			from.Write(b)
			time.Sleep(ms(10))
		}
	}()
	var took []time.Duration
	for b := make([]byte, 1000); len(took) < n; {
		_, err := io.ReadFull(to, b)
		require.NoError(p, err)
		took = append(took, time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(b)))))
	}
	return took
}

// ways runs f for messages from the client and for those to it.
func ways(t *testing.T, cfg mptcp.Config, backup bool, f func(p *pair, from, to *mptcp.Conn)) {
	for _, way := range []string{"up", "down"} {
		t.Run(way, func(t *testing.T) {
			phone(t, cfg, backup, func(p *pair) {
				c, s := p.connect("10.0.0.2")
				defer c.Close()
				defer s.Close()
				require.NoError(p, p.awaitSubflows(c, s, 2))
				if way == "up" {
					f(p, c, s)
				} else {
					f(p, s, c)
				}
			})
		})
	}
}

func (p *pair) onCellular() uint64 { return p.near[1].Stats().Bytes + p.far[1].Stats().Bytes }

// XNU's handover leaves Wi-Fi after the first retransmission timeout, and its
// interactive service at a round trip of 600 ms or a timeout of 1.5 s. Here a
// link that is marked is spared until the first timeout of the other's
// subflow, which is 200 ms and some round trips away.
func TestHandoverKeepsOffTheBackup(t *testing.T) {
	ways(t, mptcp.Config{}, true, func(p *pair, from, to *mptcp.Conn) {
		messages(p, from, to, time.Second)
		before := p.onCellular()
		messages(p, from, to, 4*time.Second)
		require.Equal(p, before, p.onCellular(), "Wi-Fi is well")

		p.near[0].SetUp(false) // nobody is told
		took := messages(p, from, to, 2*time.Second)
		require.Less(p, slices.Max(took), 600*time.Millisecond)
		require.Greater(p, p.onCellular(), before+100_000)

		p.near[0].SetUp(true)
		messages(p, from, to, 2*time.Second)
		before = p.onCellular()
		messages(p, from, to, 4*time.Second)
		require.Equal(p, before, p.onCellular(), "Wi-Fi is back")
	})
}

// A client that notices sends its next message on the other link.
func TestHandoverAtOnceWhenTold(t *testing.T) {
	phone(t, mptcp.Config{}, true, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		require.NoError(p, p.awaitSubflows(c, s, 2))
		messages(p, c, s, time.Second)
		require.NoError(p, p.client.SetLinkUp("wifi", false))
		// Half a round trip of 60 ms; more than another half would be a timeout.
		require.Less(p, slices.Max(messages(p, c, s, time.Second)), ms(60))
	})
}

// Each message is as fast as the faster of its two ways, the loss of a link and
// of packets included: the cellular link alone takes 30 ms and what 1000 bytes do.
func TestInteractive(t *testing.T) {
	idle, err := scheduler.ByName("redundant-idle")
	require.NoError(t, err)
	ways(t, mptcp.Config{Scheduler: idle}, false, func(p *pair, from, to *mptcp.Conn) {
		messages(p, from, to, time.Second)
		for _, end := range []*PipeEnd{p.near[0], p.far[0]} {
			require.NoError(p, end.SetShape(Shape{Rate: 30e6, Delay: ms(10), Loss: 0.05}))
		}
		took := messages(p, from, to, 4*time.Second)
		slices.Sort(took)
		require.Less(p, took[len(took)/2], ms(12), "most take Wi-Fi")
		require.Less(p, took[len(took)-1], ms(35))

		p.near[0].SetUp(false)
		require.Less(p, slices.Max(messages(p, from, to, 2*time.Second)), ms(35))
	})
}

// 30 Mb/s of Wi-Fi are not all that there is.
func TestAggregate(t *testing.T) {
	ways(t, mptcp.Config{}, false, func(p *pair, from, to *mptcp.Conn) {
		const n = 16 << 20
		start := time.Now()
		transfer(p, from, to, n)
		require.Greater(p, n*8/time.Since(start).Seconds(), 33e6)
	})
}
