package subflow_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// cookie is one of n bytes.
func cookie(n int) wire.FastOpen {
	c := wire.FastOpen{Len: uint8(n)}
	for i := range n {
		c.Cookie[i] = byte(0xc0 + i)
	}
	return c
}

func sends(c wire.FastOpen) knob {
	return func(cfg *subflow.Config) { cfg.FastOpen.Send, cfg.FastOpen.Cookie = true, c }
}

// newFastOpen returns a client whose connection has n bytes for the SYN.
func newFastOpen(t *testing.T, n int, knobs ...knob) *harness {
	h := newHarness(t)
	cfg := harnessConfig()
	sends(cookie(8))(&cfg)
	for _, k := range knobs {
		k(&cfg)
	}
	h.tsOn = !cfg.NoTimestamps
	h.s = subflow.Open(h.now, cfg, h.ctl)
	h.s.OfferSYNData(n)
	return h
}

// newTaken returns a server that took n bytes of data on the SYN, whose SYN/ACK
// is under way.
func newTaken(t *testing.T, n int, knobs ...knob) *harness {
	h := newHarness(t)
	cfg := harnessConfig()
	cfg.FastOpen.Take = true
	for _, k := range knobs {
		k(&cfg)
	}
	h.tsOn = !cfg.NoTimestamps
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", len: n, opt: fromOne}))
	h.want("SYN/ACK", pkt{flags: "S.", ack: 1 + int(h.s.FastOpened().Taken)})
	return h
}

// fromOne makes the payload of a SYN, which begins at 1, what data expects.
func fromOne(seg *wire.Segment) {
	for _, v := range seg.Payload {
		for i := range v {
			v[i] = byte(1 + i)
		}
	}
}

func TestFastOpenAsksForACookie(t *testing.T) {
	h := newFastOpen(t, 100, sends(wire.FastOpen{}))
	h.want("SYN that asks for a cookie, without data", pkt{flags: "S"})
	require.NotZero(t, h.last.Has&wire.OptFastOpen)
	require.Zero(t, h.last.FastOpen.Len)
	h.in(pkt{flags: "S.", ack: 1, opt: func(s *wire.Segment) {
		s.Has |= wire.OptFastOpen
		s.FastOpen, s.MSS = cookie(6), 1300
	}})
	h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1})
	require.Equal(t, subflow.FastOpened{Asked: true, Given: cookie(6), MSS: 1300}, h.s.FastOpened())
}

// A cookie that was not asked for is not believed.
func TestFastOpenIgnoresAnUnsolicitedCookie(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S.", ack: 1, opt: func(s *wire.Segment) {
		s.Has |= wire.OptFastOpen
		s.FastOpen = cookie(8)
	}})
	require.Equal(t, subflow.FastOpened{}, h.s.FastOpened())
}

// RFC 7413, Section 4.2.2: the SYN has data, SND.NXT includes it, and the
// SYN/ACK acknowledges all of it, a part, or nothing. What is left is sent as if
// it never had been.
func TestFastOpenDataAcknowledged(t *testing.T) {
	for _, acked := range []int{0, 1, 500, 600} {
		h := newFastOpen(t, 600, func(c *subflow.Config) { c.FastOpen.MSS = 1460 })
		syn := h.want("SYN with data", pkt{flags: "S", len: 600})
		require.Equal(t, cookie(8), syn.FastOpen)
		h.wantIdle("nothing follows")
		h.now = h.now.Add(100 * time.Millisecond)
		require.Equal(t, subflow.Accepted, h.in(pkt{flags: "S.", ack: 1 + acked}))
		h.wantState(subflow.StateEstablished)
		got := h.s.FastOpened()
		require.Equal(t, 600, got.Sent)
		require.Equal(t, acked, got.Acked)
		require.EqualValues(t, acked, h.s.Acked())
		require.EqualValues(t, acked, h.s.Pushed())
		require.EqualValues(t, acked, h.s.Stats().BytesAcked)
		require.Equal(t, 100*time.Millisecond, h.s.Stats().SRTT)
		if acked == 600 {
			h.want("third ACK", pkt{flags: ".", seq: 601, ack: 1})
		} else {
			// "The client SHOULD retransmit any unacknowledged data in the first
			// ACK packet".
			h.push(600 - acked)
			h.want("third ACK with the rest", pkt{flags: ".", seq: 1 + acked, ack: 1, len: 600 - acked})
		}
		h.wantIdle("that is all")
	}
}

