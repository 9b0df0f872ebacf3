package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// dataItems are those of RFC 8684, Sections 3.3.2 and 3.3.3.
var dataItems = []Item{
	{ID: "M073", Section: "RFC 8684 3.3.2", Level: "is", Title: "DATA_ACK is the next DSN over all subflows", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		f := d.first()
		hole, dsn := d.take(100)
		rest, later := d.take(100)
		g.send(g.mapped(rest, later))
		in := g.want("ACK beyond a hole", soon, acks(g.sndNxt))
		s.Check(!hasDataAck(in) || d.ackOf(in) == dsn, "DATA_ACK moves over a hole: %v", &in.Segment)
		f.send(f.mapped(hole, dsn))
		d.wantRead("data whose hole was filled", 200)
		d.wantDataAcked("data whose hole was filled")
	}},
	{ID: "M074", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "a DSN of 8 bytes is answered by a DATA_ACK of 8", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.first().data(100)
		in := d.first().want("DATA_ACK", soon, hasDataAck)
		s.Check(in.DSS.Flags&wire.DSSAck8 != 0, "DATA_ACK has 4 bytes: %v", &in.Segment)
	}},
	{ID: "M076", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "a window without DATA_ACK does not count at the data level", Play: func(s *Script) {
		d := s.connect(Offer{Wnd: 5000}).warm()
		f := d.first()
		edge := d.rcvNxt.Add(5000)
		f.mute = true
		d.write(20000)
		f.each(quietly / 10)
		f.wnd = 0
		f.ack()
		f.each(quietly / 10)
		f.wnd = 1 << 20
		f.plainAck()
		f.none("data beyond the data-level window", quietly, func(in *In) bool {
			return in.PayloadLen() > 1 && mapping(in) && d.dsnOf(in).Add(in.PayloadLen()).Diff(edge) > 0
		})
	}},
	{ID: "M077", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "data without DATA_ACK is sent again", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.mute = true
		d.write(1000)
		first := f.want("data", soon, isData)
		dsn := d.dsnOf(first)
		f.ackBut(dsn)
		again := f.want("data again under a new SSN", 30*time.Second, all(isData, mapping, not(at(first.Seq))))
		s.Check(d.dsnOf(again) == dsn, "what comes next has another DSN: %v", &again.Segment)
	}},
	{ID: "M077b", Section: "RFC 8684 3.3.6", Level: "MUST", Title: "data without DATA_ACK moves to another subflow", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		d.muteAll(true)
		d.write(1000)
		f, in := d.wantOn("data", soon, isData)
		dsn := d.dsnOf(in)
		g := d.other(f)
		f.ackBut(dsn)
		again := g.want("the data on the other subflow", 30*time.Second, all(isData, mapping))
		s.Check(d.dsnOf(again) == dsn, "what comes has another DSN: %v", &again.Segment)
	}},
	{ID: "M078", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "a subflow repeats its bytes although they are DATA_ACKed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		d.muteAll(true)
		d.write(1000)
		f, in := d.wantOn("data", soon, isData)
		g := d.other(f)
		g.ack() // DATA_ACKs what f has
		again := f.want("the same bytes on the same subflow", 30*time.Second, all(isData, at(in.Seq)))
		s.Check(string(again.Data()) == string(in.Data()), "other bytes come under the same SSN")
	}},
	{ID: "M079", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "later ACKs may lack a DATA_ACK", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.mute = true
		for range 3 {
			d.write(1000)
			f.want("data", soon, isData)
			f.plainAck()
		}
		f.none("RST or infinite mapping", quietly/4, any1(isRST, infinite))
		f.mute = false
		f.ack()
		d.wantAlive("data after ACKs without DATA_ACK")
	}},
	{ID: "M080", Section: "RFC 8684 3.3.3", Level: "is", Title: "FIN closes its subflow only", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		g.fin()
		g.want("ACK of the FIN", soon, acks(g.sndNxt))
		d.noRead("after the FIN of a subflow")
		d.wantAlive("data on the remaining subflow")
	}},
	{ID: "M081", Section: "RFC 8684 3.3.3", Level: "is", Title: "DATA_FIN takes the last DSN of a mapping", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		p, dsn := d.take(10)
		o := f.mapped(p, dsn)
		o.DSS.Flags |= wire.DSSFin
		o.DSS.Len = 11
		d.sndNxt = d.sndNxt.Add(1)
		f.send(o)
		d.wantRead("data with DATA_FIN", 10)
		d.wantEOF("after the DATA_FIN")
		d.wantDataAcked("data with DATA_FIN")
	}},
	{ID: "M082", Section: "RFC 8684 3.3.3", Level: "MUST", Title: "a lone DATA_FIN has SSN 0 and length 1", Play: func(s *Script) { loneDataFin(s, Offer{}) }},
	{ID: "M082b", Section: "RFC 8684 3.3.3", Level: "MUST", Title: "the checksum of a lone DATA_FIN covers the pseudo-header", Play: func(s *Script) { loneDataFin(s, withChecksums) }},
	{ID: "M083", Section: "RFC 8684 3.3.3", Level: "is", Title: "DATA_FIN beyond a hole is not DATA_ACKed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		hole, dsn := d.take(10)
		g.dataFin()
		g.none("DATA_ACK beyond a hole", quietly, d.dataAcks(d.sndNxt))
		d.first().send(d.first().mapped(hole, dsn))
		d.wantRead("data before the DATA_FIN", 10)
		d.wantEOF("after the DATA_FIN")
		d.wantDataAcked("DATA_FIN after its hole was filled")
	}},
	{ID: "M084", Section: "RFC 8684 3.3.3", Level: "is", Title: "DATA_FIN is repeated until it is DATA_ACKed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.mute = true
		s.must(d.app.CloseWrite(), "close")
		for range 3 {
			f.want("DATA_FIN", 20*time.Second, hasDataFin)
		}
	}},
	{ID: "M085", Section: "RFC 8684 3.3.3", Level: "is", Title: "DATA_FIN closes one direction", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.first().dataFin()
		d.wantEOF("after the DATA_FIN")
		d.wantDataAcked("DATA_FIN")
		d.write(5000)
		d.wantAll("data of the target after the peer's DATA_FIN", soon)
	}},
	{ID: "M086", Section: "RFC 8684 3.3.3", Level: "MUST", Title: "the last subflow stays while data is not DATA_ACKed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.mute = true
		d.write(1000)
		in := f.want("data", soon, isData)
		dsn := d.dsnOf(in)
		s.must(d.app.CloseWrite(), "close")
		for end := s.Now().Add(5 * time.Second); ; f.ackBut(dsn) {
			in := f.next(end.Sub(s.Now()), any1(isData, isFIN))
			if in == nil {
				break
			}
			s.Check(!isFIN(in), "FIN on the last subflow while data is not DATA_ACKed: %v", &in.Segment)
		}
	}},
	{ID: "M087", Section: "RFC 8684 3.3.3", Level: "MUST", Title: "an acknowledged DATA_FIN closes all subflows by FIN", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		s.must(d.app.Close(), "close")
		d.wantFins()
	}},
	{ID: "M089", Section: "RFC 8684 3.3.3", Level: "is", Title: "a closed connection is not joined", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.closeAll()
		d.joinSYN(Join{Offer: Offer{Peer: 1}}).wantRST("join of a closed connection", soon)
	}},
	{ID: "M090", Section: "RFC 8684 3.3.3", Level: "is", Title: "a connection outlives its subflows' FINs", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.fin()
		f.want("ACK of the FIN", soon, acks(f.sndNxt))
		s.Wait(time.Second)
		s.Check(f.reset == nil, "FIN of the only subflow is answered with RST")
		g := d.join(Join{Offer: Offer{Peer: 1}})
		g.data(100)
		d.wantRead("data after break before make", 100)
	}},
}

