package subflow_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func timestamps(c *subflow.Config) { c.NoTimestamps = false }

func TestSYNOffersOptionsAndLeavesRoomForMPJoin(t *testing.T) {
	h := newSynSent(t, timestamps)
	o := &h.last.Options
	require.Equal(t, wire.OptMSS|wire.OptWScale|wire.OptSACKPermitted|wire.OptTimestamps, o.Has)
	require.EqualValues(t, mss, o.MSS) // MTU less the fixed header
	require.EqualValues(t, 1, o.WScale)
	require.Zero(t, o.TSEcr)
	require.Equal(t, 20, o.Size())
	require.EqualValues(t, 65535, h.last.Wnd) // RFC 7323: never scaled on a SYN
}

func TestSYNACKAnswersOnlyWhatWasOffered(t *testing.T) {
	h := newHarness(t)
	cfg := harnessConfig()
	cfg.NoTimestamps = false
	bare := func(s *wire.Segment) { s.Has = 0 }
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", opt: bare}))
	h.want("SYN/ACK", pkt{flags: "S.", ack: 1})
	require.Equal(t, wire.OptMSS, h.last.Has)
	h.in(pkt{flags: ".", seq: 1, ack: 1, opt: func(s *wire.Segment) { s.Wnd = 3000 }})
	h.wantEvent("established", subflow.EventEstablished)
	require.Equal(t, 3000, h.s.Stats().PeerWindow, "windows are not scaled")
	h.s.SetReceiveWindow(100000)
	h.s.RequestAck()
	require.EqualValues(t, 65535, h.want("ACK", pkt{flags: ".", seq: 1, ack: 1}).Wnd)
}

// RFC 9293, Section 3.7.1: "If an MSS Option is not received at connection
// setup, TCP implementations MUST assume a default send MSS of 536 (576 - 40)
// for IPv4 or 1220 (1280 - 60) for IPv6 (MUST-15)."
func TestMSS(t *testing.T) {
	v6 := netip.MustParseAddrPort("[2001:db8::2]:80")
	for _, c := range []struct {
		name   string
		remote netip.AddrPort
		mtu    int
		mss    uint16 // 0 = no option
		ts     bool
		data   uint8 // Room.Data
		want   int
	}{
		{"IPv4 default", addrB, 1480, 0, false, 0, 536},
		{"IPv6 default", v6, 1480, 0, false, 0, 1220},
		{"peer's", addrB, 1480, 1400, false, 0, 1400},
		{"path's", addrB, 1480, 9000, false, 0, 1460},
		{"timestamps count", addrB, 1480, 1460, true, 0, 1448},
		{"the connection's options count", addrB, 1480, 1460, true, 20, 1428},
		{"and against the peer's MSS", addrB, 9000, 1000, true, 20, 968},
		{"absurdly small", addrB, 1480, 1, false, 0, 88},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newSynSent(t, func(cfg *subflow.Config) {
				cfg.Remote, cfg.MTU, cfg.NoTimestamps, cfg.Room.Data = c.remote, c.mtu, !c.ts, c.data
			})
			h.in(pkt{flags: "S.", ack: 1, opt: func(s *wire.Segment) {
				if s.MSS = c.mss; c.mss == 0 {
					s.Has &^= wire.OptMSS
				}
			}})
			require.Equal(t, c.want, h.s.MSS())
			h.skip(1)
			h.push(5 * c.want)
			h.want("full segment", pkt{flags: ".", seq: 1, ack: 1, len: c.want})
		})
	}
}

// RFC 7323, Section 2.2: a shift above 14 counts as 14.
func TestWindowScaleAbove14(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S.", ack: 1, opt: func(s *wire.Segment) { s.WScale = 20 }})
	require.Equal(t, 3<<14, h.s.PeerWindow(&wire.Segment{Header: wire.Header{Flags: wire.ACK, Wnd: 3}}))
	require.Equal(t, 3, h.s.PeerWindow(&wire.Segment{Header: wire.Header{Flags: wire.ACK | wire.SYN, Wnd: 3}}))
}

func TestSYNRetransmission(t *testing.T) {
	h := newSynSent(t, func(c *subflow.Config) { c.SYNRetries = 3 })
	for i, d := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		require.Equal(t, d, h.advanceToDeadline())
		require.Equal(t, i+1, h.wantEvent("timeout", subflow.EventTimeout).Backoff)
		h.want("SYN again", pkt{flags: "S"})
		h.wantIdle("once")
	}
	require.Equal(t, 8*time.Second, h.advanceToDeadline())
	require.Equal(t, reason.CloseTimeout, h.wantEvent("given up", subflow.EventClosed).Close)
	h.wantIdle("closed")
	require.Zero(t, h.s.Deadline())
}

