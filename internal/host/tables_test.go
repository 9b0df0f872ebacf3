package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestStraySegmentsAreAnsweredByRST(t *testing.T) {
	const lo, hi = 1000, 5000
	for _, tt := range []struct {
		name    string
		flags   wire.Flags
		payload string
		want    *wire.Header
	}{
		// RFC 9293, Section 3.10.7.1: "If the ACK bit is off, sequence number
		// zero is used, <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>".
		{"syn", wire.SYN, "", &wire.Header{Ack: lo + 1, Flags: wire.RST | wire.ACK}},
		{"syn with data", wire.SYN, "hello", &wire.Header{Ack: lo + 6, Flags: wire.RST | wire.ACK}},
		{"fin without ack", wire.FIN, "", &wire.Header{Ack: lo + 1, Flags: wire.RST | wire.ACK}},
		{"nothing", 0, "", &wire.Header{Ack: lo, Flags: wire.RST | wire.ACK}},
		// "If the ACK bit is on, <SEQ=SEG.ACK><CTL=RST>".
		{"ack", wire.ACK, "", &wire.Header{Seq: hi, Flags: wire.RST}},
		{"data", wire.ACK | wire.PSH, "hello", &wire.Header{Seq: hi, Flags: wire.RST}},
		{"syn/ack", wire.SYN | wire.ACK, "", &wire.Header{Seq: hi, Flags: wire.RST}},
		// "An incoming segment containing a RST is discarded."
		{"rst", wire.RST, "", nil},
		{"rst/ack", wire.RST | wire.ACK, "", nil},
		{"rst/syn", wire.RST | wire.SYN, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, host.Config{})
			seg := synFrom(1000)
			seg.Header = wire.Header{Seq: lo, Ack: hi, Flags: tt.flags, Wnd: 100}
			seg.Payload = [][]byte{[]byte(tt.payload)}
			v := l.server.deliver(seg)
			require.Equal(t, reason.DropNoConn, v.Drop)
			got := l.server.poll()
			if tt.want == nil {
				require.Nil(t, got)
				require.Equal(t, host.VerdictDrop, v.Kind)
				return
			}
			require.Equal(t, host.VerdictReply, v.Kind)
			require.Equal(t, *tt.want, got.Header)
			require.Equal(t, seg.Src, got.Dst)
			require.Equal(t, seg.Dst, got.Src)
			require.Nil(t, l.server.poll())
		})
	}
}

// RFC 9293, Section 3.10.7.2: "Any acknowledgment is bad if it arrives on a
// connection still in the LISTEN state", "An incoming RST should be ignored."
func TestListenerAnswersStraysLikeAClosedPort(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	seg := synFrom(1000)
	seg.Flags, seg.Ack = wire.ACK, 77
	l.server.deliver(seg)
	require.Equal(t, wire.Header{Seq: 77, Flags: wire.RST}, l.server.poll().Header)
	seg.Flags = wire.RST
	l.server.deliver(seg)
	require.Nil(t, l.server.poll())
}

func TestNothingIsSentToAddressesThatCannotBePeers(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	peer := netip.AddrPortFrom(clientAddr, 1000)
	for _, a := range [][2]netip.AddrPort{
		{netip.MustParseAddrPort("224.0.0.1:1000"), service},
		{netip.MustParseAddrPort("0.0.0.0:1000"), service},
		{netip.MustParseAddrPort("255.255.255.255:1000"), service},
		{netip.AddrPortFrom(clientAddr, 0), service},
		{peer, netip.MustParseAddrPort("224.0.0.1:80")},
		{peer, netip.MustParseAddrPort("255.255.255.255:80")},
		{netip.MustParseAddrPort("[ff02::1]:1000"), netip.MustParseAddrPort("[fd00::1]:80")},
		{netip.MustParseAddrPort("[::]:1000"), netip.MustParseAddrPort("[fd00::1]:80")},
	} {
		for _, fl := range []wire.Flags{wire.SYN, wire.ACK} {
			seg := synFrom(1)
			seg.Src, seg.Dst, seg.Flags = a[0], a[1], fl
			require.Equal(t, host.Verdict{Kind: host.VerdictDrop, Drop: reason.DropAddress}, l.server.deliver(seg), "%v", a)
			require.Nil(t, l.server.poll())
		}
	}
}

