package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// capableItems are those of RFC 8684, Section 3.1.
var capableItems = []Item{
	{ID: "M006", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "SYN offers version 1 in 4 bytes", Play: func(s *Script) {
		_, syn, _ := s.dialed(Offer{})
		o := syn.option(kindMPTCP, subCapable)
		s.Check(len(o) == 4 && o[2] == subCapable<<4|1, "MP_CAPABLE of the SYN is %x, want 4 bytes of version 1", o)
	}},
	{ID: "M007", Section: "RFC 8684 3.1", Level: "MUST", Title: "SYN/ACK has no version above that of the SYN", Play: m007},
	{ID: "M008", Section: "RFC 8684 3.1", Level: "MUST", Title: "no MP_CAPABLE in the SYN/ACK: plain TCP", Setup: Setup{Addrs: 2, Mesh: true}, Play: m008},
	{ID: "M009", Section: "RFC 8684 3.1", Level: "is", Title: "SYN/ACK carries the key in 12 bytes", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		in := s.open(Offer{}).wantSYNACK(Offer{})
		o := in.option(kindMPTCP, subCapable)
		s.Check(len(o) == 12 && o[2] == 1, "MP_CAPABLE of the SYN/ACK is %x, want 12 bytes of version 1", o)
	}},
	{ID: "M010", Section: "RFC 8684 3.1", Level: "is", Title: "third ACK carries both keys in 20 bytes", Play: func(s *Script) {
		d, ack := s.serve(Offer{})
		o := ack.option(kindMPTCP, subCapable)
		s.Check(len(o) == 20 || len(o) >= 22 && isData(ack), "MP_CAPABLE of the third ACK is %x, want 20 bytes", o)
		s.Check(d.remoteKey != key.Key{}, "the target's key is zero")
	}},
	{ID: "M011", Section: "RFC 8684 3.1", Level: "is", Title: "first data carries keys and length", Play: func(s *Script) {
		d, _ := s.serve(Offer{})
		d.wantFirstData(22)
	}},
	{ID: "M011b", Section: "RFC 8684 3.1", Level: "is", Title: "first data carries keys, length and checksum", Play: func(s *Script) {
		d, _ := s.serve(Offer{Flags: wire.CapHMACSHA256 | wire.CapChecksum})
		d.wantFirstData(24)
	}},
	{ID: "M012", Section: "RFC 8684 3.1", Level: "MUST", Title: "keys of live connections differ", Play: m012},
	{ID: "M015", Section: "RFC 8684 3.1", Level: "MUST", Title: "without data to send the first ACK carries the keys alone", Play: func(s *Script) {
		_, ack := s.serve(Offer{})
		o := ack.option(kindMPTCP, subCapable)
		s.Check(len(o) == 20 && ack.PayloadLen() == 0, "MP_CAPABLE of the bare ACK is %x, want 20 bytes", o)
	}},
	{ID: "M016", Section: "RFC 8684 3.1", Level: "is", Title: "a DSS of the peer proves that it has the keys", Play: func(s *Script) {
		d, _ := s.serve(Offer{})
		d.keyed = true
		d.first().data(10)
		d.wantRead("data of the peer", 10)
		d.wantDataAcked("data of the peer")
		d.write(10)
		in := d.first().want("data", soon, isData)
		s.Check(in.Has&wire.OptDSS != 0 && in.DSS.Flags&wire.DSSMap != 0, "data after a DSS of the peer has no DSS mapping: %v", &in.Segment)
	}},
	{ID: "M017", Section: "RFC 8684 3.1", Level: "is", Title: "MP_CAPABLE with data maps it at IDSN+1", Play: func(s *Script) {
		d := s.connect(Offer{})
		d.first().data(10)
		d.first().want("DATA_ACK of the first data", soon, d.dataAcks(d.idsn().Add(11)))
		d.wantRead("first data", 10)
	}},
	{ID: "M018", Section: "RFC 8684 3.1", Level: "is", Title: "keys may arrive with the first data only", Play: func(s *Script) {
		d := s.begin(Offer{})
		d.first().data(10)
		d.accept()
		d.wantRead("data in place of the third ACK", 10)
		d.wantDataAcked("data in place of the third ACK")
	}},
	{ID: "M019", Section: "RFC 8684 3.1", Level: "is", Title: "copied mappings are tolerated", Play: m019},
	{ID: "M020", Section: "RFC 8684 3.1", Level: "is", Title: "first data of both sides may cross", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.first()
		f.mute = true
		d.write(10)
		f.want("data of the target", soon, isData)
		o := f.out(wire.ACK)
		o.Ack = o.Ack.Add(-10)
		p, _ := d.take(10)
		o.Payload = append(o.Payload, p)
		o.Has |= wire.OptMPCapable
		o.Capable = f.capable(2)
		o.Capable.HasData, o.Capable.DataLen = true, 10
		f.send(o)
		f.mute = false
		f.ack()
		d.wantRead("data of the peer", 10)
		d.wantDataAcked("data of the peer")
		d.wantAll("data of the target", soon)
	}},
	{ID: "M021", Section: "RFC 8684 3.1", Level: "MUST", Title: "a wrong key in the third ACK ends MPTCP", Play: func(s *Script) {
		d := s.begin(Offer{})
		right := d.remoteKey
		d.remoteKey[0] ^= 1
		d.third()
		d.remoteKey = right
		d.fallen = true
		d.accept()
		d.wantPlain("after a third ACK with a wrong key")
	}},
	{ID: "M022", Section: "RFC 8684 3.1", Level: "MUST", Title: "no join before a DSS was received", Setup: Setup{Addrs: 2, Mesh: true}, Play: func(s *Script) {
		s.serve(Offer{})
		s.noStray("join before any DSS", 3*time.Second, joinSYN)
	}},
	{ID: "M022b", Section: "RFC 8684 3.1", Level: "MUST", Title: "a join before any DSS is not accepted", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}})
		f.none("SYN/ACK to a join before any DSS", quietly, isSYNACK)
	}},
	{ID: "M023", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "checksums are asked for by default", Play: func(s *Script) {
		_, syn, _ := s.dialed(Offer{})
		if syn.Capable.Flags&wire.CapChecksum == 0 {
			s.Deviate("DSS checksums are off unless asked for")
		}
	}},
	{ID: "M024", Section: "RFC 8684 3.1", Level: "MUST", Title: "flag B is sent as 0", Play: func(s *Script) {
		for _, in := range s.capables() {
			s.Check(in.Capable.Flags&wire.CapExtension == 0, "flag B is set in %v", &in.Segment)
		}
	}},
	{ID: "M025", Section: "RFC 8684 3.1", Level: "MUST", Title: "a SYN with flag B set is answered without MP_CAPABLE", Play: func(s *Script) {
		s.wantPlainSYNACK("SYN with flags 41", func(o *Out) { o.Capable.Flags = 0x41 })
	}},
	{ID: "M026", Section: "RFC 8684 3.1", Level: "MUST", Title: "no join to an address that flag C protects", Setup: Setup{Addrs: 2, Mesh: true}, Play: func(s *Script) {
		d, _ := s.serve(Offer{Flags: wire.CapHMACSHA256 | wire.CapDenyJoin})
		d.warm()
		s.noStray("join to the protected address", 3*time.Second, joinSYN)
	}},
	{ID: "M027", Section: "RFC 8684 3.1", Level: "MUST", Title: "of the algorithm flags H is set alone", Play: func(s *Script) {
		for _, in := range s.capables() {
			s.Check(in.Capable.Flags&wire.CapAlgorithms == wire.CapHMACSHA256, "flags of MP_CAPABLE are %02x in %v", in.Capable.Flags, &in.Segment)
		}
	}},
	{ID: "M028", Section: "RFC 8684 3.1", Level: "MUST", Title: "a SYN without algorithm is answered without MP_CAPABLE", Play: func(s *Script) {
		s.wantPlainSYNACK("SYN with flags 00", func(o *Out) { o.Capable.Flags = 0 })
	}},
	{ID: "M028b", Section: "RFC 8684 3.1", Level: "MUST", Title: "a SYN/ACK without algorithm is answered with a plain ACK", Play: func(s *Script) {
		f, syn, _ := s.dialed(Offer{})
		f.synack(Offer{Edit: func(o *Out) { o.Capable.Flags = 0 }}, syn)
		in := f.want("third ACK", soon, all(isPureACK, acks(f.sndNxt)))
		s.Check(!hasMPTCP(in), "third ACK has an MPTCP option: %v", &in.Segment)
	}},
	{ID: "M029", Section: "RFC 8684 3.1", Level: "MUST", Title: "one of several algorithms is chosen", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		in := s.open(Offer{Flags: 0x1f}).wantSYNACK(Offer{})
		s.Check(in.Has&wire.OptMPCapable != 0, "SYN with flags 1f is answered without MP_CAPABLE")
		s.Check(in.Capable.Flags&wire.CapAlgorithms == wire.CapHMACSHA256, "flags of the SYN/ACK are %02x, want H alone", in.Capable.Flags)
	}},
	{ID: "M029b", Section: "RFC 8684 3.1", Level: "MUST", Title: "no acceptable algorithm: no MP_CAPABLE", Play: func(s *Script) {
		s.wantPlainSYNACK("SYN with flags 1e", func(o *Out) { o.Capable.Flags = 0x1e })
	}},
	{ID: "M030", Section: "RFC 8684 3.1", Level: "MUST", Title: "token is the start of the key's hash", Setup: Setup{Addrs: 2, Mesh: true}, Play: func(s *Script) {
		d, _ := s.serve(Offer{})
		d.warm()
		syn := s.wantStray("join", soon, joinSYN)
		s.Check(syn.Join.Token == 0x66840dda, "token is %08x, want 66840dda", syn.Join.Token)
	}},
	{ID: "M031", Section: "RFC 8684 3.1", Level: "MUST", Title: "first byte has the DSN after the end of the key's hash", Play: func(s *Script) {
		d := s.connect(Offer{})
		d.write(10)
		in := d.first().want("data", soon, isData)
		s.Check(mapping(in), "first data has no mapping: %v", &in.Segment)
		s.Check(d.dsnOf(in) == d.remoteKey.IDSN().Add(1), "first DSN is %x, want IDSN+1 = %x", uint64(d.dsnOf(in)), uint64(d.remoteKey.IDSN().Add(1)))
	}},
	{ID: "M032", Section: "RFC 8684 3.1", Level: "MUST", Title: "checksums are used when the target asks, as listener", Setup: Setup{Checksum: true}, Play: func(s *Script) {
		d := s.connect(Offer{})
		s.Check(d.checksum, "flag A of the SYN/ACK is clear although checksums were asked for")
		d.warm().wantChecksums(true)
	}},
	{ID: "M032b", Section: "RFC 8684 3.1", Level: "MUST", Title: "checksums are used when the target asks, as dialer", Setup: Setup{Checksum: true}, Play: func(s *Script) {
		d, ack := s.serve(Offer{})
		s.Check(ack.Capable.Flags&wire.CapChecksum != 0, "flag A of the third ACK is clear although the SYN had it")
		d.warm().wantChecksums(true)
	}},
	{ID: "M032c", Section: "RFC 8684 3.1", Level: "MUST", Title: "checksums are used when the peer asks", Play: func(s *Script) {
		d, ack := s.serve(Offer{Flags: wire.CapHMACSHA256 | wire.CapChecksum})
		s.Check(ack.Capable.Flags&wire.CapChecksum != 0, "flag A of the third ACK is clear although the SYN/ACK had it")
		d.warm().wantChecksums(true)
	}},
	{ID: "M032d", Section: "RFC 8684 3.1", Level: "MUST", Title: "no checksums unless one side asks", Play: func(s *Script) {
		s.connect(Offer{}).warm().wantChecksums(false)
	}},
	{ID: "M034", Section: "RFC 8684 3.1", Level: "MUST", Title: "a plain SYN is answered with a plain SYN/ACK", Play: func(s *Script) {
		s.wantPlainSYNACK("plain SYN", func(o *Out) { o.Has &^= wire.OptMPCapable })
	}},
	{ID: "M035", Section: "RFC 8684 3.1", Level: "MUST", Title: "third packet without MP_CAPABLE: plain TCP", Play: func(s *Script) {
		d := s.begin(Offer{})
		d.fallen = true
		d.first().plainAck()
		d.accept()
		d.wantPlain("after a plain third ACK")
		d.joinSYN(Join{Offer: Offer{Peer: 1}}).wantRST("join after the fallback", soon)
	}},
	{ID: "M036", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "unanswered SYNs are followed by one without MPTCP", Play: func(s *Script) {
		s.dialed(Offer{})
		f := s.flows[0]
		f.mute = true
		f.want("SYN without MPTCP", 20*time.Second, all(isSYN, not(hasMPTCP)))
	}},
	{ID: "M037", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "of an MPTCP and a plain SYN the third packet decides", Play: func(s *Script) {
		d := s.begin(Offer{Port: 41000})
		f := d.first()
		o := f.out(wire.SYN)
		o.Seq = f.iss
		Offer{}.withDefaults(s).synOptions(o, nil)
		f.send(o)
		f.each(quietly / 10)
		d.fallen = true
		f.plainAck()
		d.accept()
		d.wantPlain("after both kinds of SYN")
	}},
}

