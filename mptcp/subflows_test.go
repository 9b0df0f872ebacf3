package mptcp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/scheduler"
)

// manual is a path manager that leaves everything to the application.
type manual struct{}

func (manual) Handle(_ *mptcp.PathView, _ mptcp.PathEvent, cmds []mptcp.PathCommand) []mptcp.PathCommand {
	return cmds
}

func byHand() *mptcp.Config {
	return &mptcp.Config{PathManager: func() mptcp.PathManager { return manual{} }}
}

var twoLinks = []link.Config{delayed, {Delay: 15 * time.Millisecond}}

// exchange sends bytes both ways, after which both sides have proved that
// they speak MPTCP.
func (p *pair) exchange(client, server *mptcp.Conn) {
	p.Helper()
	for _, way := range [][2]*mptcp.Conn{{client, server}, {server, client}} {
		_, err := way[0].Write([]byte("hello"))
		require.NoError(p, err)
		_, err = io.ReadFull(way[1], make([]byte, 5))
		require.NoError(p, err)
	}
}

// transfer sends want from one end to the other and checks what arrives.
func (p *pair) transfer(from, to *mptcp.Conn, want []byte) {
	p.Helper()
	sent := goResult(func() (int, error) { return from.Write(want) })
	got := make([]byte, len(want))
	_, err := io.ReadFull(to, got)
	require.NoError(p, err)
	require.NoError(p, (<-sent).err)
	require.True(p, bytes.Equal(want, got))
}

func live(c *mptcp.Conn) []mptcp.SubflowInfo {
	var out []mptcp.SubflowInfo
	for _, s := range c.Subflows() {
		if s.Up {
			out = append(out, s)
		}
	}
	return out
}

func TestFullMeshUsesBothPaths(t *testing.T) {
	shapes := []link.Config{{Rate: 40e6, Delay: 10 * time.Millisecond}, {Rate: 40e6, Delay: 15 * time.Millisecond}}
	inBubble(t, setup{links: shapes}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		require.Len(p, live(client), 2)
		require.Equal(p, 2, server.Info().Subflows)
		p.transfer(client, server, pattern(8<<20))
		settle(time.Second)
		for _, s := range live(client) {
			require.Greater(p, s.BytesSent, uint64(1<<20), "subflow %d carries too little", s.ID)
			require.Equal(p, "ESTABLISHED", s.State)
			require.NotEmpty(p, s.Link)
			require.NotZero(p, s.SRTT)
		}
		info := client.Info()
		require.True(p, info.MPTCP)
		require.Empty(p, info.Fallback)
		require.Equal(p, "ESTAB", info.State)
		require.EqualValues(p, 8<<20+5, info.BytesAcked)
		require.EqualValues(p, 8<<20+5, server.Info().BytesReceived)
	})
}

func TestAddSubflow(t *testing.T) {
	inBubble(t, setup{client: byHand(), links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		// Nothing has proved yet that MPTCP works: the call waits for that.
		added := goResult(func() (int, error) {
			return client.AddSubflow(p.Context(), mptcp.SubflowConfig{
				Local:  netip.AddrPortFrom(clientAddr(1), 0),
				Remote: netip.AddrPortFrom(serverAddr(1), 0),
			})
		})
		settle(time.Second)
		require.Empty(p, added)
		p.exchange(client, server)
		r := <-added
		require.NoError(p, r.err)
		require.Equal(p, 1, r.value)
		require.Len(p, live(client), 2)
		require.Equal(p, clientAddr(1), live(client)[1].Local.Addr())
		require.Equal(p, netip.AddrPortFrom(serverAddr(1), serverPort), live(client)[1].Remote)
		require.Equal(p, "link1", live(client)[1].Link)
		settle(time.Second)
		require.Len(p, live(server), 2)

		p.links[1].Unplug()
		settle(time.Second)
		require.Len(p, live(client), 1)
		gone := client.Subflows()[0]
		require.Equal(p, 1, gone.ID)
		require.Equal(p, "link1", gone.Link, "the name outlives the address")
	})
}

