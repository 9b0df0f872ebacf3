package spec

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// withChecksums is an offer that makes both sides use DSS checksums.
var withChecksums = Offer{Flags: wire.CapHMACSHA256 | wire.CapChecksum}

// nearWrap is a key whose IDSN is 4000 or less before a multiple of 2^32.
var nearWrap = key.Key{0, 0, 0, 0, 0, 0x03, 0xd9, 0xa2}

// mappingItems are those of RFC 8684, Sections 3.3 and 3.3.1.
var mappingItems = []Item{
	{ID: "M055", Section: "RFC 8684 3.3", Level: "is", Title: "size flags without their field are ignored", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		for _, flags := range []byte{0x02, 0x08} {
			o := f.out(wire.ACK)
			o.Raw = []byte{kindMPTCP, 4, subDSS << 4, flags}
			f.send(o)
		}
		d.wantAlive("data after DSS options without content")
	}},
	{ID: "M056", Section: "RFC 8684 3.3", Level: "MUST", Title: "reserved bits of DSS are 0", Play: func(s *Script) {
		d := s.connect(Offer{})
		f := d.first()
		f.data(10)
		d.wantRead("data", 10)
		d.write(5000)
		d.wantAll("data of the target", soon)
		for _, in := range f.in {
			if o := in.option(kindMPTCP, subDSS); o != nil {
				s.Check(o[2]&0x0f == 0 && o[3]&0xe0 == 0, "reserved bits are set in %x", o)
			}
		}
	}},
	{ID: "M057", Section: "RFC 8684 3.3", Level: "MUST", Title: "a checksum that was not agreed is answered with RST", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		p, dsn := d.take(10)
		o := f.mapped(p, dsn)
		o.DSS.HasChecksum = true
		o.DSS.Checksum = wire.DSSChecksum(wire.Sum(p, 0), o.DSS.DSN, o.DSS.SSN, o.DSS.Len)
		f.send(o)
		f.wantRST("mapping with a checksum", soon, reason.ResetMPTCP)
	}},
	{ID: "M058", Section: "RFC 8684 3.3", Level: "MUST", Title: "a missing checksum is answered with RST", Play: func(s *Script) {
		d := s.connect(withChecksums).warm()
		f := d.first()
		p, dsn := d.take(10)
		o := f.mapped(p, dsn)
		o.DSS.HasChecksum = false
		f.send(o)
		f.wantRST("mapping without a checksum", soon, reason.ResetMPTCP)
	}},
	{ID: "M059", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "declared mappings never change", Play: m059},
	{ID: "M060", Section: "RFC 8684 3.3.1", Level: "SHOULD", Title: "the first copy of a DSN is delivered", Play: m060},
	{ID: "M061", Section: "RFC 8684 3.3.1", Level: "is", Title: "mappings count from the SYN, across the wrap of SSNs", Play: func(s *Script) {
		d := s.connect(Offer{ISS: 0xfffffff0})
		d.warm()
		d.first().data(3000)
		d.wantRead("data across the wrap", 3000)
		d.wantDataAcked("data across the wrap")
		s.Check(d.first().pieces[0].ssn == 1, "first mapping of the target is at relative SSN %d, want 1", d.first().pieces[0].ssn)
	}},
	{ID: "M062", Section: "RFC 8684 3.3.1", Level: "is", Title: "checksum of sent mappings", Play: m062},
	{ID: "M062b", Section: "RFC 8684 3.3.1", Level: "is", Title: "checksum of received mappings, with short DSNs and several segments", Play: m062b},
	{ID: "M063", Section: "RFC 8684 3.3.1", Level: "SHOULD", Title: "urgent data inside a mapping is delivered in the stream", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		p, dsn := d.take(10)
		o := d.first().mapped(p, dsn)
		o.Flags |= wire.URG
		o.Urgent = 5
		d.first().send(o)
		d.wantRead("a mapping with an urgent byte", 10)
	}},
	{ID: "M064", Section: "RFC 8684 3.3.1", Level: "SHOULD", Title: "unmapped data is acknowledged on the subflow only", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		dsn := d.sndNxt
		f.sendUnmapped(pattern(d.sent, 10))
		in := f.want("ACK of unmapped data", soon, acks(f.sndNxt))
		s.Check(!hasDataAck(in) || d.ackOf(in) == dsn, "unmapped data moves the DATA_ACK: %v", &in.Segment)
		d.noRead("unmapped data")
	}},
	{ID: "M065", Section: "RFC 8684 3.3.1", Level: "MAY", Title: "unmapped data may wait for its mapping", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		p, dsn := d.take(10)
		rel := uint32(f.sndNxt - f.iss)
		f.sendUnmapped(p)
		o := f.out(wire.ACK)
		f.dataAck(o)
		f.mapTo(o, dsn, rel, p)
		f.send(o)
		if in := f.next(soon, d.dataAcks(d.sndNxt)); in == nil {
			f.none("RST although the mapping came", 15*time.Second, isRST)
			s.Skipf("the target does not wait for a late mapping")
		}
		d.wantRead("data whose mapping came late", 10)
	}},
	{ID: "M066", Section: "RFC 8684 3.3.1", Level: "SHOULD", Title: "a window of unmapped data is answered with RST", Play: m066},
	{ID: "M067", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "numbers of 4 and 8 bytes may be mixed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		for i := range 8 {
			d.short = i%2 == 1
			d.first().data(500)
			d.wantRead("data with DSNs of mixed sizes", 500)
			d.wantDataAcked("data with DSNs of mixed sizes")
			d.write(500)
			d.wantAll("data of the target, DATA_ACKs of mixed sizes", soon)
		}
	}},
	{ID: "M069", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "32-bit DSNs are promoted across their wrap", Play: func(s *Script) { s.acrossWrap() }},
	{ID: "M070", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "a DSN from before the wrap is old", Play: func(s *Script) {
		d := s.acrossWrap()
		f := d.first()
		f.send(f.mapped(pattern(0, 500), d.sndNxt.Add(-5000)))
		f.want("ACK of old data", soon, acks(f.sndNxt))
		d.noRead("data from before the wrap")
		d.wantAlive("data after old data")
	}},
	{ID: "M071", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "a mapping covers a part of its segment", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		d.write(40000)
		d.wantAll("data of the target", soon)
		for _, in := range f.in {
			if isData(in) && mapping(in) {
				lo, hi := f.rel(in.Seq), f.rel(in.Seq)+uint32(in.PayloadLen())
				s.Check(in.DSS.SSN < hi && in.DSS.SSN+uint32(in.DSS.Len) > lo, "the mapping covers nothing of %v", &in.Segment)
			}
		}
	}},
	{ID: "M072", Section: "RFC 8684 3.3.1", Level: "is", Title: "one mapping may cover many segments", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.first().sendSplit(3000, 1000)
		d.wantRead("three segments of one mapping", 3000)
		d.wantDataAcked("three segments of one mapping")
	}},
}

