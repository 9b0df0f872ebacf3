package spec

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// stateItems are those of RFC 9293, Sections 3.5, 3.6 and 3.10, and of RFC
// 5961.
var stateItems = []Item{
	{ID: "T09", Section: "RFC 9293 3.5", Level: "MUST", Title: "simultaneous open works", Play: func(s *Script) {
		f, _, app := s.dialed(Offer{})
		d := &Dialog{s: s, app: app, flows: []*Flow{f}, fallen: true}
		o := f.out(wire.SYN)
		Offer{}.withDefaults(s).synOptions(o, nil)
		f.send(o)
		in := f.want("SYN/ACK", soon, isSYNACK)
		s.Check(in.Ack == f.sndNxt, "SYN/ACK acknowledges %d, want %d", in.Ack, f.sndNxt)
		f.d = d
		f.plainAck()
		d.wantPlain("after a simultaneous open")
	}},
	{ID: "T10", Section: "RFC 9293 3.5", Level: "MUST", Title: "RST in SYN-RECEIVED leaves the listener", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		f := s.open(Offer{})
		f.wantSYNACK(Offer{})
		f.rst(nil)
		s.Wait(quietly / 10)
		d := s.beginAgain(Offer{})
		d.third()
		d.accept().warm()
	}},
	{ID: "T13", Section: "RFC 9293 3.10.7.3", Level: "is", Title: "a bad ACK in SYN-SENT is answered with RST", Play: func(s *Script) {
		f, syn, _ := s.dialed(Offer{})
		f.mute = true
		o := f.out(wire.SYN | wire.ACK)
		o.Ack = o.Ack.Add(1)
		f.send(o)
		f.sndNxt = f.iss
		in := f.wantRST("SYN/ACK of what was not sent", soon)
		s.Check(in.Seq == syn.Seq.Add(2), "RST has SEQ %d, want SEG.ACK %d", in.Seq, syn.Seq.Add(2))
		f.synack(Offer{}, syn)
		f.want("third ACK after a right SYN/ACK", soon, all(isPureACK, acks(f.sndNxt)))
	}},
	{ID: "T14", Section: "RFC 9293 3.10.7.4", Level: "is", Title: "unacceptable segments are answered with an ACK", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		for _, off := range []int{-5, 1 << 29} {
			o := f.mapped(pattern(0, 5), d.sndNxt)
			o.Seq = o.Seq.Add(off)
			s.Wait(time.Second) // such ACKs may be limited
			f.forget()
			f.send(o)
			f.want("ACK with RCV.NXT", soon, all(isPureACK, acks(f.sndNxt)))
		}
		d.noRead("unacceptable data")
	}},
	{ID: "T15", Section: "RFC 9293 3.10.7.4", Level: "is", Title: "an ACK of what was not sent drops its segment", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		o := f.mapped(pattern(d.sent, 10), d.sndNxt)
		o.Ack = o.Ack.Add(1000)
		seq := f.sndNxt
		f.send(o)
		f.sndNxt = seq
		f.want("ACK", soon, all(isPureACK, acks(seq)))
		d.noRead("data with an ACK of what was not sent")
		d.wantAlive("data after it")
	}},
	{ID: "T16", Section: "RFC 9293 3.10.7.4", Level: "SHOULD", Title: "data beyond a hole is kept", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		p, _ := d.take(300)
		for _, from := range []int{100, 200, 0} {
			o := f.out(wire.ACK)
			o.Seq = f.iss.Add(1 + from)
			o.Payload = append(o.Payload, p[from:from+100])
			f.sndNxt = f.iss.Add(1)
			f.send(o)
		}
		f.sndNxt = f.iss.Add(301)
		f.want("one ACK for all", soon, acks(f.sndNxt))
		d.wantRead("data whose hole was filled", 300)
	}},
	{ID: "T18", Section: "RFC 9293 3.4", Level: "MUST", Title: "RST is obeyed at a zero window", Setup: Setup{ReadBuffer: 16 << 10}, Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		for range 4096 {
			if f.theirWnd < 1000 {
				break
			}
			f.data(min(1000, f.theirWnd))
			s.Wait(time.Millisecond)
		}
		s.Wait(quietly / 4)
		if n := f.theirWnd; n > 0 {
			f.data(n)
			s.Wait(quietly / 4)
		}
		f.rst(func(o *Out) { o.Seq = f.sndUna })
		_, err := d.app.Read(1<<20, soon)
		s.Check(err == ErrReset, "RST at window %d: the application read %v", f.theirWnd, err)
	}},
	{ID: "T19", Section: "RFC 9293 3.6.1", Level: "SHOULD", Title: "close with unread data resets", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.data(1000)
		f.want("ACK", soon, acks(f.sndNxt))
		s.must(d.app.Close(), "close")
		f.wantRST("close with unread data", soon)
	}},
	{ID: "T20", Section: "RFC 9293 3.6", Level: "MUST", Title: "TIME-WAIT acknowledges a repeated FIN", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		s.must(d.app.Close(), "close")
		f.want("FIN", soon, isFIN)
		f.fin()
		f.want("ACK of the FIN", soon, acks(f.sndNxt))
		s.Wait(quietly)
		f.forget()
		f.sndNxt = f.sndNxt.Add(-1)
		f.fin()
		f.want("ACK of the repeated FIN", soon, all(isPureACK, acks(f.sndNxt)))
	}},
	{ID: "T21", Section: "RFC 9293 3.6", Level: "MUST", Title: "the application tells FIN from RST", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		d.first().fin()
		d.wantEOF("after FIN")
		d.first().rst(nil)
		o := s.open(Offer{Plain: true})
		in := o.wantSYNACK(Offer{})
		e := s.newDialog(o, Offer{}.withDefaults(s), in)
		e.fallen = true
		o.plainAck()
		e.accept()
		o.rst(nil)
		e.wantBroken("after RST")
	}},
	{ID: "T32", Section: "RFC 9293 3.9.2.2", Level: "MUST", Title: "soft ICMP errors and source quench do not abort", Only: OnlyIPv4, Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		f.mute = true
		d.write(1000)
		in := f.want("data", soon, isData)
		for _, e := range []ICMP{ICMPNet, ICMPHost, ICMPQuench} {
			s.must(s.T.ICMP(Packet{Src: in.Src.Addr(), Dst: in.Dst.Addr(), TCP: in.TCP}, e), "ICMP")
		}
		f.none("RST after soft errors", quietly/4, isRST)
		f.mute = false
		f.ack()
		d.wantAlive("data after soft errors")
	}},
	{ID: "T34", Section: "RFC 5961 3.2", Level: "SHOULD", Title: "RST in the window but not exact is challenged", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.rst(func(o *Out) { o.Seq = o.Seq.Add(100) })
		f.want("challenge ACK", soon, all(isPureACK, acks(f.sndNxt)))
		s.Wait(time.Second)
		f.forget()
		f.rst(func(o *Out) { o.Seq = o.Seq.Add(1 << 29) })
		f.none("answer to a RST outside the window", quietly, anything)
		d.wantAlive("after RSTs that were not exact")
		f.rst(nil)
		d.wantBroken("after an exact RST")
	}},
	{ID: "T35", Section: "RFC 5961 4.2", Level: "SHOULD", Title: "SYN on a connection is challenged", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		for _, off := range []int{0, 100, 1 << 29} {
			s.Wait(time.Second)
			f.forget()
			o := f.out(wire.SYN)
			o.Seq = f.sndNxt.Add(off)
			seq := f.sndNxt
			f.send(o)
			f.sndNxt = seq
			f.want("challenge ACK", soon, all(isPureACK, acks(seq)))
		}
		d.wantAlive("after SYNs")
	}},
	{ID: "T36", Section: "RFC 5961 5.2", Level: "MAY", Title: "data with an ACK that is too old is dropped", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		o := f.mapped(pattern(d.sent, 10), d.sndNxt)
		o.Ack = o.Ack.Add(-1 << 29)
		seq := f.sndNxt
		f.send(o)
		f.sndNxt = seq
		f.want("ACK", soon, all(isPureACK, acks(seq)))
		d.noRead("data with an ACK that is too old")
		d.wantAlive("data after it")
	}},
	{ID: "T37", Section: "RFC 5961 7", Level: "SHOULD", Title: "challenge ACKs are limited", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		for range 300 {
			f.rst(func(o *Out) { o.Seq = o.Seq.Add(100) })
		}
		n := 0
		for _, in := range f.each(quietly) {
			if isPureACK(in) {
				n++
			}
		}
		s.Check(n <= 150, "300 RSTs cause %d challenge ACKs", n)
		d.wantAlive("after many RSTs")
	}},
}

// notPeers are addresses that no segment may come from.
func (s *Script) notPeers() []netip.Addr {
	if s.Setup.IPv6 {
		return []netip.Addr{netip.MustParseAddr("ff02::1")}
	}
	return []netip.Addr{netip.MustParseAddr("224.0.0.1"), netip.MustParseAddr("255.255.255.255")}
}
