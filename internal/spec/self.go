package spec

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// self is this module's host, driven in virtual time.
type self struct {
	setup    Setup
	now      mono.Time
	host     *host.Host
	addrs    []netip.Addr // local ones that exist
	apps     []*selfApp
	listener *host.Listener
	ready    []*selfApp // accepted by the host, not yet by the item
	out      []Packet   // sent, not yet received
	cut      wire.Segment
}

// selfMTU is the IP payload of a packet on the link of a target.
const (
	linkMTU    = 1500
	headerIPv4 = 20
	headerIPv6 = 40
)

// NewSelf makes a host of this module. The same seed and script give the same
// packets.
func NewSelf(setup Setup) Target {
	t := &self{setup: setup, now: mono.Time(time.Second)}
	for i := range max(setup.Addrs, 1) {
		t.addrs = append(t.addrs, t.Addr(i))
	}
	rng := rand.New(rand.NewPCG(8684, 9293))
	cfg := host.Config{
		Rand:     repeated(rng.Uint64, setup.Repeats),
		Path:     t.path,
		Routable: t.routable,
		Locals:   t.locals,
		Alloc:    stream.Heap{},
	}
	for i := 0; i < len(cfg.Secret); i += 8 {
		binary.BigEndian.PutUint64(cfg.Secret[i:], rng.Uint64())
	}
	t.host = host.New(cfg)
	return t
}

// repeated gives each number of a source n times in a row.
func repeated(source func() uint64, n int) func() uint64 {
	if n < 2 {
		return source
	}
	var last uint64
	left := 0
	return func() uint64 {
		if left == 0 {
			last, left = source(), n
		}
		left--
		return last
	}
}

func (t *self) Name() string          { return "self" }
func (t *self) Virtual() bool         { return true }
func (t *self) Now() mono.Time        { return t.now }
func (t *self) Addr(i int) netip.Addr { return targetAddr(t.setup.IPv6, i) }
func (t *self) Peer(i int) netip.Addr { return peerAddr(t.setup.IPv6, i) }
func (t *self) Close()                {}

// targetAddr and peerAddr number the addresses of the network between target
// and peer, which is one link.
func targetAddr(ipv6 bool, i int) netip.Addr { return linkAddr(ipv6, 0, i) }
func peerAddr(ipv6 bool, i int) netip.Addr   { return linkAddr(ipv6, 1, i) }

func linkAddr(ipv6 bool, end, i int) netip.Addr {
	if ipv6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x09, 13: byte(end), 15: byte(i + 1)})
	}
	return netip.AddrFrom4([4]byte{10, 9, byte(end), byte(i + 1)})
}

func (t *self) path(local, _ netip.Addr) (mtu, segmentMax int) {
	if local.Is4() {
		return linkMTU - headerIPv4, 0
	}
	return linkMTU - headerIPv6, 0
}

func (t *self) routable(local, remote netip.Addr) bool {
	return slices.Contains(t.addrs, local) && local.Is4() == remote.Is4()
}

func (t *self) locals() []pathmgr.Local {
	var all []pathmgr.Local
	for _, a := range t.addrs {
		all = append(all, pathmgr.Local{Addr: a, Link: "link"})
	}
	return all
}

// config returns what connections are made with.
func (t *self) config() host.ConnConfig {
	cfg := sim.DefaultConn()
	cfg.Plain, cfg.Checksum = t.setup.Plain, t.setup.Checksum
	cfg.ReadBuffer = t.setup.ReadBuffer
	cfg.FastOpen = t.setup.FastOpen
	cfg.Limits.Subflows = t.setup.Subflows
	cfg.FastCloseByACK = t.setup.FastCloseByACK
	if !t.setup.Mesh {
		cfg.PathManager = nil
	}
	return cfg
}

// memory is the owner of received payload: the garbage collector is.
type memory struct{}

func (memory) DecRef() {}

func (t *self) Send(p Packet) {
	t.take(p)
	t.pump()
}

// SendAll gives the target packets that arrive at once.
func (t *self) SendAll(all []Packet) {
	for _, p := range all {
		t.take(p)
	}
	t.pump()
}

func (t *self) take(p Packet) {
	src, dst := wire.Ports(p.TCP)
	n := wire.HeaderLen(p.TCP)
	if n < 0 {
		return
	}
	// RFC 9293, Section 3.1: "The sender MUST generate [the checksum] and the
	// receiver MUST check it": below the host, by netstack.
	if wire.TCPChecksum(p.Src, p.Dst, p.TCP[:n], [][]byte{p.TCP[n:]}) != 0 {
		return
	}
	seg := &wire.Segment{}
	if wire.Parse(p.TCP[:n], seg) != reason.DropNone {
		return
	}
	seg.Src, seg.Dst, seg.ECN = netip.AddrPortFrom(p.Src, src), netip.AddrPortFrom(p.Dst, dst), p.ECN
	if len(p.TCP) > n {
		seg.Payload = append(seg.Payload, slices.Clone(p.TCP[n:]))
	}
	seg.Owner = memory{}
	v := t.host.Lookup(t.now, seg)
	switch v.Kind {
	case host.VerdictSegment:
		v.Conn.HandleSegment(t.now, v.ID, seg)
	case host.VerdictAccept:
		t.adopt(v.Conn)
	case host.VerdictJoin:
		t.host.Join(t.now, v.Conn, seg)
	}
}