// A SYN/ACK that acknowledges more than was sent is no answer to the SYN.
func TestFastOpenAcknowledgedBeyondTheData(t *testing.T) {
	h := newFastOpen(t, 100)
	h.want("SYN with data", pkt{flags: "S", len: 100})
	h.in(pkt{flags: "S.", ack: 102})
	h.wantState(subflow.StateSynSent)
	h.want("RST", pkt{flags: "R", seq: 102})
}

// "when the SYN timer fires, the client SHOULD retransmit a SYN packet without
// data and Fast Open options." The answer to either SYN is good.
func TestFastOpenRepeatsTheSYNWithoutDataAndOption(t *testing.T) {
	for _, acked := range []int{0, 100} {
		h := newFastOpen(t, 100)
		h.want("SYN with data", pkt{flags: "S", len: 100})
		require.Equal(t, time.Second, h.advanceToDeadline())
		h.want("plain SYN", pkt{flags: "S"})
		require.Zero(t, h.last.Has&wire.OptFastOpen)
		h.in(pkt{flags: "S.", ack: 1 + acked})
		h.want("third ACK", pkt{flags: ".", seq: 1 + acked, ack: 1})
		got := h.s.FastOpened()
		require.True(t, got.Again)
		require.Equal(t, acked, got.Acked)
		h.s.Push(h.now, 10)
		h.want("data", pkt{flags: ".", seq: 1 + acked, ack: 1, len: 10})
	}
}

// RFC 7413, Section 4.1.3: "Without a cached server MSS, the amount of data in
// the SYN packet is limited to the default MSS of 536 bytes for IPv4 [RFC1122]
// and 1220 bytes for IPv6"; a cached one "to 1460 bytes for IPv4 or 1440 for
// IPv6". Options count. With a cookie of 8 bytes they are: MSS 4, SACK-permitted
// 4, window scale 4, cookie 12; with timestamps 8 more.
func TestFastOpenDataFitsThePacket(t *testing.T) {
	v6 := netip.MustParseAddrPort("[2001:db8::2]:80")
	for _, c := range []struct {
		name     string
		remote   netip.AddrPort
		mtu, mss int
		ts       bool
		room     uint8
		want     int
	}{
		{"IPv4 default", addrB, 1480, 0, false, 0, 536 - 24},
		{"IPv6 default", v6, 1460, 0, false, 0, 1220 - 24},
		{"remembered", addrB, 1480, 1400, false, 0, 1400 - 24},
		{"remembered, with timestamps and MP_CAPABLE", addrB, 1480, 1400, true, 4, 1400 - 36},
		{"large", addrB, 9000, 8960, false, 0, 1460 - 24},
		{"large, IPv6", v6, 9000, 8960, false, 0, 1440 - 24},
		{"path", addrB, 620, 1460, false, 0, 600 - 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFastOpen(t, 1<<20, func(cfg *subflow.Config) {
				cfg.Remote, cfg.MTU, cfg.FastOpen.MSS, cfg.NoTimestamps, cfg.Room.SYN = c.remote, c.mtu, c.mss, !c.ts, c.room
			})
			h.want("SYN with data", pkt{flags: "S", len: c.want})
		})
	}
}

