package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func fastConfig(t *testing.T) host.ConnConfig {
	cfg := config(t)
	cfg.FastOpen = true
	return cfg
}

// fastLab is a lab whose client has a cookie of the server.
func fastLab(t *testing.T) *lab {
	l := newLab(t, host.Config{})
	l.now = 1 << 45 // hours from the start, lest the slot before be none
	l.listen(fastConfig(t), 0)
	l.visit("first visit")
	return l
}

// visit has the client dial, say something, and go.
func (l *lab) visit(why string) *host.Conn {
	l.t.Helper()
	c := l.dial(fastConfig(l.t), zeroPort, l.listener.Addr())
	l.run()
	if c.Held() {
		require.Equal(l.t, 5, c.Write(l.now, []byte("hello")))
	}
	l.advance(10 * time.Second)
	require.True(l.t, c.Connected(), why)
	s, ok := l.listener.Accept()
	require.True(l.t, ok, why)
	if c.FastOpened().Cookie {
		var b [10]byte
		require.Equal(l.t, 5, s.Read(l.now, b[:]), why)
		require.Equal(l.t, "hello", string(b[:5]))
	}
	for _, e := range []*host.Conn{c, s} {
		e.Abort(l.now)
		e.Close(l.now)
	}
	l.run()
	return c
}

// fastMIB returns the counters of fast open that are not 0, by name.
func (n *node) fastMIB() map[string]uint64 {
	all := n.mib()
	for name := range all {
		if len(name) < 11 || name[:11] != "TCPFastOpen" {
			delete(all, name)
		}
	}
	return all
}

// RFC 7413, Section 3: the first connection asks for a cookie, the second uses
// it. Its SYN waits for data, and the server has it before the third ACK.
func TestFastOpen(t *testing.T) {
	l := fastLab(t)
	c := l.dial(fastConfig(t), zeroPort, service)
	l.run()
	require.True(t, c.Held())
	l.lost = func(seg *wire.Segment) bool { return seg.Src == service }
	c.Write(l.now, []byte("hello"))
	l.run()
	s, ok := l.listener.Accept()
	require.True(t, ok)
	require.Equal(t, 5, s.Readable())
	require.Equal(t, 1, l.server.Counters().FastOpening)
	require.Equal(t, 5, s.Write(l.now, []byte("world")))
	l.lost = nil
	l.advance(2 * time.Second)
	require.Equal(t, 5, c.Readable())
	require.Equal(t, 5, c.Info().SYNData)
	require.Equal(t, 5, s.Info().SYNData)
	require.True(t, c.IsMPTCP() && s.IsMPTCP())
	require.Zero(t, l.server.Counters().FastOpening)
	require.Equal(t, map[string]uint64{"TCPFastOpenActive": 1}, l.client.fastMIB())
	require.Equal(t, map[string]uint64{"TCPFastOpenCookieReqd": 1, "TCPFastOpenPassive": 1}, l.server.fastMIB())
	require.EqualValues(t, 2, l.server.mib()["MPCapableACKRX"])
	require.EqualValues(t, 1, l.server.mib()["MPCurrEstab"])
	// RFC 8684, Appendix B.1: with MP_CAPABLE and timestamps there is room for 6
	// bytes of cookie on the SYN/ACK.
	for _, seg := range l.server.sent {
		if seg.Has&wire.OptFastOpen != 0 {
			require.EqualValues(t, 6, seg.FastOpen.Len)
		}
	}
}

// RFC 7413, Section 4.2.2: the data is limited by the MSS that the server once
// named, less the options.
func TestFastOpenRemembersTheMSS(t *testing.T) {
	l := fastLab(t)
	c := l.dial(fastConfig(t), zeroPort, service)
	c.Write(l.now, make([]byte, 5000))
	l.run()
	// 1460, less MSS 4, SACK-permitted and timestamps 12, window scale 4, cookie 8
	// and MP_CAPABLE 4.
	require.Equal(t, 1460-32, c.Info().SYNData)
}

