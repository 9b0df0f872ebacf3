package netstack

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/mptcp"
)

// inRig runs f with two hosts in virtual time that differ in their path
// managers. Pipe i has the prefixes networks[i], with the host number 1 at the
// client and 2 at the server.
func inRig(t *testing.T, client, server mptcp.PathManagerFactory, networks [][]string, f func(p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{T: t}
		var err error
		p.client, err = New(Config{MPTCP: &mptcp.Config{PathManager: client}})
		require.NoError(t, err)
		p.server, err = New(Config{MPTCP: &mptcp.Config{PathManager: server}})
		require.NoError(t, err)
		defer p.close()
		for i, n := range networks {
			a, b := NewPipe(twoPaths[i%2])
			p.near, p.far = append(p.near, a), append(p.far, b)
			require.NoError(t, p.client.AddLink(LinkConfig{Name: pipeName(i), Link: a, Addrs: within(n, 1)}))
			require.NoError(t, p.server.AddLink(LinkConfig{Name: pipeName(i), Link: b, Addrs: within(n, 2)}))
		}
		f(p)
	})
}

func pipeName(i int) string { return []string{"pipe0", "pipe1", "pipe2"}[i] }

// within returns the address of a host in each network.
func within(networks []string, host int) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range networks {
		p := netip.MustParsePrefix(s)
		a := p.Addr()
		for range host {
			a = a.Next()
		}
		all = append(all, netip.PrefixFrom(a, p.Bits()))
	}
	return all
}

func manager(t *testing.T, name string) mptcp.PathManagerFactory {
	t.Helper()
	f, err := mptcp.PathManagerByName(name)
	require.NoError(t, err)
	return f
}

// live returns the established subflows in order of their numbers.
func live(c *mptcp.Conn) []mptcp.SubflowInfo {
	return slices.DeleteFunc(c.Subflows(), func(s mptcp.SubflowInfo) bool { return !s.Up || s.Close != "" })
}

// ends returns the remote addresses of subflows.
func ends(subflows []mptcp.SubflowInfo) []string {
	var all []string
	for _, s := range subflows {
		all = append(all, s.Remote.String())
	}
	return all
}

var (
	oneFamily   = [][]string{{"10.0.0.0/24"}, {"10.0.1.0/24"}}
	twoFamilies = [][]string{{"10.0.0.0/24"}, {"fd00:1::/64"}}
)

// A cable is pulled and plugged in again: within a second the connection has
// a subflow there, from a port that it did not use before.
func TestRepluggedLinkRejoins(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			inRig(t, nil, nil, oneFamily, func(p *pair) {
				host := p.client
				if side == "server" {
					host = p.server
				}
				c, s := p.connect("10.0.0.2")
				defer c.Close()
				defer s.Close()
				transfer(p, c, s, 1<<20)
				require.Len(p, live(c), 2)
				used := c.Subflows()

				require.NoError(p, host.SetLinkUp("pipe1", false))
				transfer(p, c, s, 1<<20)
				// A withdrawn path is probed before it is given up.
				time.Sleep(5 * time.Second)
				require.Len(p, live(c), 1)

				require.NoError(p, host.SetLinkUp("pipe1", true))
				time.Sleep(time.Second)
				now := live(c)
				require.Len(p, now, 2, "%+v", c.Subflows())
				for _, u := range used {
					require.False(p, u.Local == now[1].Local && u.Remote == now[1].Remote, "%v was used before", u.Local)
				}
				before := p.near[1].Stats().Bytes + p.far[1].Stats().Bytes
				transfer(p, c, s, 1<<20)
				transfer(p, s, c, 1<<20)
				require.Greater(p, p.near[1].Stats().Bytes+p.far[1].Stats().Bytes, before+1<<18, "it carries data")
			})
		})
	}
}

