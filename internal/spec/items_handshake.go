package spec

import (
	"github.com/gomptcp/gomptcp/internal/wire"
)

// handshakeItems are those of RFC 8684, Section 3.1.
var handshakeItems = []Item{
	{ID: "M006", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "SYN offers version 1 in 4 bytes", Play: func(s *Script) {
		_, syn, _ := s.dialed(Offer{})
		o := syn.option(kindMPTCP, subCapable)
		s.Check(len(o) == 4, "MP_CAPABLE of the SYN is %x, want 4 bytes", o)
		s.Check(o[2] == subCapable<<4|1, "MP_CAPABLE of the SYN has version byte %02x, want version 1", o[2])
	}},
	{ID: "M009", Section: "RFC 8684 3.1", Level: "is", Title: "SYN/ACK carries the key in 12 bytes", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		in := s.open(Offer{}).wantSYNACK(Offer{})
		o := in.option(kindMPTCP, subCapable)
		s.Check(len(o) == 12 && o[2] == 1, "MP_CAPABLE of the SYN/ACK is %x, want 12 bytes of version 1", o)
	}},
	{ID: "M017", Section: "RFC 8684 3.1", Level: "is", Title: "MP_CAPABLE with data maps it at IDSN+1", Play: func(s *Script) {
		d := s.connect(Offer{})
		d.first().data(10)
		d.first().want("DATA_ACK of the first data", soon, d.dataAcks(d.idsn().Add(11)))
		d.wantRead("first data", 10)
	}},
	{ID: "M043", Section: "RFC 8684 3.2", Level: "SHOULD", Title: "valid join is answered with HMAC", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.join(Join{Offer: Offer{Peer: 1}})
		f.data(100)
		d.wantRead("data on the second subflow", 100)
		_ = wire.ACK
	}},
}
