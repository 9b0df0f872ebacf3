package subflow_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Initial sequence numbers of the harness. Both spaces wrap soon.
const (
	localISS  seq.SSN = 0xffffff00
	remoteISS seq.SSN = 0xfffffe00
)

const (
	// mss of the harness: MTU 1020 and, unless a test says so, no options.
	mss = 1000
	// peerWindow is what the peer offers when a test does not care, scaled by
	// peerShift on the wire.
	peerWindow = 40000
	peerShift  = 2
	// closedWindow is a window of 0 in a pkt, where 0 means any.
	closedWindow = -1
)

// pkt is a segment in numbers that people read: seq counts from the ISS of
// its sender and ack from that of its receiver, so that SYN is 0 and the first
// byte 1. SACK ranges count as ack does.
type pkt struct {
	flags string // tcpdump's letters: S F R P and . for ACK; want: P is not compared
	seq   int
	ack   int
	len   int
	wnd   int // bytes, 0 = peerWindow or any
	sack  [][2]int
	opt   func(*wire.Segment) // in: last touch
}

// fixed is a congestion controller that keeps its window until a loss.
type fixed struct {
	cwnd, ssthresh float64
	acks           []cc.Sample
	losses         []cc.Loss
	flights        []int // FlightSize at each loss
	saved          [2]float64
	undone         int
	pace           float64
}

func (f *fixed) OnAck(s *cc.Sample) { f.acks = append(f.acks, *s) }

func (f *fixed) OnLoss(l cc.Loss, s *cc.Sample) {
	f.losses = append(f.losses, l)
	f.flights = append(f.flights, s.InFlight)
	f.saved = [2]float64{f.cwnd, f.ssthresh}
	f.ssthresh = float64(max(s.InFlight/2, 2*s.MSS))
	f.cwnd = f.ssthresh
	if l == cc.LossTimeout {
		f.cwnd = float64(s.MSS)
	}
}

func (f *fixed) Undo() {
	f.cwnd, f.ssthresh = f.saved[0], f.saved[1]
	f.undone++
}

func (f *fixed) State() cc.State {
	return cc.State{Cwnd: f.cwnd, Ssthresh: f.ssthresh, PacingRate: f.pace}
}

// harness plays the peer of one subflow by hand.
type harness struct {
	t    *testing.T
	s    *subflow.Subflow
	now  mono.Time
	ctl  *fixed
	tsOn bool
	tsIn uint32 // TSval of the next segment in, where timestamps are on
	last wire.Segment
	rng  subflow.Range
}

// harnessConfig is what subflows of the harness are made from.
func harnessConfig() subflow.Config {
	return subflow.Config{
		Ends: &subflow.Ends{Local: addrA, Remote: addrB}, ISS: localISS, MTU: mss + 20,
		Knobs: &subflow.Knobs{MaxWindow: 100000, NoTimestamps: true, KeepAlive: subflow.KeepAlive{Idle: -1}},
	}
}

func newHarness(t *testing.T) *harness {
	return &harness{
		t: t, now: mono.Time(time.Hour), tsIn: 5000,
		ctl: &fixed{cwnd: 10 * mss, ssthresh: math.Inf(1)},
	}
}

// segment turns p into a segment of the peer's.
func (h *harness) segment(p pkt) *wire.Segment {
	seg := &wire.Segment{Src: addrB, Dst: addrA}
	for _, c := range p.flags {
		seg.Flags |= 1 << strings.IndexRune("FSRP.U", c)
	}
	seg.Seq = remoteISS.Add(p.seq)
	if seg.Flags.Has(wire.ACK) {
		seg.Ack = localISS.Add(p.ack)
	}
	switch {
	case p.wnd == 0:
		p.wnd = peerWindow
	case p.wnd < 0:
		p.wnd = 0
	}
	if seg.Flags.Has(wire.SYN) {
		seg.Wnd = uint16(p.wnd)
		seg.Has |= wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted
		seg.MSS, seg.WScale = 1460, peerShift
	} else {
		seg.Wnd = uint16(p.wnd >> peerShift)
	}
	for i, r := range p.sack {
		seg.Has |= wire.OptSACK
		seg.SACK[i] = wire.SACKBlock{Left: localISS.Add(r[0]), Right: localISS.Add(r[1])}
		seg.NumSACK++
	}
	if h.tsOn {
		seg.Has |= wire.OptTimestamps
		seg.TSVal, seg.TSEcr = h.tsIn, h.last.TSVal
	}
	if p.len > 0 {
		b := make([]byte, p.len)
		for i := range b {
			b[i] = byte(p.seq + i)
		}
		seg.Payload = [][]byte{b}
	}
	if p.opt != nil {
		p.opt(seg)
	}
	return seg
}

