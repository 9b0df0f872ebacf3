package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// otherItems are those of RFC 8684, Section 3.9 on, and of its appendices.
var otherItems = []Item{
	{ID: "M141", Section: "RFC 8684 3.9.1", Level: "SHOULD", Title: "joins use the ports of the first subflow", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		s.Check(syn.Dst.Port() == d.first().local.Port(), "join goes to port %d, want %d", syn.Dst.Port(), d.first().local.Port())
		s.Check(syn.Src.Port() == d.first().remote.Port(), "join comes from port %d, want %d, which is free", syn.Src.Port(), d.first().remote.Port())
	}},
	{ID: "M144", Section: "RFC 8684 4", Level: "is", Title: "an announced address belongs to its connection", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		f, syn, app := s.dialed(Offer{Key: [8]byte{8, 8, 8, 8, 8, 8, 8, 8}})
		other := s.newDialog(f, Offer{Key: [8]byte{8, 8, 8, 8, 8, 8, 8, 8}}.withDefaults(s), syn)
		other.app = app
		f.synack(Offer{Key: other.localKey}, syn)
		other.learnKey(f.want("third ACK", soon, has(wire.OptMPCapable)).Capable.SenderKey)
		other.keyed = true
		other.warm()
		d.announce(1, 0)
		join := s.wantStray("join of the announced address", soon, joinSYN)
		s.Check(join.Join.Token == uint32(d.localKey.Token()), "the join carries the token of another connection")
		s.noStray("join of the other connection", quietly, func(in *In) bool {
			return joinSYN(in) && in.Join.Token == uint32(other.localKey.Token())
		})
	}},
	{ID: "M145", Section: "RFC 8684 5", Level: "is", Title: "announced addresses are not all tried at once", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		for i := range 20 {
			d.announce(i+1, 0)
		}
		n := 0
		for s.stray(quietly, joinSYN) != nil {
			n++
		}
		s.Check(n <= 16, "20 announced addresses cause %d SYNs", n)
	}},
	{ID: "M146", Section: "RFC 8684 A", Level: "is", Title: "options of 40 bytes hold DATA_ACK, timestamps and SACK", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.data(100)
		for range 4 {
			_, _ = d.take(100)
			f.sndNxt = f.sndNxt.Add(100)
			p, dsn := d.take(100)
			f.send(f.mapped(p, dsn))
		}
		f.want("ACK with SACK, timestamps and DATA_ACK", soon, all(has(wire.OptSACK|wire.OptTimestamps|wire.OptDSS), hasDataAck))
	}},
	{ID: "M150", Section: "RFC 8684 D", Level: "is", Title: "a repeated DATA_FIN after the end is answered and starts nothing", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.closeAll()
		f := d.first()
		f.forget()
		f.mute = true
		o := f.out(wire.ACK)
		o.Seq = o.Seq.Add(-1)
		f.mapTo(o, d.sndNxt.Add(-1), 0, nil)
		o.DSS.Flags |= wire.DSSFin
		o.DSS.Len = 1
		f.send(o)
		f.none("data or a second DATA_FIN after the end", quietly, any1(isData, hasDataFin))
		s.noStray("SYN after the end", 0, isSYN)
	}},
}

