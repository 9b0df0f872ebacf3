package spec

import (
	"github.com/gomptcp/gomptcp/internal/wire"
)

// fastOpenItems are those of RFC 8684, Appendix B.
var fastOpenItems = []Item{
	{ID: "M147", Section: "RFC 8684 B.2", Level: "is", Title: "data on the SYN has no DSN", Setup: Setup{FastOpen: true}, Play: func(s *Script) {
		d := s.fastOpened(20)
		d.third()
		d.accept()
		d.wantRead("data on the SYN", 20)
		d.first().data(20)
		d.first().want("DATA_ACK of the first data after the SYN", soon, d.dataAcks(d.idsn().Add(21)))
		d.wantRead("data after that on the SYN", 20)
		d.write(100)
		d.wantAll("data of the target", soon)
	}},
	{ID: "M148", Section: "RFC 8684 B.3", Level: "is", Title: "data before the third ACK has a mapping and no DATA_ACK", Setup: Setup{FastOpen: true}, Play: func(s *Script) {
		d := s.fastOpened(20)
		d.accept()
		d.first().mute = true
		d.write(100)
		in := d.first().want("data before the third ACK", soon, isData)
		s.Check(in.Has&wire.OptDSS != 0 && in.DSS.Flags&wire.DSSMap != 0, "data before the third ACK has no mapping: %v", &in.Segment)
		s.Check(!hasDataAck(in), "data before the third ACK has a DATA_ACK although the keys are not known: %v", &in.Segment)
	}},
	{ID: "M149", Section: "RFC 8684 B.3", Level: "is", Title: "data on a SYN that is not taken may be sent again with a mapping", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		o := Offer{Edit: func(o *Out) { o.Payload = append(o.Payload, pattern(0, 20)) }}
		f := s.open(o)
		in := f.want("SYN/ACK", soon, isSYNACK)
		if in.Ack != f.iss.Add(1) {
			s.Failf("data without a cookie is acknowledged: %v", &in.Segment)
		}
		f.sndNxt = in.Ack
		f.agree(o.withDefaults(s), in)
		d := s.newDialog(f, o.withDefaults(s), in)
		d.learnKey(in.Capable.SenderKey)
		d.third()
		d.accept()
		f.data(20)
		d.wantRead("data that was on the SYN", 20)
		d.wantDataAcked("data that was on the SYN")
	}},
}

// fastOpened is a connection that began with n bytes on its SYN; the SYN/ACK
// has come and the third ACK is to be sent.
func (s *Script) fastOpened(n int) *Dialog {
	s.must(s.T.Listen(targetPort), "listen")
	f := s.open(Offer{Edit: func(o *Out) { o.Has |= wire.OptFastOpen }})
	in := f.wantSYNACK(Offer{})
	f.rst(nil)
	if in.Has&wire.OptFastOpen == 0 || in.FastOpen.Len == 0 {
		s.Skipf("the target gives no fast open cookie")
	}
	cookie := in.FastOpen
	o := Offer{Edit: func(o *Out) {
		o.Has |= wire.OptFastOpen
		o.FastOpen = cookie
		o.Payload = append(o.Payload, pattern(0, n))
	}}
	f = s.open(o)
	in = f.want("SYN/ACK", soon, isSYNACK)
	if in.Ack != f.sndNxt {
		s.Skipf("the target does not take the data on the SYN")
	}
	s.Check(in.Has&wire.OptMPCapable != 0, "SYN/ACK to data on the SYN has no MP_CAPABLE: %v", &in.Segment)
	f.agree(o.withDefaults(s), in)
	f.early = uint32(n)
	d := s.newDialog(f, o.withDefaults(s), in)
	d.learnKey(in.Capable.SenderKey)
	d.sent, d.keyed = n, true
	return d
}