// sendUnmapped sends payload without options of MPTCP.
func (f *Flow) sendUnmapped(p []byte) {
	o := f.out(wire.ACK | wire.PSH)
	o.Payload = append(o.Payload, p)
	f.send(o)
}

// sendSplit sends n bytes with one mapping, declared on the first of segments
// of the given size.
func (f *Flow) sendSplit(n, size int) {
	p, dsn := f.d.take(n)
	o := f.mapped(p, dsn)
	o.Payload[0] = p[:size]
	f.send(o)
	for at := size; at < n; at += size {
		f.sendUnmapped(p[at:min(at+size, n)])
	}
}

func m059(s *Script) {
	d := s.connect(Offer{}).warm()
	f := d.first()
	lost, n := map[seq.SSN]bool{}, 0
	f.lose = func(in *In) bool {
		if !isData(in) || lost[in.Seq] {
			return false
		}
		n++
		lost[in.Seq] = n%5 == 0
		return n%5 == 0
	}
	d.write(60000)
	d.wantAll("data over a path with loss", 60*time.Second)
	offset := map[uint32]seq.DSN{}
	for _, in := range f.in {
		if !isData(in) || !mapping(in) {
			continue
		}
		for i := range in.PayloadLen() {
			rel := f.rel(in.Seq.Add(i))
			o := int64(rel) - int64(in.DSS.SSN)
			if o < 0 || o >= int64(in.DSS.Len) {
				continue
			}
			dsn := d.dsnOf(in).Add(int(o))
			was, known := offset[rel]
			s.Check(!known || was == dsn, "relative SSN %d is mapped to two DSNs: %v", rel, &in.Segment)
			offset[rel] = dsn
		}
	}
}