// segmentItems are those of RFC 9293, Sections 3.1 and 3.7.
var segmentItems = []Item{
	{ID: "T01", Section: "RFC 9293 3.1", Level: "MUST", Title: "a wrong checksum drops the segment", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		o := f.out(wire.ACK | wire.PSH)
		o.Payload = append(o.Payload, pattern(0, 10))
		o.Has, o.TSVal, o.TSEcr = wire.OptTimestamps, f.clock(), f.tsRecent
		p := packetOf(&o.Segment, nil, s.Now())
		p.TCP[16] ^= 1
		f.sendPacket(p, &o.Segment)
		f.none("answer to a segment with a wrong checksum", quietly, anything)
	}},
	{ID: "T02", Section: "RFC 9293 3.1", Level: "MUST", Title: "unknown options are skipped", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		d.first().sendRaw([]byte{253, 4, 0, 0})
		d.wantRead("data beside an unknown option", 10)
	}},
	{ID: "T03", Section: "RFC 9293 3.1", Level: "MUST", Title: "illegal option lengths do no harm", Play: func(s *Script) {
		d := s.connectPlain(Offer{NoTS: true})
		f := d.first()
		for _, raw := range [][]byte{{30, 0, 0, 0}, {30, 1, 0, 0}, {30, 40, 0x20, 0}, {1, 1, 1, 30}, {8, 0, 0, 0}} {
			o := f.out(wire.ACK)
			o.Raw = raw
			f.send(o)
		}
		f.none("RST for an illegal option", quietly/4, isRST)
		d.wantPlain("after illegal options")
	}},
	{ID: "T04", Section: "RFC 9293 3.2", Level: "MUST", Title: "options need no alignment", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		v, e := f.clock(), f.tsRecent
		f.sendRaw([]byte{1, 8, 10, byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v), byte(e >> 24), byte(e >> 16), byte(e >> 8), byte(e), 1})
		d.wantRead("data with unaligned timestamps", 10)
	}},
	{ID: "T05", Section: "RFC 9293 3.7.1", Level: "MUST", Title: "MSS is sent on SYNs only, and ignored elsewhere", Play: func(s *Script) {
		_, syn, _ := s.dialed(Offer{})
		s.Check(syn.Has&wire.OptMSS != 0, "SYN without MSS: %v", &syn.Segment)
		d := s.connectPlain(Offer{})
		f := d.first()
		o := f.out(wire.ACK)
		o.Raw = []byte{2, 4, 0, 100}
		f.send(o)
		d.write(3000)
		in := f.want("data", soon, isData)
		s.Check(in.PayloadLen() > 500, "MSS on an ACK made segments of %d bytes", in.PayloadLen())
		s.Check(in.Has&wire.OptMSS == 0, "MSS on a data segment: %v", &in.Segment)
	}},
	{ID: "T06", Section: "RFC 9293 3.7.1", Level: "MUST", Title: "without MSS segments have the default size at most", Play: func(s *Script) {
		d := s.connectPlain(Offer{NoMSS: true})
		most := 536
		if s.Setup.IPv6 {
			most = 1220
		}
		d.wantSegments(most)
	}},
	{ID: "T07", Section: "RFC 9293 3.7.1", Level: "MUST", Title: "payload and options fit the peer's MSS", Play: func(s *Script) {
		d := s.connect(Offer{MSS: 600}).warm()
		d.wantSegments(600)
	}},
	{ID: "T11", Section: "RFC 9293 3.10.7.1", Level: "is", Title: "a closed port answers with RST, but not to RST", Play: func(s *Script) {
		f := s.open(Offer{Plain: true})
		in := f.wantRST("SYN to a closed port", soon)
		s.Check(in.Seq == 0 && in.Ack == f.iss.Add(1), "RST has SEQ %d and ACK %d, want 0 and ISS+1", in.Seq, in.Ack)
		f.reset = nil
		o := f.out(wire.ACK)
		o.Ack = 777
		f.send(o)
		in = f.wantRST("ACK to a closed port", soon)
		s.Check(in.Seq == 777, "RST has SEQ %d, want SEG.ACK", in.Seq)
		f.rst(nil)
		f.none("answer to RST", quietly, anything)
	}},
	{ID: "T12", Section: "RFC 9293 3.10.7.2", Level: "is", Title: "a listener ignores RST and answers ACK with RST", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		f := s.newFlow(Offer{}.withDefaults(s), addrPort(s.T.Peer(0), 45000), addrPort(s.T.Addr(0), targetPort))
		f.rst(nil)
		f.none("answer to RST", quietly, anything)
		o := f.out(wire.ACK)
		o.Ack = 777
		f.send(o)
		in := f.wantRST("ACK to a listener", soon)
		s.Check(in.Seq == 777, "RST has SEQ %d, want SEG.ACK", in.Seq)
	}},
	{ID: "T33", Section: "RFC 9293 3.9.2.3", Level: "MUST", Title: "broadcast and multicast addresses are no peers", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		for _, src := range s.notPeers() {
			f := s.newFlow(Offer{}.withDefaults(s), addrPort(src, 45000), addrPort(s.T.Addr(0), targetPort))
			f.send(f.out(wire.SYN))
		}
		f := s.newFlow(Offer{}.withDefaults(s), addrPort(s.T.Peer(0), 45000), addrPort(s.notPeers()[0], targetPort))
		f.send(f.out(wire.SYN))
		s.Wait(quietly)
		for _, f := range s.flows {
			f.none("answer to a SYN from or to "+f.local.String(), 0, anything)
		}
		s.noStray("answer", 0, anything)
	}},
}

// sendRaw sends ten bytes of the stream with option bytes in place of the
// timestamps.
func (f *Flow) sendRaw(raw []byte) {
	p, _ := f.d.take(10)
	o := f.out(wire.ACK | wire.PSH)
	o.Payload = append(o.Payload, p)
	o.Raw = raw
	o.NoTS = len(raw) > 4
	f.send(o)
}

// wantSegments checks that payload and options of each segment of a transfer
// have at most the given size.
func (d *Dialog) wantSegments(most int) {
	f := d.first()
	f.forget()
	d.write(20000)
	d.wantAll("data", soon)
	for _, in := range f.in {
		n := len(in.TCP) - wire.HeaderSize
		d.s.Check(n <= most, "payload and options have %d bytes, more than %d: %v", n, most, &in.Segment)
	}
	d.s.Wait(10 * time.Millisecond)
}