func TestAnswersToStraysAreBounded(t *testing.T) {
	l := newLab(t, host.Config{})
	for port := range uint16(1000) {
		l.server.deliver(synFrom(port + 1))
	}
	n := 0
	for ; l.server.poll() != nil; n++ {
	}
	require.Equal(t, 256, n)
	require.Equal(t, uint64(1000-256), l.server.Counters().RepliesLost)
	l.server.deliver(synFrom(1))
	require.NotNil(t, l.server.poll())
}

func TestJoinWithUnknownTokenIsReset(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	seg := synFrom(1000)
	seg.Has = wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinSYN, Token: 0xdeadbeef, AddrID: 1, Nonce: 2}
	v := l.server.deliver(copyOf(seg))
	require.Equal(t, reason.DropToken, v.Drop)
	got := copyOf(l.server.poll())
	require.Equal(t, wire.Header{Ack: seg.Seq + 1, Flags: wire.RST | wire.ACK}, got.Header)
	require.Equal(t, wire.OptMPTCPRst, got.Has)
	require.Equal(t, wire.TCPRst{Reason: reason.ResetMPTCP}, got.TCPRst)
	require.Zero(t, l.server.Counters().Conns)
}

// RFC 8684, Section 3.2: "Demultiplexing subflow SYNs MUST be done using the
// token; this is unlike traditional TCP, where the destination port is used".
func TestJoinIsFoundByItsToken(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	c, s := l.connect(config(t), ln)
	l.exchange(c, s)
	l.server.CloseListener(ln)

	id, err := l.client.Open(l.now, c, mpconn.OpenArgs{
		Local:  netip.AddrPortFrom(clientAddr2, 0),
		Remote: netip.AddrPortFrom(serverAddr, 4711),
	})
	require.NoError(t, err)
	l.run()
	subflows := c.AppendSubflows(nil)
	require.Len(t, subflows, 2)
	require.True(t, subflows[id].Up)
	// RFC 8684, Section 3.9.1: "The local port for such SYNs SHOULD also be
	// the same as the port for the first subflow".
	require.Equal(t, netip.AddrPortFrom(clientAddr2, c.LocalAddr().Port()), subflows[id].Local)
	require.Equal(t, uint64(1), l.server.Counters().Joined)
	got, _, ok := l.server.LookupICMP(netip.AddrPortFrom(serverAddr, 4711), subflows[id].Local)
	require.True(t, ok)
	require.Same(t, s, got)

	_, err = l.client.Open(l.now, c, mpconn.OpenArgs{Local: subflows[id].Local, Remote: subflows[id].Remote})
	require.ErrorIs(t, err, host.ErrAddrInUse)
}

// Two copies of a SYN with MP_JOIN that are looked up before either is given to
// the connection begin one subflow. Guard: Join looks for the tuple.
func TestCopiesOfAJoinBeginOneSubflow(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	syn := joinSYN(netip.AddrPortFrom(clientAddr2, 7), uint32(s.Token()))
	for range 2 {
		require.Equal(t, host.VerdictJoin, l.server.Lookup(l.now, copyOf(syn)).Kind)
	}
	first, ok := l.server.Join(l.now, s, copyOf(syn))
	require.True(t, ok)
	for s.HasEvents() {
		l.server.Step(l.now, s)
	}
	second, ok := l.server.Join(l.now, s, copyOf(syn))
	require.False(t, ok)
	require.Equal(t, first, second)
	require.Len(t, s.AppendSubflows(nil), 2)
	require.Equal(t, 1, l.server.Counters().HalfOpenJoins)
}

// A policy does not see an initial address that flag C denies, and tries nothing
// there. Guard: viewOf.
func TestDeniedInitialAddressIsNotTried(t *testing.T) {
	l := newLab(t, host.Config{})
	srv, cfg := config(t), config(t)
	srv.DenyJoinInitial, cfg.PathManager = true, policy("fullmesh")
	c, s := l.connect(cfg, l.listen(srv, 0))
	l.exchange(c, s)
	l.advance(time.Minute)
	require.Zero(t, l.client.Counters().CommandsFailed)
	require.Zero(t, l.client.Counters().JoinsStopped[reason.LimitDenied])
}