func m060(s *Script) {
	d := s.connect(Offer{}).warm()
	g := d.join(Join{Offer: Offer{Peer: 1}})
	f := d.first()
	hole, dsn := d.take(10)
	first, later := d.take(10)
	f.send(f.mapped(first, later))
	other := bytes.Repeat([]byte{0xee}, 10)
	g.send(g.mapped(other, later))
	g.want("ACK of the copy", soon, acks(g.sndNxt))
	g.send(g.mapped(hole, dsn))
	d.wantRead("two copies of a DSN", 20)
	d.wantDataAcked("two copies of a DSN")
}

// wantSealed checks the checksum of a mapping that the target declared.
func (d *Dialog) wantSealed(in *In) {
	from := int(d.dsnOf(in).Diff(d.remoteKey.IDSN().Add(1)))
	n := int(in.DSS.Len)
	if hasDataFin(in) {
		n--
	}
	want := wire.DSSChecksum(wire.Sum(d.got[from:from+n], 0), uint64(d.dsnOf(in)), in.DSS.SSN, in.DSS.Len)
	d.s.Check(in.DSS.HasChecksum && in.DSS.Checksum == want, "checksum is %04x (%v), want %04x: %v",
		in.DSS.Checksum, in.DSS.HasChecksum, want, &in.Segment)
}

func m062(s *Script) {
	d := s.connect(withChecksums).warm()
	f := d.first()
	for _, n := range []int{1, 5, 333, 3001, 20000} {
		d.write(n)
		d.wantAll(fmt.Sprintf("%d bytes of the target", n), soon)
	}
	checked := 0
	for _, in := range f.in {
		if in.Has&wire.OptDSS != 0 && mapping(in) {
			d.wantSealed(in)
			checked++
		}
	}
	s.Check(checked > 0, "no mapping came by DSS")
}

func m062b(s *Script) {
	d := s.connect(withChecksums).warm()
	f := d.first()
	for i, n := range []int{1, 5, 333} {
		d.short = i%2 == 0
		f.data(n)
		d.wantRead("a mapping with checksum", n)
	}
	f.sendSplit(2999, 997)
	d.wantRead("a mapping with checksum over several segments", 2999)
	d.wantDataAcked("mappings with checksum")
}

func m066(s *Script) {
	d := s.connect(Offer{}).warm()
	f := d.first()
	for edge := f.rcvEdge(); f.reset == nil && f.sndNxt.Add(1000).LessEq(edge); {
		f.sendUnmapped(make([]byte, 1000))
		s.Wait(0)
	}
	within := 10 * time.Second
	if s.T.Virtual() {
		// Sooner than the wait for a mapping ends. Guard: the bound in unmapped
		// (internal/mpconn/fallback.go).
		within = soon
	}
	f.wantRST("a window of unmapped data", within, reason.ResetMiddlebox, reason.ResetMPTCP)
}

// acrossWrap is a connection on which 32-bit DSNs have wrapped.
func (s *Script) acrossWrap() *Dialog {
	left := 1<<32 - uint64(uint32(nearWrap.IDSN()))
	s.Check(left <= 4096, "nearWrap is %d before the wrap", left)
	d := s.connect(Offer{Key: nearWrap}).warm()
	d.short = true
	for range 8 {
		d.first().data(1000)
		d.wantRead("data across the wrap", 1000)
		d.wantDataAcked("data across the wrap")
	}
	return d
}