func m007(s *Script) {
	s.must(s.T.Listen(targetPort), "listen")
	in := s.open(Offer{Edit: func(o *Out) { o.Capable.Version = 2 }}).wantSYNACK(Offer{})
	if in.Has&wire.OptMPCapable != 0 {
		s.Check(in.Capable.Version == 1, "SYN of version 2 is answered with version %d", in.Capable.Version)
	}
	in = s.open(Offer{Edit: func(o *Out) {
		o.Capable = wire.MPCapable{Version: 0, Flags: wire.CapHMACSHA256, Keys: 1, SenderKey: peerKey}
	}}).wantSYNACK(Offer{})
	if in.Has&wire.OptMPCapable != 0 {
		s.Check(in.Capable.Version == 0, "SYN of version 0 is answered with version %d", in.Capable.Version)
	}
}

func m008(s *Script) {
	d := s.servePlain(Offer{})
	d.wantPlain("after a plain SYN/ACK")
	s.noStray("join of a plain connection", quietly, joinSYN)
}

func m012(s *Script) {
	s.must(s.T.Listen(targetPort), "listen")
	seen := map[key.Key]bool{}
	for range 50 {
		f := s.open(Offer{})
		k := key.Key(f.wantSYNACK(Offer{}).Capable.SenderKey)
		s.Check(!seen[k], "key %x came twice", k)
		seen[k] = true
	}
	s.Check(!seen[key.Key{}], "a key is zero")
}

