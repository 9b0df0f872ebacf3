package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

var (
	clientAddr  = netip.MustParseAddr("10.0.0.1")
	clientAddr2 = netip.MustParseAddr("10.0.1.1")
	serverAddr  = netip.MustParseAddr("10.0.0.2")
	serverPort  = uint16(80)
	service     = netip.AddrPortFrom(serverAddr, serverPort)
	zeroPort    = netip.AddrPort{}
)

// lab is two hosts, joined by hand: what one sends the other gets at once, in
// order, unless lost says otherwise.
type lab struct {
	t              *testing.T
	now            mono.Time
	client, server *node
	listener       *host.Listener // of the service
	lost           func(*wire.Segment) bool
}

// node is a host in a lab.
type node struct {
	*host.Host
	lab    *lab
	locals []pathmgr.Local
	rand   func() uint64
	conns  []*host.Conn
	sent   []*wire.Segment // everything it ever sent
}

func newLab(t *testing.T, cfg host.Config) *lab {
	l := &lab{t: t, now: mono.Time(time.Second)}
	l.client = l.node(cfg, 1, clientAddr, clientAddr2)
	l.server = l.node(cfg, 1<<32, serverAddr)
	return l
}

func (l *lab) node(cfg host.Config, seed uint64, addrs ...netip.Addr) *node {
	n := &node{lab: l}
	n.rand = func() uint64 {
		seed += 0x9e3779b97f4a7c15
		return seed
	}
	for _, a := range addrs {
		n.locals = append(n.locals, pathmgr.Local{Addr: a})
	}
	cfg.Rand = func() uint64 { return n.rand() }
	cfg.Path = func(_, _ netip.Addr) (int, int) { return 1480, 0 }
	cfg.Locals = func() []pathmgr.Local { return n.locals }
	cfg.Routable = func(local, remote netip.Addr) bool {
		for _, a := range n.locals {
			if a.Addr == local {
				return local.Is4() == remote.Is4() && remote != unroutable
			}
		}
		return false
	}
	cfg.Alloc = stream.Heap{}
	n.Host = host.New(cfg)
	return n
}

// unroutable is an address nobody can send to.
var unroutable = netip.MustParseAddr("192.0.2.1")

// config is the configuration of a connection without path manager.
func config(t *testing.T) host.ConnConfig {
	t.Helper()
	s, err := scheduler.ByName("minrtt")
	require.NoError(t, err)
	c, err := cc.ByName("reno")
	require.NoError(t, err)
	return host.ConnConfig{Scheduler: s, Congestion: c}
}

// deliver does with a segment what a driver does, and sends what comes of it.
func (n *node) deliver(seg *wire.Segment) host.Verdict {
	now := n.lab.now
	v := n.Lookup(now, seg)
	switch v.Kind {
	case host.VerdictSegment:
		v.Conn.HandleSegment(now, v.ID, seg)
	case host.VerdictAccept:
		n.conns = append(n.conns, v.Conn)
	case host.VerdictJoin:
		n.Join(now, v.Conn, seg)
	}
	return v
}

// poll returns the next segment of the node, after serving events.
func (n *node) poll() *wire.Segment {
	seg := &wire.Segment{}
	for _, c := range n.conns {
		for {
			if c.PollSegment(n.lab.now, seg) {
				n.sent = append(n.sent, seg)
				return seg
			}
			if !c.HasEvents() {
				break
			}
			n.Step(n.lab.now, c)
		}
	}
	seg.Reset()
	if n.PollSegment(n.lab.now, seg) {
		n.sent = append(n.sent, seg)
		return seg
	}
	return nil
}

// run exchanges segments until both hosts are quiet.
func (l *lab) run() {
	l.t.Helper()
	for range 10000 {
		quiet := true
		for _, n := range []*node{l.client, l.server} {
			to := l.server
			if n == l.server {
				to = l.client
			}
			for seg := n.poll(); seg != nil; seg = n.poll() {
				quiet = false
				if l.lost == nil || !l.lost(seg) {
					to.deliver(copyOf(seg))
				}
			}
		}
		if quiet {
			return
		}
	}
	l.t.Fatal("the hosts never fall silent")
}

// advance lets time pass, with every deadline on the way served.
func (l *lab) advance(d time.Duration) {
	l.t.Helper()
	end := l.now.Add(d)
	for range 10000 {
		l.run()
		var next mono.Time
		for _, n := range []*node{l.client, l.server} {
			next = mono.Earliest(next, n.Deadline())
			for _, c := range n.conns {
				next = mono.Earliest(next, c.Deadline())
			}
		}
		if !next.Set() || next > end {
			l.now = end
			return
		}
		l.now = max(l.now, next)
		for _, n := range []*node{l.client, l.server} {
			n.HandleTimeout(l.now)
			for _, c := range n.conns {
				c.HandleTimeout(l.now)
			}
		}
	}
	l.t.Fatal("deadlines never end")
}

// dial opens a connection from the client.
func (l *lab) dial(cfg host.ConnConfig, local, remote netip.AddrPort) *host.Conn {
	l.t.Helper()
	c, err := l.client.Dial(l.now, host.DialArgs{Local: local, Remote: remote, Conn: cfg})
	require.NoError(l.t, err)
	l.client.conns = append(l.client.conns, c)
	return c
}

// connect opens a connection and accepts it.
func (l *lab) connect(cfg host.ConnConfig, ln *host.Listener) (c, s *host.Conn) {
	l.t.Helper()
	c = l.dial(cfg, zeroPort, ln.Addr())
	l.run()
	require.True(l.t, c.Connected())
	s, ok := ln.Accept()
	require.True(l.t, ok, "a connected peer waits for Accept")
	return c, s
}

func (l *lab) listen(cfg host.ConnConfig, backlog int) *host.Listener {
	l.t.Helper()
	ln, err := l.server.Listen(service, backlog, cfg)
	require.NoError(l.t, err)
	l.listener = ln
	return ln
}

// copyOf returns the segment as its receiver gets it: without what only a
// sender knows, through the codec.
func copyOf(seg *wire.Segment) *wire.Segment {
	var b [wire.MaxHeader]byte
	n := wire.Build(&b, seg)
	got := &wire.Segment{Src: seg.Src, Dst: seg.Dst, ECN: seg.ECN}
	if d := wire.Parse(b[:n], got); d != reason.DropNone {
		panic(d.String())
	}
	got.Payload = append(got.Payload, seg.Payload...)
	return got
}

// synFrom is a plain SYN to the service.
func synFrom(port uint16) *wire.Segment {
	return &wire.Segment{
		Src: netip.AddrPortFrom(clientAddr, port), Dst: service,
		Header: wire.Header{Seq: 1000, Flags: wire.SYN, Wnd: 65535},
	}
}