func TestAddSubflowErrors(t *testing.T) {
	inBubble(t, setup{client: &mptcp.Config{PathManager: byHand().PathManager, MaxSubflows: 2}, links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		second := mptcp.SubflowConfig{
			Local: netip.AddrPortFrom(clientAddr(1), 0), Remote: netip.AddrPortFrom(serverAddr(1), 0),
		}
		ctx, cancel := context.WithTimeout(p.Context(), time.Second)
		defer cancel()
		_, err := client.AddSubflow(ctx, second)
		require.ErrorIs(p, err, context.DeadlineExceeded, "not proven")

		p.exchange(client, server)
		_, err = client.AddSubflow(p.Context(), mptcp.SubflowConfig{Remote: netip.MustParseAddrPort("192.0.2.1:80")})
		var oe *net.OpError
		require.ErrorAs(p, err, &oe)
		require.Equal(p, "join", oe.Op)
		require.Equal(p, "192.0.2.1:80", oe.Addr.String())

		p.links[1].SetUp(false)
		ctx, cancel = context.WithTimeout(p.Context(), time.Second)
		defer cancel()
		_, err = client.AddSubflow(ctx, second)
		require.ErrorIs(p, err, context.DeadlineExceeded, "dead path")
		settle(time.Second)
		require.Len(p, live(client), 1)

		p.links[1].SetUp(true)
		_, err = client.AddSubflow(p.Context(), second)
		require.NoError(p, err)
		_, err = client.AddSubflow(p.Context(), second)
		require.ErrorIs(p, err, mptcp.ErrLimit)

		waiting := goResult(func() (int, error) { return client.AddSubflow(p.Context(), second) })
		require.ErrorIs(p, (<-waiting).err, mptcp.ErrLimit)
		require.NoError(p, client.Close())
		_, err = client.AddSubflow(p.Context(), second)
		require.ErrorIs(p, err, net.ErrClosed)
	})
}

func TestRemoveSubflow(t *testing.T) {
	inBubble(t, setup{client: byHand(), links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		id, err := client.AddSubflow(p.Context(), mptcp.SubflowConfig{
			Local: netip.AddrPortFrom(clientAddr(1), 0), Remote: netip.AddrPortFrom(serverAddr(1), 0),
		})
		require.NoError(p, err)
		require.ErrorIs(p, client.RemoveSubflow(7), mptcp.ErrNoSubflow)
		// The first one goes; the connection keeps its addresses.
		require.NoError(p, client.RemoveSubflow(0))
		settle(time.Minute)
		require.Len(p, live(client), 1)
		require.Equal(p, id, live(client)[0].ID)
		require.ErrorIs(p, client.RemoveSubflow(id), mptcp.ErrNoSubflow, "the last one stays")
		require.Equal(p, p.target().String(), client.RemoteAddr().String())
		p.transfer(client, server, pattern(100_000))
		p.transfer(server, client, pattern(100_000))

		all := client.Subflows()
		require.Len(p, all, 2, "the one that ended is remembered")
		require.Equal(p, 0, all[0].ID)
		require.NotEmpty(p, all[0].Close)
	})
}

func TestSetBackupTellsThePeer(t *testing.T) {
	inBubble(t, setup{client: byHand(), links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		id, err := client.AddSubflow(p.Context(), mptcp.SubflowConfig{
			Local: netip.AddrPortFrom(clientAddr(1), 0), Remote: netip.AddrPortFrom(serverAddr(1), 0), Backup: true,
		})
		require.NoError(p, err)
		settle(time.Second)
		require.True(p, client.Subflows()[1].Backup)
		require.True(p, server.Subflows()[1].PeerBackup)
		p.transfer(server, client, pattern(1<<20))
		require.Zero(p, server.Subflows()[1].BytesSent, "a backup is not used while another works")

		require.NoError(p, client.SetBackup(id, false))
		require.NoError(p, client.SetBackup(0, true))
		require.ErrorIs(p, client.SetBackup(9, true), mptcp.ErrNoSubflow)
		settle(time.Second)
		require.False(p, server.Subflows()[1].PeerBackup)
		require.True(p, server.Subflows()[0].PeerBackup)
		before := server.Subflows()[0].BytesSent
		p.transfer(server, client, pattern(1<<20))
		require.Equal(p, before, server.Subflows()[0].BytesSent)
	})
}

func TestTransferSurvivesThePathsThatDie(t *testing.T) {
	shape := link.Config{Rate: 8e6, Delay: 10 * time.Millisecond}
	inBubble(t, setup{links: []link.Config{shape, shape}}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		require.Len(p, live(client), 2)
		// The first path dies, comes back, and then the second dies.
		time.AfterFunc(500*time.Millisecond, func() { p.links[0].SetUp(false) })
		time.AfterFunc(2*time.Second, func() { p.links[0].SetUp(true) })
		time.AfterFunc(5*time.Second, func() { p.links[1].SetUp(false) })
		begin := time.Now()
		p.transfer(client, server, pattern(10<<20))
		require.Greater(p, time.Since(begin), 6*time.Second, "it was over before the second path died")
		require.NotZero(p, client.Info().BytesReinjected)
	})
}

func TestConnectionOutlivesItsAddress(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		require.Len(p, live(client), 2)
		p.links[0].Unplug()
		settle(10 * time.Second)
		require.Len(p, live(client), 1)
		p.transfer(client, server, pattern(1<<20))
		p.links[0].Plug()
		settle(10 * time.Second)
		require.Len(p, live(client), 2, "an address that comes back is used again")
		p.transfer(server, client, pattern(1<<20))
	})
}