// ackBut acknowledges all that came on the subflow but leaves the DATA_ACK at
// dsn.
func (f *Flow) ackBut(dsn seq.DSN) {
	next := f.d.rcvNxt
	f.d.rcvNxt = dsn
	f.ack()
	f.d.rcvNxt = next
}

// muteAll mutes all flows, or lets them speak.
func (d *Dialog) muteAll(mute bool) {
	for _, f := range d.flows {
		f.mute = mute
	}
}

// other returns the other one of two flows.
func (d *Dialog) other(f *Flow) *Flow {
	if d.flows[0] == f {
		return d.flows[1]
	}
	return d.flows[0]
}

// wantOn waits for a segment on whatever flow.
func (d *Dialog) wantOn(why string, within time.Duration, match Match) (*Flow, *In) {
	for end := d.s.Now().Add(within); ; {
		for _, f := range d.flows {
			if in := f.next(0, match); in != nil {
				return f, in
			}
		}
		if !d.s.pull(end) {
			d.s.Failf("%s: nothing like it came within %v on any subflow%s", why, within, d.s.lastWords())
		}
	}
}

// wantFins waits until the target has closed all flows by FIN.
func (d *Dialog) wantFins() {
	for _, f := range d.flows {
		for end := d.s.Now().Add(soon); !f.finned; {
			d.s.Check(f.reset == nil, "the subflow to %v is closed by RST", f.local)
			if !d.s.pull(end) {
				d.s.Failf("no FIN on the subflow to %v after the DATA_FIN was acknowledged", f.local)
			}
		}
	}
}

// closeAll closes the connection from both sides, in order.
func (d *Dialog) closeAll() {
	d.s.must(d.app.Close(), "close")
	for end := d.s.Now().Add(soon); !d.fin; {
		if !d.s.pull(end) {
			d.s.Failf("no DATA_FIN after close%s", d.s.lastWords())
		}
	}
	d.first().dataFin()
	d.s.Wait(quietly / 10)
	for _, f := range d.flows {
		f.fin()
	}
	d.s.Wait(quietly)
}

func loneDataFin(s *Script, o Offer) {
	d := s.connect(o).warm()
	s.must(d.app.CloseWrite(), "close")
	in := d.first().want("DATA_FIN", soon, hasDataFin)
	s.Check(!isData(in), "DATA_FIN comes with data although none was left: %v", &in.Segment)
	s.Check(in.DSS.SSN == 0 && in.DSS.Len == 1, "lone DATA_FIN has SSN %d and length %d", in.DSS.SSN, in.DSS.Len)
	if d.checksum {
		d.wantSealed(in)
	}
}
