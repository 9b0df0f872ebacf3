package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// extensionItems are those of RFC 7323 and RFC 2018.
var extensionItems = []Item{
	{ID: "T38", Section: "RFC 7323 2.2", Level: "MUST", Title: "windows are scaled only if both SYNs say so", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		in := s.open(Offer{NoWS: true, Plain: true}).wantSYNACK(Offer{NoWS: true})
		s.Check(in.Has&wire.OptWScale == 0, "SYN/ACK offers a scale that the SYN did not: %v", &in.Segment)
	}},
	{ID: "T39", Section: "RFC 7323 2.3", Level: "MUST", Title: "a shift above 14 counts as 14", Play: func(s *Script) {
		d := s.connectPlain(Offer{Scale: 15, Wnd: 1 << 15})
		f := d.first()
		f.mute = true
		d.write(400000)
		most := 0
		for range 8 {
			una := f.rcvNxt
			s.Wait(20 * time.Millisecond)
			most = max(most, f.rcvNxt.Diff(una))
			f.wnd = 1 << 15 // one unit of 2^15
			f.ack()
		}
		s.Check(most <= 1<<14, "%d bytes are sent into a window of 1 << 14", most)
		s.Check(most > 1<<12, "only %d bytes are sent into a window of 1 << 14", most)
	}},
	{ID: "T40", Section: "RFC 7323 2.4", Level: "MUST", Title: "the window's edge never moves left", Setup: Setup{ReadBuffer: 128 << 10}, Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		edge := f.sndNxt
		look := func() {
			s.Wait(2 * time.Millisecond)
			for _, in := range f.in {
				e := in.Ack.Add(int(in.Wnd) << f.theirs)
				s.Check(e.Diff(edge) > -1<<f.theirs, "the edge moves back by %d: %v", edge.Diff(e), &in.Segment)
				edge = edge.Max(e)
			}
			f.in = nil
		}
		f.data(1000)
		look()
		for range 4 {
			for i := 0; f.sndNxt.Add(1000).LessEq(edge) && i < 500; i++ {
				f.data(1000)
				look()
			}
			d.wantRead("a slow reader", min(3000, d.sent-d.read))
			look()
		}
		s.Wait(quietly / 4)
		s.Check(f.sndUna == f.sndNxt, "data up to the edge is not acknowledged")
	}},
	{ID: "T41", Section: "RFC 7323 3.2", Level: "MUST", Title: "agreed timestamps are in every segment", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.first()
		f.data(10)
		d.wantRead("data", 10)
		d.write(20000)
		d.wantAll("data", soon)
		s.must(d.app.CloseWrite(), "close")
		f.dataFin()
		f.each(quietly)
		f.rst(func(o *Out) { o.Seq = o.Seq.Add(10) })
		s.Wait(quietly / 10)
		for _, in := range f.in {
			s.Check(isRST(in) || in.Has&wire.OptTimestamps != 0, "segment without timestamps: %v", &in.Segment)
		}
	}},
	{ID: "T42", Section: "RFC 7323 3.2", Level: "SHOULD", Title: "a segment that lacks agreed timestamps is dropped", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		o := f.mapped(pattern(d.sent, 10), d.sndNxt)
		o.NoTS = true
		seq := f.sndNxt
		f.send(o)
		f.sndNxt = seq
		f.none("RST for a lack of timestamps", quietly, isRST)
		d.noRead("data without timestamps")
		d.wantAlive("data after it")
	}},
	{ID: "T42b", Section: "RFC 7323 3.2", Level: "MUST", Title: "timestamps that were not agreed are ignored", Play: func(s *Script) {
		d := s.connectPlain(Offer{NoTS: true})
		d.first().sendRaw([]byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0})
		d.wantRead("data with timestamps that were not agreed", 10)
	}},
	{ID: "T43", Section: "RFC 7323 4.3", Level: "MUST", Title: "which timestamp is echoed", Play: t43},
	{ID: "T44", Section: "RFC 7323 5.3", Level: "MUST", Title: "segments with old timestamps are dropped, RST is not", Play: func(s *Script) {
		d := s.connectPlain(Offer{TSBase: 1 << 20})
		f := d.first()
		o := f.mapped(pattern(d.sent, 10), d.sndNxt)
		o.TSVal = 5
		seq := f.sndNxt
		f.send(o)
		f.sndNxt = seq
		f.want("ACK of a segment with an old timestamp", soon, all(isPureACK, acks(seq)))
		d.noRead("data with an old timestamp")
		f.rst(func(o *Out) { o.TSVal = 5 })
		d.wantBroken("RST with an old timestamp")
	}},
	{ID: "T45", Section: "RFC 2018 2", Level: "MUST", Title: "no SACK unless the SYN permits it", Play: func(s *Script) {
		d := s.connectPlain(Offer{NoSACK: true})
		f := d.first()
		f.holes(1)
		in := f.want("duplicate ACK", soon, isPureACK)
		s.Check(in.option(5, anySubtype) == nil, "SACK although it was not permitted: %v", &in.Segment)
	}},
	{ID: "T46", Section: "RFC 2018 4", Level: "MUST", Title: "the first SACK block holds the latest segment", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		for i := range 3 {
			f.holes(1)
			in := f.want("duplicate ACK with SACK", soon, has(wire.OptSACK))
			s.Check(int(in.NumSACK) == i+1, "%d SACK blocks after %d holes: %v", in.NumSACK, i+1, &in.Segment)
			s.Check(in.SACK[0].Right == f.sndNxt, "first block ends at %d, want %d", in.SACK[0].Right, f.sndNxt)
			if i > 0 {
				s.Check(in.SACK[1].Right == f.sndNxt.Add(-200), "second block is not the one before: %v", &in.Segment)
			}
		}
	}},
	{ID: "T47", Section: "RFC 2018 8", Level: "MUST", Title: "data is kept until it is acknowledged, SACK or not", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.mute = true
		d.write(10000)
		first := f.want("data", soon, isData)
		second := f.want("more data", soon, isData)
		f.each(10 * time.Millisecond)
		o := f.out(wire.ACK)
		o.Ack = first.Seq
		o.Has |= wire.OptSACK
		o.NumSACK = 1
		o.SACK[0] = wire.SACKBlock{Left: second.Seq, Right: f.rcvNxt}
		f.send(o)
		f.want("left edge again", 5*time.Second, all(isData, at(first.Seq)))
		o = f.out(wire.ACK)
		o.Ack = second.Seq
		f.send(o)
		f.want("data whose SACK was taken back", 10*time.Second, all(isData, at(second.Seq)))
	}},
}