// Cookies are made for an address, and for a time; an old one is taken, and
// replaced. A bad one is no sign that fast open does not work.
func TestFastOpenCookieExpires(t *testing.T) {
	l := fastLab(t)
	// visit again and return how much was taken from the SYN, and its cookie.
	again := func(why string) (int, wire.FastOpen) {
		t.Helper()
		taken := l.visit(why).Info().SYNData
		var last wire.FastOpen
		for _, seg := range l.client.sent {
			if seg.Flags == wire.SYN && seg.Has&wire.OptFastOpen != 0 {
				last = seg.FastOpen
			}
		}
		return taken, last
	}
	taken, first := again("the same slot")
	require.Equal(t, 5, taken)
	l.now = l.now.Add(key.FastOpenSlot)
	taken, old := again("the slot after")
	require.Equal(t, 5, taken)
	require.Equal(t, first, old)
	taken, second := again("the cookie that came then")
	require.Equal(t, 5, taken)
	require.NotEqual(t, first, second)
	l.now = l.now.Add(2 * key.FastOpenSlot)
	taken, old = again("two slots after")
	require.Zero(t, taken)
	require.Equal(t, second, old)
	require.Equal(t, map[string]uint64{
		"TCPFastOpenCookieReqd": 1, "TCPFastOpenPassive": 3, "TCPFastOpenPassiveFail": 1,
	}, l.server.fastMIB())
	require.Equal(t, map[string]uint64{"TCPFastOpenActive": 3, "TCPFastOpenActiveFail": 1}, l.client.fastMIB())
	taken, third := again("with the new cookie")
	require.Equal(t, 5, taken)
	require.NotEqual(t, second, third)
}

// The cookie of one address does not serve another.
func TestFastOpenCookieIsForOneAddress(t *testing.T) {
	l := fastLab(t)
	c := l.dial(fastConfig(t), netip.AddrPortFrom(clientAddr2, 0), service)
	require.False(t, c.Held(), "the client has none for this pair")
	l.run()
	c = l.dial(fastConfig(t), zeroPort, service)
	c.Write(l.now, []byte("x"))
	var seg wire.Segment
	require.True(t, c.PollSegment(l.now, &seg))
	stolen := synFrom(7)
	stolen.Src = netip.AddrPortFrom(netip.MustParseAddr("10.0.0.77"), 7)
	stolen.Options, stolen.Payload = seg.Options, [][]byte{[]byte("evil")}
	got := l.synAckTo(stolen)
	require.Equal(t, stolen.Seq.Add(1), got.Ack)
	require.EqualValues(t, 1, l.server.fastMIB()["TCPFastOpenPassiveFail"])
}

// "When this flag is off, the server does not perform any TFO-related operations
// and MUST ignore all cookie options." A client that did not ask ignores them,
// too.
func TestFastOpenIsOffByDefault(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	c, _ := l.connect(fastConfig(t), ln)
	require.True(t, c.FastOpened().Asked)
	require.Empty(t, l.server.fastMIB())
	for _, seg := range l.server.sent {
		require.Zero(t, seg.Has&wire.OptFastOpen)
	}
	syn := synFrom(7)
	syn.Has, syn.FastOpen, syn.Payload = wire.OptFastOpen, wire.FastOpen{Len: 8}, [][]byte{[]byte("x")}
	require.Equal(t, syn.Seq.Add(1), l.synAckTo(syn).Ack)
	// "only attempt another cookie request after a certain period"
	for _, c := range []struct {
		after time.Duration
		asks  bool
	}{{59 * time.Second, false}, {2 * time.Second, true}, {2 * time.Second, false}, {119 * time.Second, true}} {
		l.now = l.now.Add(c.after)
		conn, _ := l.connect(fastConfig(t), ln)
		require.Equal(t, c.asks, conn.FastOpened().Asked, "after %v", c.after)
	}
	l = newLab(t, host.Config{})
	c, _ = l.connect(config(t), l.listen(fastConfig(t), 0))
	require.False(t, c.FastOpened().Asked)
}

