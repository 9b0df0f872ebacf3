package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// joinsFirst is the setup in which the target opens a second subflow.
var joinsFirst = Setup{Addrs: 2, Mesh: true}

// joinItems are those of RFC 8684, Section 3.2.
var joinItems = []Item{
	{ID: "M038", Section: "RFC 8684 3.2", Level: "is", Title: "either host may join", Play: func(s *Script) {
		d, _ := s.serve(Offer{})
		d.warm()
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}})
		in := f.want("answer to a join of the listening side", soon, any1(isSYNACK, isRST))
		s.Check(isRST(in) || in.Has&wire.OptMPJoin != 0, "a join is answered with a plain SYN/ACK: %v", &in.Segment)
	}},
	{ID: "M039", Section: "RFC 8684 3.2", Level: "is", Title: "MP_JOIN of the SYN: token, nonce, address id", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		o := syn.option(kindMPTCP, subJoin)
		s.Check(len(o) == 12, "MP_JOIN of the SYN has %d bytes, want 12", len(o))
		s.Check(syn.Join.Token == uint32(d.localKey.Token()), "token is %08x, want %08x", syn.Join.Token, uint32(d.localKey.Token()))
		s.Check(syn.Src.Addr() == s.T.Addr(1) && syn.Join.AddrID != 0, "join from %v has address id %d", syn.Src, syn.Join.AddrID)
	}},
	{ID: "M040", Section: "RFC 8684 3.2", Level: "MUST", Title: "reserved bits of MP_JOIN are 0", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		o := syn.option(kindMPTCP, subJoin)
		s.Check(o[2]&0x0e == 0, "reserved bits of the SYN are set: %x", o)
		in := d.wantJoinACK(d.respond(syn, Join{}))
		o = in.option(kindMPTCP, subJoin)
		s.Check(len(o) == 24 && o[2]&0x0f == 0 && o[3] == 0, "reserved bits of the third ACK are set: %x", o)
	}},
	{ID: "M040b", Section: "RFC 8684 3.2", Level: "MUST", Title: "reserved bits of a SYN/ACK's MP_JOIN are 0", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		j := Join{Offer: Offer{Peer: 1}}
		o := d.wantJoinSYNACK(d.joinSYN(j), j).option(kindMPTCP, subJoin)
		s.Check(len(o) == 16 && o[2]&0x0e == 0, "MP_JOIN of the SYN/ACK is %x", o)
	}},
	{ID: "M041", Section: "RFC 8684 3.2", Level: "is", Title: "nonces are fresh", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		seen := map[uint32]bool{}
		for range 6 {
			j := Join{Offer: Offer{Peer: 1}}
			n := d.wantJoinSYNACK(d.joinSYN(j), j).Join.Nonce
			s.Check(!seen[n], "nonce %08x came twice", n)
			seen[n] = true
		}
	}},
	{ID: "M042", Section: "RFC 8684 3.2", Level: "MUST", Title: "each local address has an id of its own", Setup: Setup{Addrs: 3, Mesh: true}, Play: func(s *Script) {
		d, _ := s.serve(Offer{})
		d.warm()
		ids := map[uint8]bool{0: true}
		for range 2 {
			syn := s.wantStray("join", soon, joinSYN)
			s.Check(!ids[syn.Join.AddrID], "address id %d of %v is another address's", syn.Join.AddrID, syn.Src)
			ids[syn.Join.AddrID] = true
		}
	}},
	{ID: "M043", Section: "RFC 8684 3.2", Level: "SHOULD", Title: "a valid join is answered with nonce and HMAC", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.join(Join{Offer: Offer{Peer: 1}})
		f.data(100)
		d.wantRead("data on the second subflow", 100)
	}},
	{ID: "M044", Section: "RFC 8684 3.2", Level: "MUST", Title: "an unknown token is refused with RST", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}, Edit: func(o *Out) { o.Join.Token ^= 1 }})
		f.wantRST("join with an unknown token", soon)
	}},
	{ID: "M045", Section: "RFC 8684 3.2", Level: "MUST", Title: "a join beyond the limit is refused with RST", Setup: Setup{Subflows: 2}, Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		j := Join{Offer: Offer{Peer: 2}}
		f := d.joinSYN(j)
		if in := f.next(quietly, any1(isRST, isSYNACK)); in != nil && isSYNACK(in) {
			// It may count its subflows after the third ACK.
			f.agree(j.Offer.withDefaults(s), in)
			f.nonceRemote = in.Join.Nonce
			d.joinACK(f, nil)
		}
		f.wantRST("join beyond the limit", soon, reason.ResetProhibited, reason.ResetResources, reason.ResetMPTCP)
	}},
	{ID: "M046", Section: "RFC 8684 3.2", Level: "SHOULD", Title: "RST to a join carries MP_TCPRST with a reason", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}, Edit: func(o *Out) { o.Join.Token ^= 1 }})
		in := f.wantRST("join with an unknown token", soon, reason.ResetMPTCP, reason.ResetProhibited)
		o := in.option(kindMPTCP, subTCPRst)
		s.Check(len(o) == 4, "MP_TCPRST of the RST is %x, want 4 bytes", o)
	}},
	{ID: "M047", Section: "RFC 8684 3.2", Level: "MUST", Title: "SYN/ACK with a wrong HMAC is refused with RST", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		f := d.respond(syn, Join{Edit: func(o *Out) { o.Join.HMAC[7] ^= 1 }})
		f.wantRST("SYN/ACK with a wrong HMAC", soon, reason.ResetMPTCP)
		d.wantAlive("the first subflow after the refusal")
	}},
	{ID: "M047b", Section: "RFC 8684 3.2", Level: "MUST", Title: "SYN/ACK without MP_JOIN is refused with RST", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		f := d.respond(syn, Join{Edit: func(o *Out) { o.Has &^= wire.OptMPJoin }})
		f.wantRST("plain SYN/ACK", soon, reason.ResetMPTCP, reason.ResetMiddlebox)
		d.wantAlive("the first subflow after the refusal")
	}},
	{ID: "M048", Section: "RFC 8684 3.2", Level: "MUST", Title: "third ACK with a wrong HMAC is refused with RST", Play: func(s *Script) {
		badThird(s, func(d *Dialog, f *Flow) { d.joinACK(f, func(o *Out) { o.Join.HMAC[19] ^= 1 }) })
	}},
	{ID: "M048b", Section: "RFC 8684 3.2", Level: "MUST", Title: "third ACK without MP_JOIN is refused with RST", Play: func(s *Script) {
		badThird(s, func(_ *Dialog, f *Flow) { f.plainAck() })
	}},
	{ID: "M048c", Section: "RFC 8684 3.2", Level: "MUST", Title: "data in place of the third ACK is refused with RST", Play: func(s *Script) {
		badThird(s, func(_ *Dialog, f *Flow) {
			o := f.out(wire.ACK)
			o.Payload = append(o.Payload, make([]byte, 10))
			f.send(o)
		})
	}},
	{ID: "M049", Section: "RFC 8684 3.2", Level: "is", Title: "HMAC with the keys in the wrong order is refused", Play: func(s *Script) {
		badThird(s, func(d *Dialog, f *Flow) {
			d.joinACK(f, func(o *Out) {
				mac := key.JoinHMAC(d.remoteKey, d.localKey, f.nonceLocal, f.nonceRemote)
				copy(o.Join.HMAC[:], mac[:])
			})
		})
	}},
	{ID: "M050", Section: "RFC 8684 3.2", Level: "MUST", Title: "a valid third ACK is acknowledged at once", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		j := Join{Offer: Offer{Peer: 1}}
		f := d.joinSYN(j)
		d.wantJoinSYNACK(f, j)
		d.joinACK(f, nil)
		f.want("ACK of the third ACK", 200*time.Millisecond, all(isPureACK, acks(f.sndNxt)))
	}},
	{ID: "M051", Section: "RFC 8684 3.2", Level: "MUST", Title: "third ACK is repeated until it is acknowledged", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		f := d.respond(syn, Join{})
		first := d.wantJoinACK(f)
		second := d.wantJoinACKAgain(f)
		third := d.wantJoinACKAgain(f)
		a, b := second.At.Sub(first.At), third.At.Sub(second.At)
		s.Check(b > a, "the third ACK is repeated after %v and then %v: no back-off", a, b)
	}},
	{ID: "M052", Section: "RFC 8684 3.2", Level: "MUST", Title: "no data before the third ACK is acknowledged", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		f := d.respond(syn, Join{})
		d.wantJoinACK(f)
		d.first().lose = anything
		d.first().mute = true
		d.write(50000)
		f.none("data while the join is not acknowledged", 2*time.Second, isData)
	}},
	{ID: "M053", Section: "RFC 8684 3.2", Level: "MUST", Title: "joins are found by token, not by port", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		j := Join{Offer: Offer{Peer: 1}, Port: 7777}
		d.wantJoinSYNACK(d.joinSYN(j), j)
	}},
	{ID: "M054", Section: "RFC 8684 3.2", Level: "is", Title: "a join whose option was stripped is an ordinary SYN", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		strip := func(o *Out) { o.Has &^= wire.OptMPJoin }
		in := d.joinSYN(Join{Offer: Offer{Peer: 1}, Edit: strip}).want("SYN/ACK", soon, isSYNACK)
		s.Check(!hasMPTCP(in), "plain SYN is answered with an MPTCP option: %v", &in.Segment)
		d.joinSYN(Join{Offer: Offer{Peer: 1}, Port: 7777, Edit: strip}).wantRST("plain SYN to a closed port", soon)
	}},
}

