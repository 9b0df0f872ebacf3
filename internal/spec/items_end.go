package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// endItems are those of RFC 8684, Sections 3.5 and 3.6.
var endItems = []Item{
	{ID: "M119", Section: "RFC 8684 3.5", Level: "is", Title: "an abort sends MP_FASTCLOSE with the peer's key", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		s.must(d.app.Abort(), "abort")
		_, in := d.wantOn("MP_FASTCLOSE", soon, has(wire.OptFastClose))
		o := in.option(kindMPTCP, subFastClose)
		s.Check(len(o) == 12 && [8]byte(o[4:]) == d.localKey, "MP_FASTCLOSE is %x, want 12 bytes with key %x", o, d.localKey)
		if isRST(in) {
			d.first().wantRST("the first subflow of an aborted connection", soon)
			g.wantRST("the second subflow of an aborted connection", soon)
			return
		}
		f := d.first()
		if in.Dst == f.local {
			f = g
		}
		f.wantRST("the other subflow of an aborted connection", soon)
	}},
	{ID: "M120", Section: "RFC 8684 3.5", Level: "is", Title: "MP_FASTCLOSE on an ACK ends the connection", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		d.fastClose(wire.ACK, d.remoteKey)
		d.first().wantRST("MP_FASTCLOSE on this subflow", soon)
		g.wantRST("MP_FASTCLOSE on the other subflow", soon)
		d.wantBroken("after MP_FASTCLOSE")
	}},
	{ID: "M121", Section: "RFC 8684 3.5", Level: "is", Title: "MP_FASTCLOSE on a RST ends the connection", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		d.fastClose(wire.ACK|wire.RST, d.remoteKey)
		g.wantRST("MP_FASTCLOSE with RST on the other subflow", soon)
		d.wantBroken("after MP_FASTCLOSE")
	}},
	{ID: "M122", Section: "RFC 8684 3.5", Level: "is", Title: "MP_FASTCLOSE with a wrong key has no effect", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		wrong := d.remoteKey
		wrong[0] ^= 1
		d.fastClose(wire.ACK, wrong)
		d.first().none("RST for a wrong key", quietly, isRST)
		d.wantAlive("after MP_FASTCLOSE with a wrong key")
		d.fastClose(wire.ACK|wire.RST, wrong)
		g.none("RST on the other subflow for a wrong key", quietly, isRST)
		g.data(10)
		d.wantRead("data on the other subflow", 10)
	}},
	{ID: "M123", Section: "RFC 8684 3.5", Level: "is", Title: "crossing fast closes end in RST", Setup: Setup{FastCloseByACK: true}, Play: func(s *Script) {
		d, in := s.aborted()
		d.fastClose(wire.ACK, d.remoteKey)
		d.first().wantRST("crossing MP_FASTCLOSE", soon)
		_ = in
	}},
	{ID: "M124", Section: "RFC 8684 3.5", Level: "SHOULD", Title: "an unanswered MP_FASTCLOSE is repeated, a few times", Setup: Setup{FastCloseByACK: true}, Play: func(s *Script) {
		d, _ := s.aborted()
		n := 0
		for d.first().next(30*time.Second, all(has(wire.OptFastClose), not(isRST))) != nil {
			n++
		}
		s.Check(n >= 1 && n <= 6, "MP_FASTCLOSE is repeated %d times, 3 are recommended", n)
	}},
	{ID: "M125", Section: "RFC 8684 3.5", Level: "SHOULD", Title: "giving up a fast close sends RST with MP_FASTCLOSE", Setup: Setup{FastCloseByACK: true}, Play: func(s *Script) {
		d, _ := s.aborted()
		in := d.first().want("RST with MP_FASTCLOSE at last", time.Minute, isRST)
		s.Check(in.Has&wire.OptFastClose != 0, "the last RST has no MP_FASTCLOSE: %v", &in.Segment)
	}},
	{ID: "M126", Section: "RFC 8684 3.6", Level: "MUST", Title: "unassigned bits of MP_TCPRST are sent as 0", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}, Edit: func(o *Out) { o.Join.Token ^= 1 }})
		o := f.wantRST("join with an unknown token", soon).option(kindMPTCP, subTCPRst)
		if o == nil {
			s.Skipf("the RST has no MP_TCPRST")
		}
		s.Check(len(o) == 4 && o[2]&0x0e == 0 && o[3] <= 6, "MP_TCPRST is %x", o)
	}},
	{ID: "M126b", Section: "RFC 8684 3.6", Level: "MUST", Title: "unassigned bits of MP_TCPRST are ignored", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		g.rst(func(o *Out) { o.Raw = []byte{kindMPTCP, 4, subTCPRst<<4 | 0x0f, 1} })
		s.Wait(quietly / 10)
		d.wantAlive("the first subflow after the RST of another")
		g.forget()
		o := g.out(wire.ACK)
		g.send(o)
		g.wantRST("the subflow that was reset", soon)
	}},
	{ID: "M127", Section: "RFC 8684 3.6", Level: "SHOULD", Title: "a path reset for good is not joined again", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		g := d.joined(syn, Join{})
		g.rst(func(o *Out) {
			o.Has |= wire.OptMPTCPRst
			o.TCPRst = wire.TCPRst{Reason: reason.ResetProhibited}
		})
		during := 15 * time.Second
		if s.T.Virtual() {
			during = 5 * time.Minute
		}
		s.noStray("join of a path that was reset without T", during, joinSYN)
	}},
	{ID: "M143", Section: "RFC 8684 4", Level: "is", Title: "RST ends its subflow only, even the last", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.first().rst(nil)
		s.Wait(quietly / 10)
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}})
		f.want("answer to a join after the RST", soon, isSYNACK)
	}},
}