// What drops SYNs with the option, or with data, is found out once and
// remembered, by port; then it is tried again, less and less often.
func TestFastOpenBlackhole(t *testing.T) {
	for name, match := range map[string]func(*wire.Segment) bool{
		"option": func(seg *wire.Segment) bool { return seg.Has&wire.OptFastOpen != 0 },
		"data":   func(seg *wire.Segment) bool { return seg.Flags.Has(wire.SYN) && seg.PayloadLen() > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			l := fastLab(t)
			l.lost = match
			fast := func() bool {
				t.Helper()
				c := l.visit("SYN without option")
				require.Zero(t, c.Info().SYNData)
				return c.FastOpened().Asked
			}
			require.True(t, fast())
			require.EqualValues(t, 1, l.client.fastMIB()["TCPFastOpenBlackhole"])
			require.EqualValues(t, 1, l.client.fastMIB()["TCPFastOpenActiveFail"])
			require.False(t, fast(), "remembered")
			l.now = l.now.Add(time.Minute)
			require.True(t, fast(), "tried again")
			l.now = l.now.Add(time.Minute)
			require.False(t, fast(), "the period has doubled")
			other, err := l.server.Listen(netip.AddrPortFrom(serverAddr, 81), 0, fastConfig(t))
			require.NoError(t, err)
			c := l.dial(fastConfig(t), zeroPort, other.Addr())
			require.True(t, c.Held(), "another service, with the same cookie")
			c.Abort(l.now)
			l.lost = nil
			l.now = l.now.Add(2 * time.Minute)
			require.Equal(t, 5, l.visit("the box is gone").Info().SYNData)
			require.Equal(t, 5, l.visit("and forgotten").Info().SYNData)
			require.EqualValues(t, 1, l.client.fastMIB()["TCPFastOpenBlackhole"])
		})
	}
}

// "Negative responses include the server not acknowledging the data in the SYN".
func TestFastOpenDataNotTaken(t *testing.T) {
	l := fastLab(t)
	l.lost = func(seg *wire.Segment) bool {
		if seg.Flags.Has(wire.SYN) {
			seg.Payload, seg.Blocks = nil, nil
		}
		return false
	}
	require.Zero(t, l.visit("data taken away").Info().SYNData)
	require.False(t, l.visit("remembered").FastOpened().Asked)
	require.Equal(t, map[string]uint64{"TCPFastOpenActiveFail": 1}, l.client.fastMIB())
}

// A peer that never answers, or falls silent after it has taken the data, may be
// hidden by a box that fast open provokes.
func TestFastOpenSilence(t *testing.T) {
	for name, lost := range map[string]func(*wire.Segment) bool{
		"no answer":             func(*wire.Segment) bool { return true },
		"nothing but handshake": func(seg *wire.Segment) bool { return !seg.Flags.Has(wire.SYN) },
	} {
		t.Run(name, func(t *testing.T) {
			l := fastLab(t)
			l.lost = lost
			c := l.dial(fastConfig(t), zeroPort, service)
			c.Write(l.now, make([]byte, 3000))
			for !c.Closed() {
				l.advance(time.Second)
			}
			require.Equal(t, reason.CloseTimeout, c.Err())
			require.EqualValues(t, 1, l.client.fastMIB()["TCPFastOpenBlackhole"])
			require.False(t, l.dial(fastConfig(t), zeroPort, service).Held())
		})
	}
}