// RFC 5681, Section 3.1: after a lost SYN the initial window "MUST be one
// segment", and RFC 6298, Section 5.7: the RTO "MUST be re-initialized to 3
// seconds".
func TestLostSYNMeansSmallInitialWindow(t *testing.T) {
	h := newSynSent(t)
	h.advanceToDeadline()
	h.wantEvent("timeout", subflow.EventTimeout)
	h.want("SYN again", pkt{flags: "S"})
	h.in(pkt{flags: "S.", ack: 1})
	h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1})
	require.Equal(t, 3*time.Second, h.s.RTO())
	require.Equal(t, mss, h.s.Room(h.now, 20*mss))
	h.fill(1)
	h.now = h.now.Add(50 * time.Millisecond)
	h.in(pkt{flags: ".", seq: 1, ack: 1 + mss})
	require.Equal(t, 2*mss, h.s.Room(h.now, 20*mss), "slow start from there")
}

func TestThirdACKIsDueAtOnceAndCarriesPushedData(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S.", ack: 1})
	h.push(10)
	h.want("data with the third ACK", pkt{flags: ".", seq: 1, ack: 1, len: 10})
	h.wantIdle("no ACK beside it")
}

func TestRefused(t *testing.T) {
	h := newSynSent(t)
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: "R"}), "RST without ACK")
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: "R.", ack: 2}), "ACK beyond the SYN")
	h.wantState(subflow.StateSynSent)
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: "R.", ack: 1}))
	require.Equal(t, reason.CloseRefused, h.wantEvent("refused", subflow.EventClosed).Close)
	h.wantIdle("closed")
}

// RFC 9293, Section 3.5.1: half-open connections are found by the RST that
// answers an ACK of something never sent.
func TestBadACKInSynSentIsAnsweredWithRST(t *testing.T) {
	h := newSynSent(t)
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: ".", seq: 500, ack: 77}))
	h.want("RST at SEG.ACK", pkt{flags: "R", seq: 77})
	h.wantState(subflow.StateSynSent)
	h.in(pkt{flags: "R.", ack: 77})
	h.wantIdle("no RST for a RST")
}

func TestPassiveOpen(t *testing.T) {
	h := newSynReceived(t)
	h.wantIdle("waits")
	require.Equal(t, subflow.Dropped, h.in(pkt{flags: ".", seq: 1, ack: 5}), "ACK of something never sent")
	h.want("RST", pkt{flags: "R", seq: 5})
	h.wantState(subflow.StateSynReceived)
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 10})
	h.wantEvent("established", subflow.EventEstablished)
	require.Equal(t, 10, h.data(), "data on the third ACK")
	h.want("ACK", pkt{flags: ".", seq: 1, ack: 11})
}

func TestSYNACKRetransmission(t *testing.T) {
	h := newSynReceived(t)
	h.in(pkt{flags: "S"})
	h.want("the SYN came again: so does the answer", pkt{flags: "S.", ack: 1})
	require.Equal(t, time.Second, h.advanceToDeadline())
	h.want("SYN/ACK again", pkt{flags: "S.", ack: 1})
	h.wantEvent("timeout", subflow.EventTimeout)
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.wantEvent("established", subflow.EventEstablished)
	require.Equal(t, mss, h.s.Room(h.now, 20*mss))
}

func TestPassiveOpenReset(t *testing.T) {
	h := newSynReceived(t)
	h.in(pkt{flags: "R", seq: 1})
	require.Equal(t, reason.CloseRemoteReset, h.wantEvent("reset", subflow.EventClosed).Close)
}

// RFC 9293, Figure 7: simultaneous connection synchronization.
func TestSimultaneousOpen(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S"})
	h.wantState(subflow.StateSynReceived)
	h.want("SYN/ACK", pkt{flags: "S.", ack: 1})
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: "S.", ack: 1}))
	h.wantEvent("established", subflow.EventEstablished)
	h.wantState(subflow.StateEstablished)
	h.in(pkt{flags: "S.", ack: 1})
	h.want("the peer's SYN/ACK again: it missed ours", pkt{flags: ".", seq: 1, ack: 1})
}

func TestSimultaneousOpenRefused(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S"})
	h.skip(1)
	h.in(pkt{flags: "R", seq: 1})
	require.Equal(t, reason.CloseRefused, h.wantEvent("refused", subflow.EventClosed).Close)
}

func TestCloseBeforeEstablished(t *testing.T) {
	h := newSynSent(t)
	h.s.Close(h.now)
	require.Equal(t, reason.CloseCommand, h.wantEvent("closed", subflow.EventClosed).Close)
	h.wantIdle("nobody to tell")

	h = newSynReceived(t)
	h.s.Close(h.now)
	h.wantIdle("the FIN waits")
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.wantState(subflow.StateFinWait1)
	h.want("FIN", pkt{flags: "F.", seq: 1, ack: 1})
}

func TestSYNPayloadIsNotKept(t *testing.T) {
	h := newSynSent(t)
	h.in(pkt{flags: "S.", ack: 1, len: 5})
	h.want("ACK of the SYN alone", pkt{flags: ".", seq: 1, ack: 1})
	require.Zero(t, h.data())
}
