package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func withECN(c *subflow.Config) { c.ECN = true }

const ecnBits = wire.ECE | wire.CWR

// setup adds the ECN bits of a SYN or SYN/ACK.
func setup(f wire.Flags) func(*wire.Segment) {
	return func(s *wire.Segment) { s.Flags |= f }
}

// newECN returns a client that has agreed on ECN.
func newECN(t *testing.T, knobs ...knob) *harness {
	h := newSynSent(t, append(knobs, withECN)...)
	require.Equal(t, ecnBits, h.last.Flags&ecnBits)
	require.Equal(t, wire.NotECT, h.last.ECN, `RFC 3168: "A host MUST NOT set ECT on SYN or SYN-ACK packets"`)
	h.now = h.now.Add(40 * time.Millisecond)
	h.in(pkt{flags: "S.", ack: 1, opt: setup(wire.ECE)})
	seg := h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1})
	require.Equal(t, wire.NotECT, seg.ECN, `"pure acknowledgement packets [...] MUST be sent with the not-ECT codepoint"`)
	require.Zero(t, seg.Flags&ecnBits)
	h.wantEvent("handshake done", subflow.EventEstablished)
	return h
}

// RFC 3168, Section 6.1.1: which SYN/ACKs agree.
func TestECNClient(t *testing.T) {
	for _, c := range []struct {
		on     bool
		answer wire.Flags
		want   wire.ECN
	}{
		{true, wire.ECE, wire.ECT0},
		{true, 0, wire.NotECT},
		{true, wire.CWR, wire.NotECT},
		{true, ecnBits, wire.NotECT}, // reflects the reserved bits
		{false, wire.ECE, wire.NotECT},
	} {
		h := newSynSent(t, func(cfg *subflow.Config) { cfg.ECN = c.on })
		h.in(pkt{flags: "S.", ack: 1, opt: setup(c.answer)})
		h.skip(1)
		h.push(mss)
		require.Equal(t, c.want, h.want("data", pkt{flags: ".", seq: 1, ack: 1, len: mss}).ECN)
	}
}

func TestECNServer(t *testing.T) {
	for _, c := range []struct {
		on        bool
		syn, want wire.Flags
	}{
		{true, ecnBits, wire.ECE}, {true, wire.ECE, 0}, {true, wire.CWR, 0}, {true, 0, 0}, {false, ecnBits, 0},
	} {
		h := newHarness(t)
		cfg := harnessConfig()
		cfg.ECN = c.on
		h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", opt: setup(c.syn)}))
		seg := h.want("SYN/ACK", pkt{flags: "S.", ack: 1})
		require.Equal(t, c.want, seg.Flags&ecnBits)
		h.in(pkt{flags: ".", seq: 1, ack: 1})
		h.push(mss)
		require.Equal(t, c.want != 0, h.want("data", pkt{flags: ".", seq: 1, ack: 1, len: mss}).ECN == wire.ECT0)
	}
}

// Section 6.1.1.1: a black hole for ECN-setup SYNs costs one retransmission,
// and then neither side may use ECN, whatever arrives late.
func TestECNBlackHole(t *testing.T) {
	h := newSynSent(t, withECN)
	h.advance(time.Second)
	require.Zero(t, h.want("plain SYN", pkt{flags: "S"}).Flags&ecnBits)
	h.in(pkt{flags: "S.", ack: 1, opt: setup(wire.ECE)})
	h.skip(1)
	h.push(mss)
	require.Equal(t, wire.NotECT, h.want("data", pkt{flags: ".", seq: 1, ack: 1, len: mss}).ECN)

	h = newHarness(t)
	cfg := harnessConfig()
	cfg.ECN = true
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", opt: setup(ecnBits)}))
	h.skip(1)
	h.in(pkt{flags: "S"})
	require.Zero(t, h.want("plain SYN/ACK", pkt{flags: "S.", ack: 1}).Flags&ecnBits)
	h.in(pkt{flags: ".", seq: 1, ack: 1})
	h.push(mss)
	require.Equal(t, wire.NotECT, h.want("data", pkt{flags: ".", seq: 1, ack: 1, len: mss}).ECN)
}