// in delivers a segment of the peer's.
func (h *harness) in(p pkt) subflow.Verdict { return h.s.HandleSegment(h.now, h.segment(p)) }

// want polls the next segment and compares it.
func (h *harness) want(why string, p pkt) *wire.Segment {
	h.t.Helper()
	r, ok := h.s.PollSegment(h.now, &h.last)
	if !ok {
		h.t.Fatalf("%s: nothing to send, want %+v", why, p)
	}
	h.rng = r
	got := h.describe(&h.last, r)
	if p.wnd == 0 {
		got.wnd = 0
	} else if p.wnd < 0 {
		p.wnd = 0
	}
	p.flags = strings.ReplaceAll(p.flags, "P", "")
	require.Equal(h.t, fmt.Sprintf("%+v", p), fmt.Sprintf("%+v", got), "%s: %v", why, &h.last)
	return &h.last
}

// describe turns a segment of the subflow's into a pkt.
func (h *harness) describe(seg *wire.Segment, r subflow.Range) pkt {
	p := pkt{seq: seg.Seq.Diff(localISS), len: r.Len}
	for i, c := range "FSR.U" {
		if seg.Flags.Has([]wire.Flags{wire.FIN, wire.SYN, wire.RST, wire.ACK, wire.URG}[i]) {
			p.flags += string(c)
		}
	}
	if seg.Flags.Has(wire.ACK) {
		p.ack = seg.Ack.Diff(remoteISS)
	}
	p.wnd = int(seg.Wnd)
	if !seg.Flags.Has(wire.SYN) {
		p.wnd <<= 1 // MaxWindow 100000 needs one bit
	}
	if seg.Has&wire.OptSACK != 0 {
		for _, b := range seg.SACK[:seg.NumSACK] {
			p.sack = append(p.sack, [2]int{b.Left.Diff(remoteISS), b.Right.Diff(remoteISS)})
		}
	}
	return p
}

// wantIdle checks that there is nothing to send.
func (h *harness) wantIdle(why string) {
	h.t.Helper()
	var seg wire.Segment
	if _, ok := h.s.PollSegment(h.now, &seg); ok {
		h.t.Fatalf("%s: unexpected %v", why, &seg)
	}
}

// skip polls n segments without looking at them.
func (h *harness) skip(n int) {
	h.t.Helper()
	for range n {
		if _, ok := h.s.PollSegment(h.now, &h.last); !ok {
			h.t.Fatal("nothing to send")
		}
	}
}

// drain polls everything there is to send and returns how much payload.
func (h *harness) drain() (bytes int) {
	for {
		r, ok := h.s.PollSegment(h.now, &h.last)
		if !ok {
			return bytes
		}
		bytes += r.Len
	}
}

// advance lets time pass; timers act on the way.
func (h *harness) advance(d time.Duration) {
	h.t.Helper()
	until := h.now.Add(d)
	for n := 0; h.s.Deadline().Reached(until); n++ {
		require.Less(h.t, n, 1000, "timers fire without end")
		h.now = max(h.now, h.s.Deadline())
		h.s.HandleTimeout(h.now)
		require.False(h.t, h.s.Deadline().Reached(h.now), "deadline in the past after HandleTimeout")
	}
	h.now = until
}

// advanceToDeadline moves to the next deadline, lets the timer act, and
// returns how long that took.
func (h *harness) advanceToDeadline() time.Duration {
	h.t.Helper()
	d := h.s.Deadline()
	require.True(h.t, d.Set(), "no deadline")
	was := h.now
	h.advance(d.Sub(h.now))
	return h.now.Sub(was)
}

// push pushes n bytes whatever Room says.
func (h *harness) push(n int) { h.s.Push(h.now, n) }

// fill pushes and sends n full segments.
func (h *harness) fill(n int) {
	h.t.Helper()
	h.push(n * mss)
	require.Equal(h.t, n*mss, h.drain())
}

func (h *harness) wantEvent(why string, k subflow.EventKind) subflow.Event {
	h.t.Helper()
	e, ok := h.s.PollEvent()
	require.True(h.t, ok, why)
	require.Equal(h.t, k, e.Kind, why)
	return e
}

func (h *harness) wantNoEvent(why string) {
	h.t.Helper()
	e, ok := h.s.PollEvent()
	require.False(h.t, ok, "%s: %+v", why, e)
}