// A link flaps many times while data flows: nothing is lost, and at the end
// the connection has both subflows.
func TestLinkFlaps(t *testing.T) {
	inRig(t, nil, nil, oneFamily, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<18)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 20 {
				name := pipeName(i % 2)
				_ = p.client.SetLinkUp(name, false)
				time.Sleep(100 * time.Millisecond)
				_ = p.client.SetLinkUp(name, true)
				time.Sleep(300 * time.Millisecond)
			}
		}()
		transfer(p, c, s, 8<<20)
		transfer(p, s, c, 8<<20)
		<-done
		time.Sleep(time.Second)
		require.Len(p, live(c), 2, "%+v", c.Subflows())
	})
}

// Break before make: every link is gone for three seconds. What comes first is
// a link that the connection never used.
func TestBreakBeforeMake(t *testing.T) {
	for _, name := range mptcp.PathManagerNames() {
		t.Run(name, func(t *testing.T) {
			inRig(t, manager(t, name), nil, oneFamily, func(p *pair) {
				c, s := p.connect("10.0.0.2")
				defer c.Close()
				defer s.Close()
				transfer(p, c, s, 1<<20)
				a, b := NewPipe(twoPaths[0])
				network := []string{"10.0.2.0/24"}
				require.NoError(p, p.server.AddLink(LinkConfig{Name: "pipe2", Link: b, Addrs: within(network, 2)}))
				time.Sleep(time.Second)
				require.NoError(p, p.client.RemoveLink("pipe0"))
				require.NoError(p, p.client.RemoveLink("pipe1"))
				require.Empty(p, live(c))
				time.Sleep(3 * time.Second)
				require.NoError(p, p.client.AddLink(LinkConfig{Name: "pipe2", Link: a, Addrs: within(network, 1)}))
				time.Sleep(time.Second)
				require.NotEmpty(p, live(c), "%+v", c.Subflows())
				transfer(p, c, s, 1<<20)
				transfer(p, s, c, 1<<20)
			})
		})
	}
}

// The client has IPv4 on one link and IPv6 on the other. It learns the
// server's IPv6 address by ADD_ADDR, and the connection that began with IPv4
// uses both.
func TestConnectionMixesIPVersions(t *testing.T) {
	inRig(t, nil, nil, twoFamilies, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 4<<20)
		transfer(p, s, c, 4<<20)
		now := live(c)
		require.Equal(p, []string{"10.0.0.2:80", "[fd00:1::2]:80"}, ends(now))
		require.NotZero(p, now[0].BytesAcked)
		require.NotZero(p, now[1].BytesAcked)

		require.NoError(p, p.client.RemoveLink("pipe0"))
		transfer(p, c, s, 1<<20)
		require.Equal(p, []string{"[fd00:1::2]:80"}, ends(live(c)), "the IPv6 subflow goes on alone")
	})
}

// The other way round: a connection over IPv6 gains IPv4.
func TestIPv6ConnectionGainsIPv4(t *testing.T) {
	inRig(t, nil, nil, twoFamilies, func(p *pair) {
		c, s := p.connect("fd00:1::2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 4<<20)
		require.Equal(p, []string{"[fd00:1::2]:80", "10.0.0.2:80"}, ends(live(c)))
	})
}

func TestNDiffPortsOverOneLink(t *testing.T) {
	inRig(t, pathmgr.NDiffPorts(3), nil, oneFamily, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<20)
		ports := map[uint16]bool{}
		for _, s := range live(c) {
			require.Equal(p, clientAddr(0), s.Local.Addr())
			require.Equal(p, "10.0.0.2:80", s.Remote.String())
			require.NotZero(p, s.BytesAcked)
			ports[s.Local.Port()] = true
		}
		require.Len(p, ports, 3)
		require.Zero(p, p.near[1].Stats().Packets)
	})
}