func m019(s *Script) {
	d := s.connect(Offer{})
	f := d.first()
	p, dsn := d.take(20)
	for i := range 2 {
		o := f.mapped(p[i*10:i*10+10], dsn)
		o.Has = o.Has&^wire.OptDSS | wire.OptMPCapable
		o.Capable = f.capable(2)
		o.Capable.HasData, o.Capable.DataLen = true, 20
		f.send(o)
	}
	d.wantRead("halves with the same MP_CAPABLE", 20)
	d.wantDataAcked("halves with the same MP_CAPABLE")
	d.keyed = true
	p, dsn = d.take(20)
	whole := f.mapped(p, dsn)
	for i := range 2 {
		o := f.mapped(p[i*10:i*10+10], dsn)
		o.DSS = whole.DSS
		f.send(o)
	}
	d.wantRead("halves with the same DSS", 20)
	d.wantDataAcked("halves with the same DSS")
}

// wantFirstData lets the application write and checks its MP_CAPABLE.
func (d *Dialog) wantFirstData(length int) {
	d.write(10)
	in := d.first().want("data", soon, isData)
	o := in.option(kindMPTCP, subCapable)
	d.s.Check(len(o) == length, "MP_CAPABLE of the first data is %x, want %d bytes", o, length)
	d.s.Check(int(in.Capable.DataLen) == 10, "data-level length is %d, want 10", in.Capable.DataLen)
	if in.Capable.HasChecksum {
		want := wire.DSSChecksum(wire.Sum(in.Data(), 0), uint64(d.remoteKey.IDSN().Add(1)), 1, 10)
		d.s.Check(in.Capable.Checksum == want, "checksum is %04x, want %04x", in.Capable.Checksum, want)
	}
}

