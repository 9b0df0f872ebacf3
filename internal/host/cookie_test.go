package host_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// crowd fills the half of the backlog that half-open connections have.
func (l *lab) crowd() {
	l.t.Helper()
	for port := uint16(1); l.server.Counters().MIB[host.MIBSyncookiesSent] == 0; port++ {
		l.server.deliver(synFrom(port))
		require.Less(l.t, port, uint16(1000))
	}
	l.lost = func(seg *wire.Segment) bool { return seg.Dst.Port() < 1000 && seg.Dst != service }
	l.run()
}

// capableSYN is a SYN that offers everything.
func capableSYN(port uint16) *wire.Segment {
	syn := synFrom(port)
	syn.Has = wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted | wire.OptTimestamps | wire.OptMPCapable
	syn.MSS, syn.WScale, syn.TSVal = 1460, 9, 77
	syn.Capable = wire.MPCapable{Version: 1, Flags: wire.CapHMACSHA256}
	return syn
}

// synAckTo delivers a SYN and returns the answer.
func (l *lab) synAckTo(syn *wire.Segment) *wire.Segment {
	l.t.Helper()
	l.server.deliver(copyOf(syn))
	got := l.server.poll()
	require.NotNil(l.t, got)
	got = copyOf(got)
	require.Equal(l.t, wire.SYN|wire.ACK, got.Flags)
	require.Equal(l.t, syn.Src, got.Dst)
	return got
}

// thirdACK returns what a peer answers a SYN/ACK with.
func thirdACK(syn, synAck *wire.Segment) *wire.Segment {
	ack := &wire.Segment{Src: syn.Src, Dst: syn.Dst}
	ack.Header = wire.Header{Seq: syn.Seq.Add(1), Ack: synAck.Seq.Add(1), Flags: wire.ACK, Wnd: 1000}
	if synAck.Has&wire.OptTimestamps != 0 {
		ack.Has |= wire.OptTimestamps
		ack.TSVal, ack.TSEcr = syn.TSVal, synAck.TSVal
	}
	if synAck.Has&wire.OptMPCapable != 0 {
		ack.Has |= wire.OptMPCapable
		ack.Capable = wire.MPCapable{
			Version: 1, Flags: wire.CapHMACSHA256, Keys: 2,
			SenderKey: [8]byte{1, 2, 3}, ReceiverKey: synAck.Capable.SenderKey,
		}
	}
	return ack
}

func TestCookieLooksLikeAnyAnswer(t *testing.T) {
	checksum := config(t)
	checksum.Checksum = true
	bare := capableSYN(5000)
	bare.Has = 0
	asks := capableSYN(5000)
	asks.Capable.Flags |= wire.CapChecksum
	for name, tt := range map[string]struct {
		cfg host.ConnConfig
		syn *wire.Segment
	}{
		"everything":           {config(t), capableSYN(5000)},
		"nothing":              {config(t), bare},
		"we want checksums":    {checksum, capableSYN(5000)},
		"they want checksums":  {config(t), asks},
		"listener is plain":    {host.ConnConfig{Plain: true, Scheduler: checksum.Scheduler, Congestion: checksum.Congestion}, capableSYN(5000)},
		"small receive buffer": {host.ConnConfig{ReadBuffer: 8192, Scheduler: checksum.Scheduler, Congestion: checksum.Congestion}, capableSYN(5000)},
	} {
		t.Run(name, func(t *testing.T) {
			quiet, busy := newLab(t, host.Config{}), newLab(t, host.Config{})
			quiet.listen(tt.cfg, 0)
			busy.listen(tt.cfg, 0)
			busy.crowd()
			want, got := quiet.synAckTo(tt.syn), busy.synAckTo(tt.syn)
			require.Equal(t, 64, busy.server.Counters().Conns, "no state was made")
			age := int32(want.TSVal - got.TSVal)
			require.True(t, age >= 0 && age < 64, "%d", age)
			if want.Has&wire.OptMPCapable != 0 {
				require.NotEqual(t, want.Capable.SenderKey, got.Capable.SenderKey)
			}
			got.Seq, got.TSVal, got.Capable.SenderKey = want.Seq, want.TSVal, want.Capable.SenderKey
			require.Equal(t, want, got)
		})
	}
}