// holes sends n times 100 bytes that leave 100 bytes out.
func (f *Flow) holes(n int) {
	for range n {
		_, _ = f.d.take(100)
		f.sndNxt = f.sndNxt.Add(100)
		f.data(100)
	}
}

func t43(s *Script) {
	d := s.connectPlain(Offer{TSBase: 1000})
	f := d.first()
	stamped := func(at seq.SSN, n int, ts uint32) {
		o := f.out(wire.ACK)
		o.Seq = at
		o.Payload = append(o.Payload, pattern(at.Diff(f.iss)-1, n))
		o.TSVal = ts
		f.send(o)
	}
	begin, ts := f.sndNxt, f.clock()+1000
	stamped(begin, 1428, ts)
	stamped(begin.Add(1428), 1428, ts+1)
	want, in := ts, f.want("ACK of full segments", soon, any1(acks(begin.Add(1428)), acks(begin.Add(2856))))
	if in.Ack == begin.Add(1428) { // each has an ACK of its own
		in, want = f.want("ACK of the second segment", soon, acks(begin.Add(2856))), ts+1
	}
	s.Check(in.TSEcr == want, "full segments are acknowledged with TSecr +%d, want +%d", in.TSEcr-ts, want-ts)
	s.Wait(quietly)
	f.forget()
	stamped(begin.Add(2956), 100, ts+50)
	in = f.want("ACK of a hole", soon, isPureACK)
	s.Check(in.TSEcr == ts+1 || in.TSEcr == ts, "an ACK of a hole has TSecr +%d, want that of the last segment in order", in.TSEcr-ts)
	stamped(begin.Add(2856), 100, ts+60)
	in = f.want("ACK of the filled hole", soon, acks(begin.Add(3056)))
	s.Check(in.TSEcr == ts+60, "the ACK of a filled hole has TSecr +%d, want the filler's", in.TSEcr-ts)
}