// fastClose sends MP_FASTCLOSE on the first flow.
func (d *Dialog) fastClose(flags wire.Flags, k [8]byte) {
	o := d.first().out(flags)
	o.Has |= wire.OptFastClose
	o.FastClose = k
	d.first().send(o)
}

// aborted is a connection that the target has aborted by MP_FASTCLOSE on an
// ACK.
func (s *Script) aborted() (*Dialog, *In) {
	d := s.connect(Offer{}).warm()
	d.first().mute = true
	s.must(d.app.Abort(), "abort")
	in := d.first().want("MP_FASTCLOSE", soon, has(wire.OptFastClose))
	if isRST(in) {
		s.Skipf("the target sends MP_FASTCLOSE with RST, as it may")
	}
	return d, in
}

// fallbackItems are those of RFC 8684, Sections 3.7 and 3.8.
var fallbackItems = []Item{
	{ID: "M128", Section: "RFC 8684 3.7", Level: "MUST", Title: "every segment has a mapping until a DATA_ACK came", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.first()
		f.mute = true
		d.write(7000)
		n := 1
		s.Check(mapping(f.want("data", soon, isData)), "the first data has no mapping")
		for _, in := range f.each(100 * time.Millisecond) {
			if isData(in) {
				s.Check(mapping(in), "data without a mapping before any DATA_ACK: %v", &in.Segment)
				n++
			}
		}
		s.Check(n >= 5, "only %d segments came", n)
	}},
	{ID: "M129", Section: "RFC 8684 3.7", Level: "MUST", Title: "first data of a joined subflow without DATA_ACK: RST", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		d.first().prio(true)
		g.noDSS = true
		d.write(1000)
		g.want("data on the joined subflow", soon, isData)
		g.wantRST("ACK without DATA_ACK on a joined subflow", soon, reason.ResetMiddlebox, reason.ResetMPTCP)
	}},
	{ID: "M130", Section: "RFC 8684 3.7", Level: "MUST", Title: "first data without DATA_ACK: infinite mapping, then plain TCP", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.first()
		f.noDSS = true
		d.write(1000)
		d.wantAll("first data", soon)
		d.write(1000)
		in := f.want("data after the fallback", soon, all(isData, not(at(f.irs.Add(1)))))
		s.Check(infinite(in), "data after the fallback has no infinite mapping: %v", &in.Segment)
		d.wantAll("data after the fallback", soon)
		f.forget()
		d.fallen = true
		d.wantPlain("after the infinite mapping")
	}},
	{ID: "M131", Section: "RFC 8684 3.7", Level: "MUST", Title: "bad checksum on one of several subflows: RST with MP_FAIL", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		p, dsn := d.take(100)
		o := g.mapped(p, dsn)
		o.DSS.Checksum ^= 1
		g.send(o)
		in := g.wantRST("bad checksum", soon)
		s.Check(in.Has&wire.OptMPFail != 0, "RST has no MP_FAIL: %v", &in.Segment)
		s.Check(in.FailDSN == dsn, "MP_FAIL names DSN +%d, want the start of the mapping +%d", in.FailDSN.Diff(d.idsn()), dsn.Diff(d.idsn()))
		s.Check(d.una.LessEq(dsn), "data with a bad checksum is DATA_ACKed")
		d.first().send(d.first().mapped(p, dsn))
		d.wantRead("the data again on another subflow", 100)
	}},
	{ID: "M132", Section: "RFC 8684 3.7", Level: "MUST", Title: "data after the DSN of an MP_FAIL is sent again", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		d.first().prio(true)
		g.mute, g.lose = true, anything
		d.write(1000)
		in := g.want("data on the joined subflow", soon, isData)
		dsn := d.dsnOf(in)
		g.rst(func(o *Out) {
			o.Has |= wire.OptMPFail
			o.FailDSN = dsn
		})
		again := d.first().want("the data on the first subflow", 5*time.Second, all(isData, mapping))
		s.Check(d.dsnOf(again) == dsn, "what comes has another DSN: %v", &again.Segment)
	}},
	{ID: "M133", Section: "RFC 8684 3.7", Level: "is", Title: "bad checksum on the only subflow: MP_FAIL on an ACK", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		dsn := d.badChecksum(d.sndNxt)
		in := d.first().want("MP_FAIL", soon, has(wire.OptMPFail))
		s.Check(!isRST(in), "MP_FAIL comes with RST although the stream is contiguous")
		s.Check(in.FailDSN == dsn, "MP_FAIL names DSN +%d, want +%d", in.FailDSN.Diff(d.idsn()), dsn.Diff(d.idsn()))
	}},
	{ID: "M134", Section: "RFC 8684 3.7", Level: "MUST", Title: "MP_FAIL on an ACK is answered, and followed by an infinite mapping", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		f := d.first()
		f.mute = true
		d.write(1000)
		dsn := d.dsnOf(f.want("data", soon, isData))
		o := f.out(wire.ACK)
		f.dataAck(o)
		o.DSS.Ack = uint64(dsn)
		o.Has |= wire.OptMPFail
		o.FailDSN = dsn
		f.send(o)
		d.write(1000)
		fail, inf := false, false
		for _, in := range f.each(5 * time.Second) {
			fail = fail || in.Has&wire.OptMPFail != 0
			inf = inf || infinite(in)
			s.Check(!isRST(in), "RST in answer to MP_FAIL on the only subflow: %v", &in.Segment)
		}
		s.Check(inf, "no infinite mapping follows an MP_FAIL")
		s.Check(fail, "no MP_FAIL answers an MP_FAIL")
	}},
	{ID: "M135", Section: "RFC 8684 3.7", Level: "MUST", Title: "bad checksum with holes in the data: RST with MP_FAIL", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		f := d.first()
		_, _ = d.take(100) // the hole
		p, dsn := d.take(100)
		f.send(f.mapped(p, dsn))
		s.Wait(quietly / 10)
		d.badChecksum(d.sndNxt)
		in := f.want("RST", soon, isRST)
		s.Check(in.Has&wire.OptMPFail != 0, "RST has no MP_FAIL: %v", &in.Segment)
	}},
	{ID: "M137", Section: "RFC 8684 3.7", Level: "MUST", Title: "after the infinite mapping only subflow ACKs count", Play: func(s *Script) {
		d := s.fellBack()
		f := d.first()
		f.mute = true
		d.write(1000)
		first := f.want("data", soon, isData)
		o := f.out(wire.ACK)
		o.Ack = first.Seq
		o.Has |= wire.OptDSS
		o.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: uint64(d.rcvNxt.Add(100000))}
		f.send(o)
		f.want("retransmission in spite of a DATA_ACK", 5*time.Second, all(isData, at(first.Seq)))
	}},
	{ID: "M138", Section: "RFC 8684 3.7", Level: "SHOULD", Title: "no DATA_ACK after an infinite mapping was received", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		p, dsn := d.take(100)
		o := f.mapped(p, dsn)
		o.DSS.Len, o.DSS.Checksum = 0, 0
		f.send(o)
		d.wantRead("data with an infinite mapping", 100)
		d.fallen = true
		s.Wait(quietly / 10)
		f.forget()
		f.data(3000)
		d.wantRead("plain data", 3000)
		s.Wait(quietly / 10)
		f.none("DATA_ACK after an infinite mapping", 0, hasDataAck)
	}},
	{ID: "M139", Section: "RFC 8684 3.7", Level: "MUST", Title: "a connection never comes back to MPTCP", Play: func(s *Script) {
		d := s.fellBack()
		d.joinSYN(Join{Offer: Offer{Peer: 1}}).wantRST("join after the fallback", soon)
		f := d.first()
		f.forget()
		d.fallen = false
		p, dsn := d.take(100)
		f.send(f.mapped(p, dsn))
		d.fallen = true
		d.wantRead("data with a DSS after the fallback", 100)
		d.write(100)
		d.wantPlainBytes("after a DSS after the fallback")
	}},
	{ID: "M140", Section: "RFC 8684 3.8", Level: "is", Title: "data outside the data window is dropped", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		dsn := d.sndNxt
		for _, far := range []seq.DSN{dsn.Add(1 << 30), dsn.Add(-1 << 30)} {
			f.send(f.mapped(make([]byte, 100), far))
			in := f.want("ACK on the subflow", soon, acks(f.sndNxt))
			s.Check(!hasDataAck(in) || d.ackOf(in) == dsn, "DATA_ACK moves: %v", &in.Segment)
		}
		d.wantAlive("data after what lay outside the window")
	}},
}

// badChecksum sends 100 bytes at dsn with a wrong checksum.
func (d *Dialog) badChecksum(dsn seq.DSN) seq.DSN {
	p := pattern(d.sent, 100)
	o := d.first().mapped(p, dsn)
	o.DSS.Checksum ^= 1
	d.first().send(o)
	return dsn
}

// fellBack is a connection that a lost DATA_ACK has turned into plain TCP.
func (s *Script) fellBack() *Dialog {
	d := s.connect(Offer{})
	f := d.first()
	f.noDSS = true
	d.write(1000)
	d.wantAll("first data", soon)
	d.write(1000)
	d.wantAll("data after the fallback", soon)
	d.fallen = true
	s.Wait(quietly / 10)
	f.forget()
	return d
}