// wantJoin is a connection of the target whose second subflow begins.
func (s *Script) wantJoin() (*Dialog, *In) {
	d, _ := s.serve(Offer{})
	d.warm()
	return d, s.wantStray("join of the target", soon, joinSYN)
}

// wantJoinACKAgain waits for a repetition of a join's third ACK.
func (d *Dialog) wantJoinACKAgain(f *Flow) *In {
	in := f.want("third ACK again", 10*time.Second, has(wire.OptMPJoin))
	d.s.Check(in.Join.Form == wire.JoinACK, "MP_JOIN has another form: %v", &in.Segment)
	return in
}

// wantAlive checks that data passes on the first subflow.
func (d *Dialog) wantAlive(why string) {
	d.first().data(10)
	d.wantRead(why, 10)
	d.write(10)
	d.wantAll(why, soon)
}

// badThird joins with a third packet that must be refused.
func badThird(s *Script, third func(*Dialog, *Flow)) {
	d := s.connect(Offer{}).warm()
	j := Join{Offer: Offer{Peer: 1}}
	f := d.joinSYN(j)
	d.wantJoinSYNACK(f, j)
	third(d, f)
	f.wantRST("third packet of a join", soon, reason.ResetMPTCP, reason.ResetMiddlebox)
	d.wantAlive("the first subflow after the refusal")
}