func TestConnectionWithoutASubflowWaitsForANewPath(t *testing.T) {
	inBubble(t, setup{}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		p.links[0].Unplug()
		settle(5 * time.Second)
		require.Zero(p, client.Info().Subflows)
		written := goResult(func() (int, error) { return client.Write([]byte("rescued")) })
		// A link that joins the same server.
		p.net.Join("rescue", end(p.client, clientAddr(9)), end(p.server, serverAddr(0)), linkOf(delayed))
		buf := make([]byte, 7)
		_, err := io.ReadFull(server, buf)
		require.NoError(p, err)
		require.Equal(p, "rescued", string(buf))
		require.NoError(p, (<-written).err)
	})
}

func TestOrphanTimeout(t *testing.T) {
	cfg := &mptcp.Config{OrphanTimeout: 10 * time.Second, KeepAlive: time.Second}
	inBubble(t, setup{client: cfg, server: cfg}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		p.links[0].Unplug()
		begin := time.Now()
		_, err := client.Read(make([]byte, 1))
		var te *mptcp.TimeoutError
		require.ErrorAs(p, err, &te)
		require.Equal(p, 10*time.Second, time.Since(begin))
	})
}

func TestSetSchedulerTakesEffect(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		picks := 0
		require.NoError(p, client.SetScheduler(func() scheduler.Scheduler {
			return pickLast(func() { picks++ })
		}))
		before := live(client)
		p.transfer(client, server, pattern(100_000))
		after := live(client)
		require.NotZero(p, picks)
		require.Equal(p, before[0].BytesSent, after[0].BytesSent)
		require.Greater(p, after[1].BytesSent, before[1].BytesSent)
		require.NoError(p, client.SetScheduler(nil))
		p.transfer(client, server, pattern(100_000))
	})
}

// The new controllers begin where the old ones were, on all subflows, and the
// bytes go on.
func TestSetCongestionTakesEffect(t *testing.T) {
	inBubble(t, setup{links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		p.transfer(client, server, pattern(100_000))
		before := live(client)
		g := &fixedGroup{}
		require.NoError(p, client.SetCongestion(func() cc.Group { return g }))
		require.Len(p, g.begun, len(before))
		for i, b := range before {
			require.Equal(p, b.Cwnd, int(g.begun[i].InitialWindow))
		}
		p.transfer(client, server, pattern(100_000))
		for _, after := range live(client) {
			require.Equal(p, 5000, after.Cwnd)
		}
		require.NoError(p, client.SetCongestion(nil))
		p.transfer(client, server, pattern(100_000))
	})
}

// fixedGroup gives every subflow a window of 5000 bytes.
type fixedGroup struct{ begun []cc.Params }

func (g *fixedGroup) Add(p cc.Params) cc.Controller {
	g.begun = append(g.begun, p)
	return fixedWindow{}
}

func (*fixedGroup) Remove(cc.Controller) {}

type fixedWindow struct{}

func (fixedWindow) OnAck(*cc.Sample)           {}
func (fixedWindow) OnLoss(cc.Loss, *cc.Sample) {}
func (fixedWindow) Undo()                      {}
func (fixedWindow) State() cc.State            { return cc.State{Cwnd: 5000, Ssthresh: 5000} }

// pickLast sends everything on the last subflow.
type pickLast func()

func (f pickLast) Pick(v *scheduler.View) scheduler.Decision {
	f()
	last := len(v.Subflows) - 1
	if v.Subflows[last].Room == 0 {
		return scheduler.Decision{Wait: true}
	}
	return scheduler.Decision{Send: 1 << last}
}

func TestIPv6AndIPv4InOneConnection(t *testing.T) {
	inBubble(t, setup{links: []link.Config{delayed}}, func(p *pair) {
		p.net.Join("six", end(p.client, netip.MustParseAddr("2001:db8::1")), end(p.server, netip.MustParseAddr("2001:db8::2")), linkOf(delayed))
		l := p.listen()
		c, err := p.client.Dial("mptcp6", "[2001:db8::2]:80")
		require.NoError(p, err)
		client := c.(*mptcp.Conn)
		server, err := l.AcceptMPTCP()
		require.NoError(p, err)
		p.conns = append(p.conns, client, server)
		p.exchange(client, server)
		settle(5 * time.Second)
		families := map[bool]int{}
		for _, s := range live(client) {
			families[s.Remote.Addr().Is6()]++
		}
		require.Equal(p, map[bool]int{true: 1, false: 1}, families)
		p.transfer(client, server, pattern(1<<20))
	})
}