func TestCookiesCarryMPTCP(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	l.crowd()
	c, s := l.connect(config(t), ln)
	require.Equal(t, uint64(1), l.server.Counters().MIB[host.MIBSyncookiesRecv])
	require.Equal(t, c.LocalAddr(), s.RemoteAddr())
	l.exchange(c, s)
	require.True(t, c.IsMPTCP() && s.IsMPTCP())
	require.Equal(t, c.Info().Token, s.Info().PeerToken)
	require.Equal(t, s.Info().Token, c.Info().PeerToken)

	s.Close(l.now)
	l.run()
	c.Close(l.now)
	l.advance(time.Second)
	require.Equal(t, reason.CloseDone, c.Err())
	require.Equal(t, reason.CloseDone, s.Err())
	require.Equal(t, 1, l.server.Counters().TimeWait+l.client.Counters().TimeWait)
}

func TestCookiesCarryPlainTCP(t *testing.T) {
	for name, change := range map[string]func(*host.ConnConfig){
		"with all options":   func(*host.ConnConfig) {},
		"without timestamps": func(c *host.ConnConfig) { c.Subflow.NoTimestamps = true },
		"without sack":       func(c *host.ConnConfig) { c.Subflow.NoSACK = true },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, host.Config{})
			ln := l.listen(config(t), 0)
			l.crowd()
			cfg := config(t)
			cfg.Plain = true
			change(&cfg)
			c, s := l.connect(cfg, ln)
			require.Equal(t, reason.FallbackPeerSYN, s.Fallback())
			data := bytes.Repeat([]byte("0123456789"), 20000)
			var got []byte
			b := make([]byte, 1<<16)
			for sent := 0; len(got) < len(data); {
				sent += s.Write(l.now, data[sent:])
				l.advance(50 * time.Millisecond)
				got = append(got, b[:c.Read(l.now, b)]...)
			}
			require.Equal(t, data, got)
		})
	}
}

func TestCookieThatDataBringsBack(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	l.crowd()
	flood := l.lost
	l.lost = func(seg *wire.Segment) bool {
		return flood(seg) || seg.Dst == service && seg.Flags == wire.ACK && seg.PayloadLen() == 0
	}
	c := l.dial(config(t), zeroPort, service)
	l.run()
	require.True(t, c.Connected())
	require.Zero(t, ln.Pending())
	l.lost = flood
	require.Equal(t, 5, c.Write(l.now, []byte("hello")))
	l.run()
	s, ok := ln.Accept()
	require.True(t, ok)
	b := make([]byte, 10)
	require.Equal(t, "hello", string(b[:s.Read(l.now, b)]))
	require.True(t, s.IsMPTCP() && s.Joinable())
}

func TestCookieRemembersMSSAndRoundTrip(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	l.crowd()
	l.now = l.now.Add(time.Minute)
	syn := capableSYN(5000)
	syn.MSS = 700
	syn.Has &^= wire.OptMPCapable
	synAck := l.synAckTo(syn)
	l.now = l.now.Add(200 * time.Millisecond)
	require.Equal(t, host.VerdictAccept, l.server.deliver(thirdACK(syn, synAck)).Kind)
	l.run()
	s, ok := ln.Accept()
	require.True(t, ok)
	tcp := s.AppendSubflows(nil)[0].TCP
	require.InDelta(t, float64(200*time.Millisecond), float64(tcp.SRTT), float64(64*time.Millisecond))
	require.Equal(t, 1000<<9, tcp.PeerWindow)
	s.Write(l.now, make([]byte, 3000))
	seg := l.server.poll()
	// RFC 9293, Section 3.7.1: the MSS counts no options; here 12 bytes of
	// timestamps, and 536 is the largest value below 700 that a cookie holds.
	require.Equal(t, 536-12, seg.PayloadLen())
}