// Section 6.1.2: one reduction a window, CWR on the first new data after it,
// and no ECT and no CWR on retransmissions.
func TestECNSender(t *testing.T) {
	h := newECN(t)
	h.fill(10)
	h.wait(40)
	echo := func(p pkt) pkt { p.opt = setup(wire.ECE); return p }
	h.in(echo(sackAck(2)))
	require.Equal(t, []cc.Loss{cc.LossECN}, h.ctl.losses)
	require.Equal(t, []int{10 * mss}, h.ctl.flights)
	a := h.ctl.acks[len(h.ctl.acks)-1]
	require.Equal(t, 2*mss, a.Marked)
	require.True(t, a.InRecovery, "no growth")
	h.in(echo(sackAck(8)))
	require.Len(t, h.ctl.losses, 1, "the same window")
	h.push(2 * mss)
	require.True(t, h.want("new", full(10)).Flags.Has(wire.CWR))
	require.False(t, h.want("once", full(11)).Flags.Has(wire.CWR))
	h.in(sackAck(10))
	h.in(sackAck(11))
	require.Zero(t, h.ctl.acks[len(h.ctl.acks)-1].Marked)
	h.in(echo(sackAck(12)))
	require.Len(t, h.ctl.losses, 2, "the next window")
	require.EqualValues(t, 9*mss, h.s.Stats().BytesMarked)
	h.ctl.cwnd = 10 * mss
	h.push(5 * mss)
	h.skip(5)
	h.wait(40)
	h.in(sackAck(12, [2]int{13, 17}))
	seg := h.want("retransmission", full(12))
	require.Equal(t, wire.NotECT, seg.ECN)
	require.Zero(t, seg.Flags&ecnBits)
	require.Len(t, h.ctl.losses, 3, "sent after the mark came")
}

// "a series of dropped and/or CE packets from a single window of data" is one
// signal.
func TestECNAndLossInOneWindow(t *testing.T) {
	h := newECN(t)
	h.fill(10)
	h.wait(40)
	p := sackAck(2)
	p.opt = setup(wire.ECE)
	h.in(p)
	h.in(sackAck(2, [2]int{3, 8}))
	h.want("lost", full(2))
	require.Equal(t, []cc.Loss{cc.LossECN}, h.ctl.losses)
}

// Section 6.1.3: ECE on every ACK from the first CE on until CWR.
func TestECNReceiver(t *testing.T) {
	h := newECN(t)
	next := 1
	data := func(e wire.ECN, f wire.Flags) wire.Flags {
		h.in(pkt{flags: ".", seq: next, ack: 1, len: 100, opt: func(s *wire.Segment) { s.ECN, s.Flags = e, s.Flags|f }})
		next += 100
		return h.want("ACK", pkt{flags: ".", seq: 1, ack: next}).Flags & ecnBits
	}
	require.Zero(t, data(wire.ECT0, 0))
	require.Equal(t, wire.ECE, data(wire.CE, 0))
	require.Equal(t, wire.ECE, data(wire.ECT0, 0))
	require.Zero(t, data(wire.ECT0, wire.CWR))
	require.Equal(t, wire.ECE, data(wire.CE, wire.CWR))
	// "the TCP data receiver SHOULD ignore the CE codepoint on out-of-window packets".
	require.Zero(t, data(wire.ECT0, wire.CWR))
	h.in(pkt{flags: ".", seq: 1, ack: 1, len: 100, opt: func(s *wire.Segment) { s.ECN = wire.CE }})
	require.Zero(t, h.want("old", pkt{flags: ".", seq: 1, ack: next, sack: [][2]int{{1, 101}}}).Flags&ecnBits)
	st := h.s.Stats()
	require.EqualValues(t, 2, st.CEPackets)
	require.EqualValues(t, 200, st.CEBytes)
}

// Section 6.1.2: at a window of one segment a mark costs a timeout's time.
func TestECNAtTheLeastWindow(t *testing.T) {
	h := newECN(t)
	h.ctl.cwnd = mss
	h.fill(1)
	h.wait(40)
	p := sackAck(1)
	p.opt = setup(wire.ECE)
	h.in(p)
	require.Len(t, h.ctl.losses, 1)
	h.ctl.cwnd = mss
	require.Zero(t, h.s.Room(h.now, 10*mss))
	require.Equal(t, h.s.RTO(), h.advanceToDeadline())
	require.Equal(t, mss, h.s.Room(h.now, 10*mss))
}