// "If the SYN packet does not have enough option space for the Fast Open option,
// abort TFO and fall back to the regular 3WHS." Of MP_CAPABLE beside timestamps
// it leaves 16 bytes.
func TestFastOpenCookieThatDoesNotFit(t *testing.T) {
	for n, fits := range map[int]bool{14: true, 16: false} {
		h := newFastOpen(t, 100, timestamps, sends(cookie(n)), func(c *subflow.Config) { c.Room.SYN = 4 })
		want := 0
		if fits {
			want = 100
		}
		h.want("SYN", pkt{flags: "S", len: want})
		require.Equal(t, fits, h.last.Has&wire.OptFastOpen != 0)
		require.Equal(t, subflow.FastOpened{Asked: fits, Cookie: fits, Sent: want}, h.s.FastOpened())
	}
}

// RFC 8684, Appendix B.1: the listener shortens its cookie where MP_CAPABLE and
// timestamps leave too little room, but never below 4 bytes.
func TestFastOpenCookieOnSYNACK(t *testing.T) {
	for _, c := range []struct {
		name   string
		ts     bool
		room   uint8
		cookie int
		want   int
	}{
		{"plain", true, 0, 8, 8},
		{"plain, as large as may be", true, 0, 16, 16},
		{"MP_CAPABLE", true, 12, 8, 6},
		{"MP_CAPABLE, large", true, 12, 16, 6},
		{"MP_CAPABLE without timestamps", false, 12, 8, 8},
		{"no room", true, 16, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			h.tsOn = c.ts
			cfg := harnessConfig()
			cfg.NoTimestamps, cfg.Room.SYN = !c.ts, c.room
			sends(cookie(c.cookie))(&cfg)
			h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", len: 30}))
			h.want("SYN/ACK, which takes no data", pkt{flags: "S.", ack: 1})
			require.Equal(t, c.want > 0, h.last.Has&wire.OptFastOpen != 0)
			if c.want > 0 {
				want := cookie(c.cookie)
				require.EqualValues(t, c.want, h.last.FastOpen.Len)
				require.Equal(t, want.Cookie[:c.want], h.last.FastOpen.Cookie[:c.want])
			}
			h.advanceToDeadline()
			h.want("SYN/ACK again, without the option", pkt{flags: "S.", ack: 1})
			require.Zero(t, h.last.Has&wire.OptFastOpen)
		})
	}
}

// The server takes the data, acknowledges it with the SYN, and may answer before
// the third ACK.
func TestFastOpenTaken(t *testing.T) {
	h := newTaken(t, 20)
	require.Equal(t, 20, h.data())
	require.Equal(t, 20, h.s.FastOpened().Taken)
	require.True(t, h.s.CanSend())
	h.push(100)
	h.want("data before the third ACK", pkt{flags: ".", seq: 1, ack: 21, len: 100})
	h.wantState(subflow.StateSynReceived)
	h.now = h.now.Add(50 * time.Millisecond)
	h.in(pkt{flags: ".", seq: 21, ack: 101})
	h.wantEvent("third ACK", subflow.EventEstablished)
	h.wantState(subflow.StateEstablished)
	require.EqualValues(t, 100, h.s.Acked())
	h.in(pkt{flags: ".", seq: 21, ack: 101, len: 5})
	require.Equal(t, 5, h.data())
}

// RFC 7413, Section 4.2.2: "the server MUST follow [RFC5681] (based on [RFC3390])
// to set the initial congestion window for sending more data packets."
func TestFastOpenEarlyDataKeepsToTheWindows(t *testing.T) {
	h := newTaken(t, 20)
	h.push(30 * mss)
	require.Equal(t, 10*mss, h.drain())
}

// Early data that is lost is sent again once the third ACK has come, not
// before: until then only the SYN/ACK is.
func TestFastOpenEarlyDataLost(t *testing.T) {
	h := newTaken(t, 20, func(c *subflow.Config) { c.FastOpen.Send, c.FastOpen.Cookie = true, cookie(8) })
	h.push(100)
	h.want("lost", pkt{flags: ".", seq: 1, ack: 21, len: 100})
	h.advanceToDeadline()
	h.wantEvent("timeout", subflow.EventTimeout)
	h.want("SYN/ACK again", pkt{flags: "S.", ack: 21})
	require.Zero(t, h.last.Has&wire.OptFastOpen)
	h.wantIdle("no more")
	h.in(pkt{flags: ".", seq: 21, ack: 1})
	h.wantEvent("third ACK", subflow.EventEstablished)
	h.wantIdle("it may still arrive")
	h.advanceToDeadline()
	h.want("data again", pkt{flags: ".", seq: 1, ack: 21, len: 100})
	h.in(pkt{flags: ".", seq: 21, ack: 101})
	require.EqualValues(t, 100, h.s.Acked())
	require.Zero(t, h.s.Deadline())
}

