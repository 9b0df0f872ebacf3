//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// rig is our host on two TUN links in this process's namespace, whose kernel is
// the peer: link i has the network 10.10.i.0/24 or fd00:i::/64, in which the
// kernel is .1 and we are .2.
type rig struct {
	family  family // of the first link
	mesh    bool   // our host reaches all networks over each link
	host    *netstack.Host
	links   []*netstack.TUN
	capture string // pcapng file of all links; "" = none
	pcap    *netstack.PcapWriter
	file    *os.File
}

// family is an IP version.
type family int

const (
	ipv4 family = 4
	ipv6 family = 6
)

func (f family) String() string { return fmt.Sprintf("ipv%d", int(f)) }

// addr is the address of a host on a link in this family.
func (f family) addr(link, host int) netip.Addr {
	if f == ipv4 {
		return netip.AddrFrom4([4]byte{10, 10, byte(link), byte(host)})
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", link, host))
}

func (f family) bits() int {
	if f == ipv4 {
		return 24
	}
	return 64
}

// all is what the networks of all links of a family lie in.
func (f family) all() netip.Prefix {
	if f == ipv4 {
		return netip.MustParsePrefix("10.10.0.0/16")
	}
	return netip.MustParsePrefix("fd00::/16")
}

// Hosts in the networks.
const (
	kernel = 1
	ours   = 2
)

// equal is the shape of both links in most tests.
var equal = []netstack.Shape{{Rate: 50e6, Delay: 5 * time.Millisecond}, {Rate: 50e6, Delay: 5 * time.Millisecond}}

// newRig builds a host with a link for each shape, which both directions have,
// and lets the kernel use all of them.
func newRig(t *testing.T, f family, shapes []netstack.Shape) *rig {
	t.Helper()
	r := emptyRig(t, f)
	for _, shape := range shapes {
		r.addLink(t, linkSpec{family: f, shape: shape})
	}
	return r
}

// emptyRig is a host without links.
func emptyRig(t *testing.T, f family) *rig {
	t.Helper()
	r := &rig{family: f, capture: filepath.Join(t.TempDir(), "capture.pcapng")}
	if dir := os.Getenv(envKeep); dir != "" {
		r.capture = filepath.Join(dir, t.Name()+".pcapng")
		require.NoError(t, os.MkdirAll(filepath.Dir(r.capture), 0o755))
	}
	var err error
	r.file, err = os.Create(r.capture)
	require.NoError(t, err)
	r.pcap = netstack.NewPcapWriter(r.file)
	r.host, err = netstack.New(netstack.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { r.host.Close() })

	ip(t, "link set lo up")
	ip(t, "mptcp limits set subflows 8 add_addr_accepted 8")
	return r
}

// linkSpec says what a link is like.
type linkSpec struct {
	family family
	shape  netstack.Shape
	backup bool                                        // our host is to use it only when nothing else is left
	box    func(stack.LinkEndpoint) stack.LinkEndpoint // in the way of all packets; nil = nothing is
}

// addLink adds the next link.
func (r *rig) addLink(t *testing.T, spec linkSpec) {
	t.Helper()
	i := len(r.links) + 1
	name := fmt.Sprintf("tun%d", i)
	// Without offload the captures show what a wire would.
	tun, err := netstack.OpenTUN(netstack.TUNConfig{Name: name, In: spec.shape, Out: spec.shape, Seed: uint64(i), NoOffload: true})
	require.NoError(t, err)
	r.links = append(r.links, tun)
	addressLink(t, spec.family, i, name)
	link := netstack.NewTap(tun, name, r.pcap)
	if spec.box != nil {
		link = spec.box(link)
	}
	cfg := netstack.LinkConfig{
		Name:   name,
		Link:   link,
		Addrs:  []netip.Prefix{netip.PrefixFrom(spec.family.addr(i, ours), spec.family.bits())},
		Backup: spec.backup,
	}
	if r.mesh {
		cfg.Routes = []netip.Prefix{spec.family.all()}
	}
	require.NoError(t, r.host.AddLink(cfg))
}

// addKernelAddress gives the kernel an address on a device.
func addKernelAddress(t *testing.T, a netip.Addr, bits int, device string) {
	t.Helper()
	address := fmt.Sprintf("address add %v/%d dev %s", a, bits, device)
	if a.Is6() {
		address += " nodad"
	}
	ip(t, address)
}

// addressLink gives the kernel its address on a link and brings it up.
func addressLink(t *testing.T, f family, i int, name string) {
	t.Helper()
	addKernelAddress(t, f.addr(i, kernel), f.bits(), name)
	ip(t, fmt.Sprintf("link set %s up", name))
}

// announce makes the kernel announce its address on each link after the first.
func (r *rig) announce(t *testing.T) {
	t.Helper()
	for i := 2; i <= len(r.links); i++ {
		ip(t, fmt.Sprintf("mptcp endpoint add %v dev tun%d signal", r.family.addr(i, kernel), i))
	}
}

// port is where servers of either side listen.
const port = 8000

func at(a netip.Addr) string { return netip.AddrPortFrom(a, port).String() }

// dial connects our host to the kernel's address on the first link.
func (r *rig) dial(t *testing.T, cfg *mptcp.Config) *mptcp.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d := mptcp.Dialer{Stack: r.host.Stack, Config: cfg}
	c, err := d.DialMPTCP(ctx, netip.AddrPortFrom(r.family.addr(1, kernel), port))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// serve listens on our host, takes one connection after the other and plays
// the server on it. Both the connection and what it received can be had from
// the channels.
func (r *rig) serve(t *testing.T, answer int64) (taken <-chan *mptcp.Conn, done <-chan received) {
	t.Helper()
	taken, done, _ = r.serveWith(t, &mptcp.ListenConfig{}, answer)
	return taken, done
}

// serveWith is serve with a listener of its own kind, which can be closed.
func (r *rig) serveWith(
	t *testing.T, lc *mptcp.ListenConfig, answer int64,
) (taken <-chan *mptcp.Conn, done <-chan received, stop func()) {
	t.Helper()
	lc.Stack = r.host.Stack
	l, err := lc.Listen(context.Background(), "mptcp", fmt.Sprintf(":%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	conns, ends := make(chan *mptcp.Conn, 1), make(chan received, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conn := c.(*mptcp.Conn)
			conns <- conn
			ends <- serve(conn, answer)
		}
	}()
	return conns, ends, func() { l.Close() }
}

// bytesByLink sums what the subflows of a connection sent and received.
func bytesByLink(c *mptcp.Conn) (sent, got map[string]uint64) {
	sent, got = make(map[string]uint64), make(map[string]uint64)
	for _, s := range c.Subflows() {
		sent[s.Link] += s.BytesAcked
		got[s.Link] += s.BytesReceived
	}
	return sent, got
}

// requireShares checks that each link carried at least the given share of the
// bytes in each direction.
func (r *rig) requireShares(t *testing.T, c *mptcp.Conn, least float64) {
	t.Helper()
	sent, got := bytesByLink(c)
	for what, by := range map[string]map[string]uint64{"sent": sent, "received": got} {
		var all uint64
		for _, n := range by {
			all += n
		}
		require.NotZero(t, all, what)
		for _, l := range r.links {
			share := float64(by[l.Name()]) / float64(all)
			t.Logf("%s over %s: %d bytes, %.0f %%", what, l.Name(), by[l.Name()], share*100)
			require.GreaterOrEqual(t, share, least, "share of what was %s over %s", what, l.Name())
		}
	}
}

// logSubflows shows the subflows of a connection.
func logSubflows(t *testing.T, c *mptcp.Conn) {
	t.Helper()
	info := c.Info()
	t.Logf("connection: %s, fallback %q", info.State, info.Fallback)
	for _, s := range c.Subflows() {
		t.Logf("subflow %d on %s: %s %s, %v to %v, sent %d acked %d received %d retransmitted %d reinjected %d, srtt %v, cwnd %d",
			s.ID, s.Link, s.State, s.Close, s.Local, s.Remote, s.BytesSent, s.BytesAcked, s.BytesReceived,
			s.BytesRetransmitted, s.BytesReinjected, s.SRTT, s.Cwnd)
	}
}

// within bounds everything that a connection does.
func within(t *testing.T, c net.Conn, d time.Duration) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(d)))
}