// Who gives up before a SYN without the option is sent must get through next
// time.
func TestFastOpenImpatience(t *testing.T) {
	l := newLab(t, host.Config{})
	l.now = 1 << 45
	l.listen(fastConfig(t), 0)
	l.lost = func(seg *wire.Segment) bool { return seg.Has&wire.OptFastOpen != 0 }
	try := func() *host.Conn {
		c := l.dial(fastConfig(t), zeroPort, service)
		l.advance(500 * time.Millisecond)
		c.Abort(l.now)
		l.run()
		return c
	}
	require.False(t, try().Connected())
	require.True(t, try().Connected())
}

// PendingFastOpenRequests is bounded; those that were reset count on for a while.
// What is beyond becomes an ordinary connection.
func TestFastOpenPendingIsBounded(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(fastConfig(t), 8) // four may be pending
	l.visit("cookie")
	c := l.dial(fastConfig(t), zeroPort, service)
	c.Write(l.now, []byte("x"))
	var first wire.Segment
	require.True(t, c.PollSegment(l.now, &first))
	try := func(port uint16) bool {
		t.Helper()
		syn := synFrom(port)
		syn.Options, syn.Payload = first.Options, [][]byte{[]byte("data")}
		return l.synAckTo(syn).Ack == syn.Seq.Add(5)
	}
	for port := range uint16(4) {
		require.True(t, try(100+port))
	}
	require.Equal(t, 4, l.server.Counters().FastOpening)
	require.False(t, try(200))
	require.EqualValues(t, 1, l.server.fastMIB()["TCPFastOpenListenOverflow"])

	// Three are reset by whoever gets the SYN/ACKs, one is completed.
	for port := range uint16(3) {
		rst := synFrom(100 + port)
		rst.Flags, rst.Seq = wire.RST, rst.Seq.Add(5)
		l.server.deliver(rst)
	}
	l.server.poll()
	require.Equal(t, 1, l.server.Counters().FastOpening)
	require.False(t, try(201))
	done := synFrom(103)
	done.Flags, done.Seq = wire.ACK, done.Seq.Add(5)
	for _, seg := range l.server.sent {
		if seg.Dst.Port() == 103 && seg.Flags.Has(wire.SYN) {
			done.Ack = seg.Seq.Add(1)
		}
	}
	l.server.deliver(done)
	l.server.poll()
	require.Zero(t, l.server.Counters().FastOpening)
	require.True(t, try(202))
	require.False(t, try(203))
	l.now = l.now.Add(time.Minute)
	require.True(t, try(204))
}

// Under a flood of SYNs the listener keeps nothing, data on SYNs included.
func TestFastOpenInAFlood(t *testing.T) {
	l := fastLab(t)
	l.crowd()
	syns := l.server.mib()["SyncookiesSent"]
	c := l.dial(fastConfig(t), zeroPort, service)
	c.Write(l.now, []byte("hello"))
	l.run()
	require.True(t, c.Connected())
	require.Zero(t, c.Info().SYNData)
	require.Equal(t, syns+1, l.server.mib()["SyncookiesSent"])
	s, ok := l.listener.Accept()
	require.True(t, ok)
	require.Equal(t, 5, s.Readable())
	require.Zero(t, l.server.fastMIB()["TCPFastOpenPassive"])
}

// A dial that probes whether MPTCP passes again does not try two things at once.
func TestFastOpenLeavesMPTCPProbesAlone(t *testing.T) {
	l := fastLab(t)
	l.lost = func(seg *wire.Segment) bool {
		return seg.Flags.Has(wire.SYN) && seg.Has&wire.OptMPCapable != 0
	}
	c := l.dial(fastConfig(t), zeroPort, service)
	c.Write(l.now, []byte("x"))
	l.advance(time.Minute + 10*time.Second)
	require.Equal(t, reason.FallbackSYNTimeout, c.Fallback())
	l.lost = nil
	c = l.dial(fastConfig(t), zeroPort, service)
	require.False(t, c.Held())
	l.run()
	require.True(t, c.IsMPTCP())
	require.False(t, c.FastOpened().Asked)
	require.True(t, l.dial(fastConfig(t), zeroPort, service).Held())
}
