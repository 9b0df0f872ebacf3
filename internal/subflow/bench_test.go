package subflow_test

import (
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// benchEstablished returns a client with a large window on either side.
func benchEstablished(b *testing.B, segmentMax int) (*subflow.Subflow, mono.Time) {
	now := mono.Time(time.Hour)
	cfg := harnessConfig()
	cfg.SegmentMax, cfg.MaxWindow = segmentMax, 64<<20
	reno, err := cc.ByName("reno")
	if err != nil {
		b.Fatal(err)
	}
	s := subflow.Open(now, cfg, reno().Add(cc.Params{MSS: mss, InitialWindow: 8 << 20}))
	var seg wire.Segment
	s.PollSegment(now, &seg)
	syn := &wire.Segment{Header: wire.Header{Seq: remoteISS, Ack: localISS + 1, Flags: wire.SYN | wire.ACK, Wnd: 65535}}
	syn.Has = wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted
	syn.MSS, syn.WScale = 1460, 10
	now = now.Add(10 * time.Millisecond)
	s.HandleSegment(now, syn)
	s.HandleSegment(now, &wire.Segment{Header: wire.Header{Seq: remoteISS + 1, Ack: localISS + 1, Flags: wire.ACK, Wnd: 65535}})
	return s, now
}

// BenchmarkSendAck is one segment sent and acknowledged with 1000 in flight.
func BenchmarkSendAck(b *testing.B) {
	s, now := benchEstablished(b, 0)
	var seg wire.Segment
	s.Push(now, 1000*mss)
	for range 1001 {
		s.PollSegment(now, &seg)
	}
	in := &wire.Segment{Header: wire.Header{Seq: remoteISS + 1, Ack: localISS + 1, Flags: wire.ACK, Wnd: 65535}}
	b.ReportAllocs()
	for b.Loop() {
		s.Room(now, mss)
		s.Push(now, mss)
		s.PollSegment(now, &seg)
		in.Ack = in.Ack.Add(mss)
		now = now.Add(time.Microsecond)
		s.HandleSegment(now, in)
	}
}

// BenchmarkReceive is one full segment received, handed out and, every second
// time, acknowledged.
func BenchmarkReceive(b *testing.B) {
	s, now := benchEstablished(b, 0)
	payload := [][]byte{make([]byte, mss)}
	in := &wire.Segment{Header: wire.Header{Seq: remoteISS + 1, Ack: localISS + 1, Flags: wire.ACK, Wnd: 65535}}
	var seg wire.Segment
	var d subflow.Data
	b.ReportAllocs()
	for b.Loop() {
		in.Payload = payload
		s.HandleSegment(now, in)
		in.Seq = in.Seq.Add(mss)
		for s.NextData(&d) {
		}
		s.SetReceiveWindow(1 << 20)
		s.PollSegment(now, &seg)
	}
}

// BenchmarkSACK is one ACK with three blocks on a scoreboard of 4000 records,
// half of them SACKed one by one.
func BenchmarkSACK(b *testing.B) {
	s, now := benchEstablished(b, 0)
	var seg wire.Segment
	s.Push(now, 4000*mss)
	for range 4001 {
		s.PollSegment(now, &seg)
	}
	in := &wire.Segment{Header: wire.Header{Seq: remoteISS + 1, Ack: localISS + 1, Flags: wire.ACK, Wnd: 65535}}
	in.Has, in.NumSACK = wire.OptSACK, 3
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		for k := range in.SACK[:3] {
			at := max(i-k, 0) % 2000
			in.SACK[k].Left = localISS.Add(1 + (2*at+1)*mss)
			in.SACK[k].Right = in.SACK[k].Left.Add(mss)
		}
		i++
		s.HandleSegment(now, in)
	}
}