func (t *self) Recv(until mono.Time) (Packet, bool) {
	for {
		t.pump()
		if len(t.out) > 0 {
			p := t.out[0]
			t.out = t.out[1:]
			return p, true
		}
		if !t.advance(until) {
			return Packet{}, false
		}
	}
}

// advance lets time pass to the next deadline, or to until if that is sooner:
// then it reports false.
func (t *self) advance(until mono.Time) bool {
	next := t.host.Deadline()
	for _, a := range t.apps {
		next = mono.Earliest(next, a.conn.Deadline())
	}
	if !next.Set() || next > until {
		t.now = max(t.now, until)
		return false
	}
	t.now = max(t.now, next)
	t.host.HandleTimeout(t.now)
	for _, a := range t.apps {
		a.conn.HandleTimeout(t.now)
	}
	return true
}

// pump takes everything out of the host and its connections.
func (t *self) pump() {
	for again := true; again; {
		again = t.drain(t.host.PollSegment)
		for _, a := range t.apps {
			again = a.feed() || again
			again = t.drain(a.conn.PollSegment) || again
			for a.conn.HasEvents() {
				again = true
				if l := t.host.Step(t.now, a.conn); l != nil {
					t.accept(l)
				}
			}
		}
	}
}

// drain queues the segments that poll gives.
func (t *self) drain(poll func(mono.Time, *wire.Segment) bool) (any bool) {
	seg := &wire.Segment{}
	for poll(t.now, seg) {
		any = true
		for cutter := wire.Split(seg); cutter.Next(&t.cut); {
			t.out = append(t.out, packetOf(&t.cut, nil, t.now))
		}
		seg.Reset()
	}
	return any
}

func (t *self) adopt(c *host.Conn) *selfApp {
	a := &selfApp{t: t, conn: c}
	c.User = a
	t.apps = append(t.apps, a)
	return a
}

func (t *self) accept(l *host.Listener) {
	for {
		c, ok := l.Accept()
		if !ok {
			return
		}
		t.ready = append(t.ready, c.User.(*selfApp))
	}
}

func (t *self) Listen(port uint16) (err error) {
	t.listener, err = t.host.Listen(netip.AddrPortFrom(netip.Addr{}, port), 0, t.config())
	return err
}

func (t *self) Accept(within time.Duration) (App, error) {
	end := t.now.Add(within)
	for t.pump(); len(t.ready) == 0; t.pump() {
		if !t.advance(end) {
			return nil, ErrTimeout
		}
	}
	a := t.ready[0]
	t.ready = t.ready[1:]
	return a, nil
}

func (t *self) Dial(remote netip.AddrPort) (App, error) {
	c, err := t.host.Dial(t.now, host.DialArgs{
		Local: netip.AddrPortFrom(t.Addr(0), 0), Remote: remote, Conn: t.config(),
	})
	if err != nil {
		return nil, err
	}
	a := t.adopt(c)
	t.pump()
	return a, nil
}

func (t *self) SetAddr(i int, present bool) error {
	addr, tell := t.Addr(i), t.host.AddrDown
	t.addrs = slices.DeleteFunc(t.addrs, func(a netip.Addr) bool { return a == addr })
	if present {
		t.addrs, tell = append(t.addrs, addr), t.host.AddrUp
	}
	for _, a := range t.apps {
		tell(t.now, a.conn, addr)
	}
	t.pump()
	return nil
}

func (t *self) ICMP(quoted Packet, e ICMP) error {
	seg := &wire.Segment{}
	src, dst := wire.Ports(quoted.TCP)
	if wire.Parse(quoted.TCP[:wire.HeaderLen(quoted.TCP)], seg) != reason.DropNone {
		return ErrUnsupported
	}
	c, id, ok := t.host.LookupICMP(netip.AddrPortFrom(quoted.Src, src), netip.AddrPortFrom(quoted.Dst, dst))
	if !ok {
		return nil
	}
	switch e {
	case ICMPTooBig:
		c.HandlePacketTooBig(t.now, id, seg.Seq, icmpMTU-headerIPv4)
	case ICMPNet, ICMPHost:
		c.HandleUnreachable(t.now, id, seg.Seq, false)
	}
	t.pump()
	return nil
}