// RFC 8257, Section 3.2: each change of CE is echoed at once, the ACK of what
// came before the change going first with the old state.
func TestExactECNReceiver(t *testing.T) {
	h := newSynSent(t, withExact)
	h.in(pkt{flags: "S.", ack: 1, opt: setup(wire.ECE)})
	h.skip(1)
	next := 1
	data := func(e wire.ECN, f wire.Flags) {
		h.in(pkt{flags: ".", seq: next, ack: 1, len: 100, opt: func(s *wire.Segment) { s.ECN, s.Flags = e, s.Flags|f }})
		next += 100
	}
	ack := func(why string, n int) wire.Flags {
		return h.want(why, pkt{flags: ".", seq: 1, ack: n}).Flags & ecnBits
	}
	for range 16 { // those that are acknowledged at once
		data(wire.ECT0, 0)
		require.Zero(t, ack("quick", next))
	}
	data(wire.ECT0, 0)
	h.wantIdle("delayed")
	data(wire.CE, 0)
	require.Zero(t, ack("before the mark", next-100))
	require.Equal(t, wire.ECE, ack("with it", next))
	data(wire.CE, wire.CWR)
	data(wire.CE, 0)
	require.Equal(t, wire.ECE, ack("every second, whatever CWR says", next))
	data(wire.CE, 0)
	data(wire.ECT0, 0)
	require.Equal(t, wire.ECE, ack("before it ends", next-100))
	require.Zero(t, ack("after", next))
	data(wire.CE, 0)
	require.Equal(t, wire.ECE, ack("nothing was owed", next))
}

func withExact(c *subflow.Config) { c.ECN, c.ExactECN = true, true }

// Section 3.6: "the sender SHOULD set ECT for SYN, SYN-ACK, and RST packets",
// and of a receiver: CE on them is ignored.
func TestExactECNHandshake(t *testing.T) {
	h := newHarness(t)
	cfg := harnessConfig()
	withExact(&cfg)
	h.s = subflow.Open(h.now, cfg, h.ctl)
	require.Equal(t, wire.ECT0, h.want("SYN", pkt{flags: "S"}).ECN)
	h.in(pkt{flags: "S.", ack: 1, opt: func(s *wire.Segment) { s.Flags |= wire.ECE; s.ECN = wire.CE }})
	require.Zero(t, h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1}).Flags&ecnBits)
	h.s.Abort(h.now)
	require.Equal(t, wire.ECT0, h.want("RST", pkt{flags: "R.", seq: 1, ack: 1}).ECN)

	h = newHarness(t)
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S", opt: setup(ecnBits)}))
	require.Equal(t, wire.ECT0, h.want("SYN/ACK", pkt{flags: "S.", ack: 1}).ECN)
}

// What a data center's queue is like: DCTCP keeps a link full at a queue that
// stays near the threshold, without a loss.
func TestDCTCPTransfer(t *testing.T) {
	// 100 Mb/s, 2 ms: a BDP of 25 000 bytes, K of 15 000.
	l := link{rate: 12.5e6, delay: time.Millisecond, queue: 200000, mark: 15000}
	p := newPair(t, pairConfig{cc: "dctcp", ab: l, ba: l, a: withExact, b: withExact})
	p.transfer(16<<20, 0)
	p.finish(time.Minute)
	st := p.stats()
	require.Positive(t, p.links[0].marked)
	require.Zero(t, st[0].BytesRetransmitted)
	require.Less(t, p.now.Duration()-time.Second, 1500*time.Millisecond, "1.34 s at the link's rate")
	// What the sender heard is what was marked, to the bytes of a delayed ACK
	// now and then.
	require.InEpsilon(t, st[1].CEBytes, st[0].BytesMarked, .05)
}

// A queue that marks early keeps the link full without a single loss.
func TestECNTransfer(t *testing.T) {
	l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 100000, mark: 25000}
	p := newPair(t, pairConfig{cc: "cubic", ab: l, ba: l, a: withECN, b: withECN})
	p.transfer(8<<20, 0)
	p.finish(time.Minute)
	st := p.stats()
	require.Positive(t, p.links[0].marked)
	require.EqualValues(t, p.links[0].marked, st[1].CEPackets)
	require.Zero(t, st[0].BytesRetransmitted)
	require.Less(t, p.now.Duration(), 9*time.Second, "6.7 s at the link's rate")
}