func (h *harness) wantState(s subflow.State) {
	h.t.Helper()
	require.Equal(h.t, s.String(), h.s.State().String())
}

// data takes all received payload and checks that byte i of the stream is
// byte(i+1), as in makes it.
func (h *harness) data() int {
	h.t.Helper()
	n := 0
	var d subflow.Data
	for h.s.NextData(&d) {
		off := int(d.Off)
		for _, v := range d.Views {
			for _, b := range v {
				require.Equal(h.t, byte(off+1), b, "offset %d", off)
				off++
			}
			n += len(v)
		}
	}
	return n
}

type knob = func(*subflow.Config)

// newSynSent returns a client whose SYN is under way.
func newSynSent(t *testing.T, knobs ...knob) *harness {
	h := newHarness(t)
	cfg := harnessConfig()
	for _, k := range knobs {
		k(&cfg)
	}
	h.tsOn = !cfg.NoTimestamps
	h.s = subflow.Open(h.now, cfg, h.ctl)
	h.want("SYN", pkt{flags: "S"})
	return h
}

// newSynReceived returns a server whose SYN/ACK is under way.
func newSynReceived(t *testing.T, knobs ...knob) *harness {
	h := newHarness(t)
	cfg := harnessConfig()
	for _, k := range knobs {
		k(&cfg)
	}
	h.tsOn = !cfg.NoTimestamps
	h.s = subflow.Accept(h.now, cfg, h.ctl, h.segment(pkt{flags: "S"}))
	h.want("SYN/ACK", pkt{flags: "S.", ack: 1})
	return h
}

// newEstablished returns a client whose handshake took 100 ms. The next byte
// is number 1 on either side.
func newEstablished(t *testing.T, knobs ...knob) *harness {
	h := newSynSent(t, knobs...)
	h.now = h.now.Add(100 * time.Millisecond)
	require.Equal(t, subflow.Accepted, h.in(pkt{flags: "S.", ack: 1}))
	h.want("third ACK", pkt{flags: ".", seq: 1, ack: 1})
	h.wantEvent("handshake done", subflow.EventEstablished)
	h.wantState(subflow.StateEstablished)
	return h
}

func newFinWait1(t *testing.T, knobs ...knob) *harness {
	h := newEstablished(t, knobs...)
	h.s.Close(h.now)
	h.want("our FIN", pkt{flags: "F.", seq: 1, ack: 1})
	return h
}

func newFinWait2(t *testing.T, knobs ...knob) *harness {
	h := newFinWait1(t, knobs...)
	h.in(pkt{flags: ".", seq: 1, ack: 2})
	h.wantState(subflow.StateFinWait2)
	return h
}

func newCloseWait(t *testing.T, knobs ...knob) *harness {
	h := newEstablished(t, knobs...)
	h.in(pkt{flags: "F.", seq: 1, ack: 1})
	h.want("ACK of the FIN", pkt{flags: ".", seq: 1, ack: 2})
	h.wantState(subflow.StateCloseWait)
	return h
}

func newClosing(t *testing.T, knobs ...knob) *harness {
	h := newFinWait1(t, knobs...)
	h.in(pkt{flags: "F.", seq: 1, ack: 1})
	h.want("ACK of the FIN", pkt{flags: ".", seq: 2, ack: 2})
	h.wantState(subflow.StateClosing)
	return h
}

func newLastAck(t *testing.T, knobs ...knob) *harness {
	h := newCloseWait(t, knobs...)
	h.s.Close(h.now)
	h.want("our FIN", pkt{flags: "F.", seq: 1, ack: 2})
	h.wantState(subflow.StateLastAck)
	return h
}

func newTimeWait(t *testing.T, knobs ...knob) *harness {
	h := newFinWait2(t, knobs...)
	h.in(pkt{flags: "F.", seq: 1, ack: 2})
	h.wantState(subflow.StateTimeWait)
	h.want("ACK of the FIN", pkt{flags: ".", seq: 2, ack: 2})
	h.wantEvent("the host takes over", subflow.EventTimeWait)
	return h
}

// quickly uses the quick ACKs of the beginning up: it delivers 16 segments of
// one byte and returns the number of the next byte in.
func (h *harness) quickly() int {
	h.t.Helper()
	for i := range 16 {
		h.in(pkt{flags: ".", seq: 1 + i, ack: 1, len: 1})
		h.want("quick ACK", pkt{flags: ".", seq: 1, ack: 2 + i})
	}
	require.Equal(h.t, 16, h.data())
	return 17
}