// A FIN waits for the third ACK, the data before it does not.
func TestFastOpenFINWaits(t *testing.T) {
	h := newTaken(t, 20)
	h.push(100)
	h.s.CloseWrite(h.now)
	require.False(t, h.s.CanSend())
	h.want("data", pkt{flags: ".", seq: 1, ack: 21, len: 100})
	h.wantIdle("no FIN yet")
	h.in(pkt{flags: ".", seq: 21, ack: 101})
	h.want("FIN", pkt{flags: "F.", seq: 101, ack: 21})
	h.wantState(subflow.StateFinWait1)
}

// A repeated SYN, with the data or without, is answered by the same SYN/ACK.
func TestFastOpenRepeatedSYN(t *testing.T) {
	h := newTaken(t, 20)
	for _, n := range []int{20, 0} {
		h.in(pkt{flags: "S", len: n})
		h.want("SYN/ACK again", pkt{flags: "S.", ack: 21})
	}
	require.Equal(t, 20, h.data())
	h.in(pkt{flags: ".", seq: 21, ack: 1})
	h.wantState(subflow.StateEstablished)
}

// What lies beyond the receive window is left to the client to send again.
func TestFastOpenTakesWhatTheWindowAllows(t *testing.T) {
	h := newTaken(t, 500, func(c *subflow.Config) { c.MaxWindow = 200 })
	require.Equal(t, 200, h.s.FastOpened().Taken)
	require.Equal(t, 200, h.data())
}

// Without a good cookie data on a SYN is dropped, as by a server that knows
// nothing of fast open.
func TestDataOnSYNWithoutCookieIsDropped(t *testing.T) {
	h := newHarness(t)
	h.s = subflow.Accept(h.now, harnessConfig(), h.ctl, h.segment(pkt{flags: "S", len: 20}))
	h.want("SYN/ACK", pkt{flags: "S.", ack: 1})
	require.False(t, h.s.CanSend())
	require.Zero(t, h.data())
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 20})
	require.Equal(t, 20, h.data())
}

// RFC 7413, Section 4.2.2: "A special case is simultaneous open". Whatever the
// peer acknowledges of the data, the handshake completes.
func TestFastOpenSimultaneousOpen(t *testing.T) {
	for _, acked := range []int{0, 60, 100} {
		for _, flags := range []string{"S.", "."} {
			h := newFastOpen(t, 100)
			h.want("SYN with data", pkt{flags: "S", len: 100})
			h.in(pkt{flags: "S"})
			h.wantState(subflow.StateSynReceived)
			h.want("SYN/ACK, without data", pkt{flags: "S.", ack: 1})
			require.Zero(t, h.last.Has&wire.OptFastOpen)
			seq := 1
			if flags == "S." {
				seq = 0
			}
			h.in(pkt{flags: flags, seq: seq, ack: 1 + acked})
			h.wantState(subflow.StateEstablished)
			require.Equal(t, acked, h.s.FastOpened().Acked)
			h.push(10)
			h.want("data", pkt{flags: ".", seq: 1 + acked, ack: 1, len: 10})
		}
	}
}

// A listener's RST ends a fast open like any other.
func TestFastOpenRefused(t *testing.T) {
	h := newFastOpen(t, 100)
	h.want("SYN with data", pkt{flags: "S", len: 100})
	h.in(pkt{flags: "R.", ack: 1})
	h.wantState(subflow.StateClosed)
}