func TestForgedCookiesMakeNothing(t *testing.T) {
	l := newLab(t, host.Config{})
	l.listen(config(t), 0)
	l.crowd()
	syn := capableSYN(5000)
	synAck := l.synAckTo(syn)
	good := thirdACK(syn, synAck)
	forge := func(change func(*wire.Segment)) *wire.Segment {
		seg := *good
		change(&seg)
		return &seg
	}
	for name, seg := range map[string]*wire.Segment{
		"another ack":    forge(func(s *wire.Segment) { s.Ack++ }),
		"another seq":    forge(func(s *wire.Segment) { s.Seq++ }),
		"another port":   forge(func(s *wire.Segment) { s.Src = netip.AddrPortFrom(clientAddr, 5001) }),
		"another source": forge(func(s *wire.Segment) { s.Src = netip.AddrPortFrom(clientAddr2, 5000) }),
	} {
		require.Equal(t, host.VerdictReply, l.server.deliver(seg).Kind, name)
		require.Equal(t, wire.Header{Seq: seg.Ack, Flags: wire.RST}, l.server.poll().Header, name)
		seg.Payload = [][]byte{[]byte("data")}
		require.Equal(t, host.VerdictDrop, l.server.deliver(seg).Kind, "the data may be ahead of what makes the connection")
	}
	for _, fl := range []wire.Flags{wire.RST, wire.RST | wire.ACK, wire.SYN | wire.ACK} {
		require.NotEqual(t, host.VerdictAccept, l.server.deliver(forge(func(s *wire.Segment) { s.Flags = fl })).Kind)
	}
	l.now = l.now.Add(3 * time.Minute)
	require.NotEqual(t, host.VerdictAccept, l.server.deliver(forge(func(*wire.Segment) {})).Kind, "too old")
	require.Equal(t, 64, l.server.Counters().Conns)
}

func TestCookieWithWrongKeyIsPlainTCP(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	l.crowd()
	syn := capableSYN(5000)
	ack := thirdACK(syn, l.synAckTo(syn))
	ack.Capable.ReceiverKey[0]++
	l.server.deliver(ack)
	l.run()
	s, ok := ln.Accept()
	require.True(t, ok)
	require.Equal(t, reason.FallbackBadKeys, s.Fallback())
}

// RFC 8684, Section 3.1: "if uniqueness is not met and there is no way to
// generate an alternative verifiable key, then the connection MUST fall back to
// using regular TCP by not sending an MP_CAPABLE in the SYN/ACK."
func TestCookieKeyThatCollidesIsNotSent(t *testing.T) {
	l := newLab(t, host.Config{})
	ln := l.listen(config(t), 0)
	l.crowd()
	syn := capableSYN(5000)
	first := l.synAckTo(syn)
	require.NotZero(t, first.Has&wire.OptMPCapable)

	k := binary.BigEndian.Uint64(first.Capable.SenderKey[:])
	l.server.rand = func() uint64 { return k }
	_, err := l.server.Dial(l.now, host.DialArgs{Remote: netip.AddrPortFrom(clientAddr, 99), Conn: config(t)})
	require.NoError(t, err)
	again := l.synAckTo(syn)
	require.Equal(t, first.Seq, again.Seq)
	require.Zero(t, again.Has&wire.OptMPCapable)

	// The key left before the token was taken.
	l.server.deliver(thirdACK(syn, first))
	l.run()
	s, ok := ln.Accept()
	require.True(t, ok)
	require.Equal(t, reason.FallbackCollision, s.Fallback())
	require.Equal(t, uint64(1), l.server.Counters().MIB[host.MIBMPFallbackTokenInit])
}

func TestCookiesBeyondTheBudgetOfTheHost(t *testing.T) {
	l := newLab(t, host.Config{MaxHalfOpen: 3})
	l.listen(config(t), 100)
	for port := uint16(1000); port < 1010; port++ {
		l.server.deliver(synFrom(port))
	}
	require.Equal(t, 3, l.server.Counters().HalfOpen)
	require.Equal(t, uint64(7), l.server.Counters().MIB[host.MIBSyncookiesSent])
	left := l.server.CloseListener(l.listener)
	require.Len(t, left, 3)
	require.Zero(t, l.server.Counters().HalfOpen)
}

func TestCookiesHonourRequiredMPTCP(t *testing.T) {
	l := newLab(t, host.Config{MaxHalfOpen: 1})
	must := config(t)
	must.RequireMPTCP = true
	ln := l.listen(must, 0)
	l.server.deliver(capableSYN(4000))
	l.server.poll()
	syn := capableSYN(5000)
	ack := thirdACK(syn, l.synAckTo(syn))
	ack.Has &^= wire.OptMPCapable
	l.server.deliver(ack)
	require.True(t, l.server.poll().Flags.Has(wire.RST))
	require.Zero(t, ln.Pending())
}