// With signal on both sides the client opens one subflow to each address that
// the server announced: from the address that it dialed from where that can
// reach it. A full mesh would have five.
func TestSignal(t *testing.T) {
	networks := [][]string{{"10.0.0.0/24", "10.0.5.0/24"}, {"10.0.1.0/24"}}
	inRig(t, manager(t, "signal"), manager(t, "signal"), networks, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<20)
		var pairs []string
		for _, s := range live(c) {
			pairs = append(pairs, s.Local.Addr().String()+" "+s.Remote.String())
		}
		require.Equal(p, []string{"10.0.0.1 10.0.0.2:80", "10.0.0.1 10.0.5.2:80", "10.0.1.1 10.0.1.2:80"}, pairs)
	})
}

// With backup on both sides the second link carries nothing until the first is
// gone, and nothing again when it is back.
func TestBackupStandsBy(t *testing.T) {
	inRig(t, manager(t, "backup"), manager(t, "backup"), oneFamily, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1)
		time.Sleep(time.Second)
		carried := func() uint64 { return p.near[1].Stats().Bytes + p.far[1].Stats().Bytes }
		require.Len(p, live(c), 2)
		require.True(p, live(c)[1].Backup)
		require.True(p, live(s)[1].PeerBackup)

		begin := carried()
		transfer(p, c, s, 1<<20)
		transfer(p, s, c, 1<<20)
		require.Less(p, carried()-begin, uint64(1<<16))

		require.NoError(p, p.client.SetLinkUp("pipe0", false))
		transfer(p, c, s, 1<<20)
		transfer(p, s, c, 1<<20)
		require.Greater(p, carried()-begin, uint64(2<<20))
		require.False(p, live(c)[0].Backup, "promoted")

		require.NoError(p, p.client.SetLinkUp("pipe0", true))
		time.Sleep(time.Second)
		begin = carried()
		transfer(p, c, s, 1<<20)
		transfer(p, s, c, 1<<20)
		require.Less(p, carried()-begin, uint64(1<<16), "%+v %+v", live(c), live(s))
	})
}

// A server that is known outside by other addresses and ports than it knows
// itself announces those. Joins are taken on any port.
func TestAnnouncedAddressDiffersFromBound(t *testing.T) {
	list := []netip.AddrPort{netip.MustParseAddrPort("10.0.1.2:8443")}
	inRig(t, nil, pathmgr.Announcing(manager(t, "fullmesh"), list), oneFamily, func(p *pair) {
		// Only port 8443 of the second address is announced, and no other address.
		inside, _ := NewPipe(PipeConfig{})
		require.NoError(p, p.server.AddLink(LinkConfig{Name: "inside", Link: inside, Addrs: within([]string{"192.168.0.0/24"}, 2)}))
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 4<<20)
		require.Equal(p, []string{"10.0.0.2:80", "10.0.1.2:8443"}, ends(live(c)))
		require.NotZero(p, live(c)[1].BytesAcked)
	})
}

// A path is dead for a while and no host is told. The other carries on
// meanwhile, and the path is used again within as long as it was dead: its
// subflow asks for signs of life with growing waits.
func TestSilentPathRecovers(t *testing.T) {
	const outage = 10 * time.Second
	inRig(t, nil, nil, oneFamily, func(p *pair) {
		c, s := p.connect("10.0.0.2")
		defer c.Close()
		defer s.Close()
		transfer(p, c, s, 1<<20)
		for _, i := range []int{0, 1} {
			p.near[i].SetUp(false)
			start := time.Now()
			transfer(p, c, s, 1<<20)
			transfer(p, s, c, 1<<20)
			require.Less(p, time.Since(start), outage)
			time.Sleep(outage - time.Since(start))
			p.near[i].SetUp(true)
			time.Sleep(outage)
			carried := p.near[i].Stats().Bytes
			transfer(p, c, s, 2<<20)
			require.Greater(p, p.near[i].Stats().Bytes, carried+1<<18, "path %d: %+v", i, c.Subflows())
		}
	})
}