func TestJoinBeyondTheLimitIsReset(t *testing.T) {
	l := newLab(t, host.Config{})
	cfg := config(t)
	cfg.Limits.Subflows = 1
	c, s := l.connect(config(t), l.listen(cfg, 0))
	l.exchange(c, s)
	_, err := l.client.Open(l.now, c, mpconn.OpenArgs{
		Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service,
	})
	require.NoError(t, err)
	l.run()
	last := l.server.sent[len(l.server.sent)-1]
	require.True(t, last.Flags.Has(wire.RST))
	require.Equal(t, reason.ResetProhibited, last.TCPRst.Reason)
	require.Len(t, s.AppendSubflows(nil), 1)
	require.Equal(t, reason.CloseRefused, c.AppendSubflows(nil)[0].Close)
}

// RFC 8684, Section 3.1, on flag C: the receiver must not open subflows to the
// sender's address and port; others may be joined.
func TestInitialAddressCanBeDenied(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		l := newLab(t, host.Config{})
		cfg := config(t)
		cfg.DenyJoinInitial = true
		ln := l.listen(cfg, 0)
		if crowded {
			l.crowd()
		}
		c, s := l.connect(config(t), ln)
		l.exchange(c, s)
		_, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
		require.ErrorIs(t, err, host.ErrNotOpened)
		_, err = l.client.Open(l.now, c, mpconn.OpenArgs{
			Local: netip.AddrPortFrom(clientAddr2, 0), Remote: netip.AddrPortFrom(serverAddr, 4711),
		})
		require.NoError(t, err)
	}
}

// exchange sends a little both ways, after which joins are allowed.
func (l *lab) exchange(c, s *host.Conn) {
	l.t.Helper()
	require.Equal(l.t, 5, c.Write(l.now, []byte("hello")))
	l.advance(100 * time.Millisecond)
	require.Equal(l.t, 5, s.Write(l.now, []byte("world")))
	l.advance(100 * time.Millisecond)
	b := make([]byte, 10)
	require.Equal(l.t, "hello", string(b[:s.Read(l.now, b)]))
	require.Equal(l.t, "world", string(b[:c.Read(l.now, b)]))
	require.True(l.t, c.Joinable() && s.Joinable())
}

func TestKeysDoNotCollide(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	// Ports and nonces are drawn from the same source: 7 is any number.
	draws := []uint64{7, 0, 42}
	l.client.rand = func() uint64 {
		if len(draws) == 0 {
			return 7
		}
		d := draws[0]
		draws = draws[1:]
		return d
	}
	a := l.dial(config(t), zeroPort, service)
	require.Equal(t, key.Key{7: 42}.Token(), a.Token(), "a key of zeros is drawn anew")
	draws = []uint64{7, 42, 42, 43}
	b := l.dial(config(t), zeroPort, service)
	require.Equal(t, key.Key{7: 43}.Token(), b.Token())
	require.Equal(t, uint64(2), l.client.Counters().TokenCollisions)

	l.client.rand = func() uint64 { return 42 }
	c := l.dial(config(t), zeroPort, service)
	l.run()
	require.True(t, c.Connected())
	require.False(t, c.IsMPTCP(), "without a unique key the connection is plain TCP")
	require.Equal(t, reason.FallbackCollision, c.Fallback())
	must := config(t)
	must.RequireMPTCP = true
	_, err := l.client.Dial(l.now, host.DialArgs{Remote: service, Conn: must})
	require.ErrorIs(t, err, host.ErrNoKey)
	require.Equal(t, uint64(2), l.client.Counters().MIB[host.MIBMPFallbackTokenInit])
	require.True(t, a.IsMPTCP() && b.IsMPTCP())
}