// wantPlain checks that data passes both ways without any MPTCP option.
func (d *Dialog) wantPlain(why string) {
	f := d.first()
	f.data(100)
	d.wantRead(why, 100)
	d.write(100)
	d.wantPlainBytes(why)
	f.data(100)
	d.wantRead(why, 100)
}

// wantPlainBytes waits for what the application wrote, without options.
func (d *Dialog) wantPlainBytes(why string) {
	d.wantAll(why, soon)
	d.s.Wait(quietly / 10)
	d.first().none(why+": MPTCP option", 0, all(hasMPTCP, not(isSYNACK)))
}

// capables returns a SYN, a SYN/ACK and a third ACK of the target.
func (s *Script) capables() []*In {
	f, syn, _ := s.dialed(Offer{})
	d := s.newDialog(f, Offer{}.withDefaults(s), syn)
	f.synack(Offer{}, syn)
	third := f.want("third ACK", soon, all(isPureACK, acks(f.sndNxt)))
	d.fallen = true
	s.must(s.T.Listen(targetPort), "listen")
	synack := s.open(Offer{}).wantSYNACK(Offer{})
	all := []*In{syn, third, synack}
	for _, in := range all {
		s.Check(in.Has&wire.OptMPCapable != 0, "MP_CAPABLE is missing: %v", &in.Segment)
	}
	return all
}

// wantPlainSYNACK checks that a SYN is answered without MPTCP.
func (s *Script) wantPlainSYNACK(why string, edit func(*Out)) {
	s.must(s.T.Listen(targetPort), "listen")
	in := s.open(Offer{Edit: edit}).wantSYNACK(Offer{})
	s.Check(!hasMPTCP(in), "%s is answered with an MPTCP option: %v", why, &in.Segment)
}

// wantChecksums exchanges data and checks that mappings have checksums, or
// that they do not.
func (d *Dialog) wantChecksums(want bool) {
	f := d.first()
	for range 3 {
		f.data(101)
		d.wantRead("data", 101)
		d.wantDataAcked("data")
		d.write(333)
		in := f.want("data", soon, all(isData, has(wire.OptDSS)))
		d.s.Check(in.DSS.HasChecksum == want, "checksum present: %v, want %v in %v", in.DSS.HasChecksum, want, &in.Segment)
		d.wantAll("data of the target", soon)
	}
}