func TestPorts(t *testing.T) {
	l := newLab(t, host.Config{EphemeralLo: 40000, EphemeralHi: 40002})
	dial := func(local, remote netip.AddrPort) (*host.Conn, error) {
		return l.client.Dial(l.now, host.DialArgs{Local: local, Remote: remote, Conn: config(t)})
	}
	_, err := l.client.Listen(netip.AddrPortFrom(clientAddr, 40001), 0, config(t))
	require.NoError(t, err)

	var ports []uint16
	for range 2 {
		c, err := dial(zeroPort, service)
		require.NoError(t, err)
		ports = append(ports, c.LocalAddr().Port())
	}
	require.ElementsMatch(t, []uint16{40000, 40002}, ports, "a listener keeps its port")

	_, err = dial(zeroPort, service)
	require.ErrorIs(t, err, host.ErrNoPort)
	_, err = dial(netip.AddrPortFrom(clientAddr, 40000), service)
	require.ErrorIs(t, err, host.ErrAddrInUse)

	// Another destination makes another tuple.
	other, err := dial(zeroPort, netip.AddrPortFrom(serverAddr, 81))
	require.NoError(t, err)
	require.Contains(t, ports, other.LocalAddr().Port())
	// So does another source.
	c, err := dial(netip.AddrPortFrom(clientAddr2, 40000), service)
	require.NoError(t, err)
	require.Equal(t, netip.AddrPortFrom(clientAddr2, 40000), c.LocalAddr())
}

func TestDialNeedsARoute(t *testing.T) {
	l := newLab(t, host.Config{})
	for _, remote := range []string{"192.0.2.1:80", "[fd00::1]:80", "224.0.0.1:80", "0.0.0.0:80", "10.0.0.2:0"} {
		_, err := l.client.Dial(l.now, host.DialArgs{Remote: netip.MustParseAddrPort(remote), Conn: config(t)})
		require.ErrorIs(t, err, host.ErrNoRoute, remote)
	}
	_, err := l.client.Dial(l.now, host.DialArgs{
		Local: netip.MustParseAddrPort("10.9.9.9:0"), Remote: service, Conn: config(t),
	})
	require.ErrorIs(t, err, host.ErrNoRoute)
	require.Zero(t, l.client.Counters().Conns)
}

func TestBackupAddressesAreChosenLast(t *testing.T) {
	l := newLab(t, host.Config{})
	l.client.locals[0].Backup = true
	require.Equal(t, clientAddr2, l.dial(config(t), zeroPort, service).LocalAddr().Addr())
	l.client.locals = l.client.locals[:1]
	require.Equal(t, clientAddr, l.dial(config(t), zeroPort, service).LocalAddr().Addr())
}

func TestPathsAreMeasured(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	_, known := l.client.Path(clientAddr, serverAddr)
	require.False(t, known)
	seg := []byte("hello")
	c.Write(l.now, seg)
	out := l.client.poll()
	l.now = l.now.Add(30 * time.Millisecond)
	l.server.deliver(copyOf(out))
	l.run()
	at := l.now
	l.advance(100 * time.Millisecond)
	s.Abort(l.now)
	l.run()
	p, known := l.client.Path(clientAddr, serverAddr)
	require.True(t, known)
	require.Equal(t, at, p.LastUse)
	require.Greater(t, p.SRTT, time.Duration(0))
	require.Equal(t, mono.Time(0), l.client.Deadline())
}

// The table averages the samples of all connections that are measured; one
// that has no new sample has nothing to say.
func TestTableOfPathsAveragesSamples(t *testing.T) {
	l := newLab(t, host.Config{})
	cfg, ln := config(t), l.listen(config(t), 0)
	cfg.Measure = true
	a, b := [2]*host.Conn{}, [2]*host.Conn{}
	a[0], a[1] = l.connect(cfg, ln)
	b[0], b[1] = l.connect(cfg, ln)
	l.advance(2 * time.Second)
	send := func(from, to *node, c *host.Conn, rtt time.Duration) time.Duration {
		c.Write(l.now, []byte("hello"))
		out := from.poll()
		l.now = l.now.Add(rtt)
		to.deliver(copyOf(out))
		l.run()
		p, _ := l.client.Path(clientAddr, serverAddr)
		return p.SRTT
	}
	require.Equal(t, 40*time.Millisecond, send(l.client, l.server, a[0], 40*time.Millisecond), "what is old is forgotten")
	require.Equal(t, 45*time.Millisecond, send(l.client, l.server, b[0], 80*time.Millisecond), "40 + (80 - 40)/8")
	require.Equal(t, 45*time.Millisecond, send(l.server, l.client, a[1], 30*time.Millisecond), "what arrives is no sample")
}
