package spec

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// moreItems are those for which a longer dialog has to be watched.
var moreItems = []Item{
	{ID: "M068", Section: "RFC 8684 3.3.1", Level: "MUST", Title: "DSNs have 8 bytes where 4 could wrap", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		d.write(50_000)
		d.wantAll("data of the target", 10*time.Second)
		for _, in := range f.in {
			if mapping(in) && in.DSS.Flags&wire.DSSDSN8 == 0 {
				s.Skipf("the target sends 4 bytes, as it may while it is slow")
			}
		}
	}},
	{ID: "M075", Section: "RFC 8684 3.3.2", Level: "MUST", Title: "a DATA_ACK of either size is taken", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		for _, short := range []bool{true, false, true} {
			d.short = short
			d.write(1000)
			d.wantAll("data of the target", soon)
			f.ack()
			f.forget()
			f.none("data sent again that was DATA_ACKed", 3*time.Second, isData)
		}
	}},
	{ID: "M095", Section: "RFC 8684 3.3.5", Level: "SHOULD", Title: "the largest window of the subflows is the connection's", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		const small = 8000
		g.wnd = small
		g.ack()
		f := d.first()
		f.mute, g.mute = true, true
		d.write(100_000)
		total, onSmall := 0, 0
		for _, in := range f.each(quietly) {
			total += len(in.Data())
		}
		for _, in := range g.each(0) {
			onSmall += len(in.Data())
		}
		s.Check(total+onSmall > small, "only %d bytes are sent, though one window has room for more", total+onSmall)
	}},
	{ID: "M110", Section: "RFC 8684 3.4.1", Level: "MUST", Title: "an id keeps its address until it is withdrawn", Setup: Setup{Addrs: 3, Mesh: true}, Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		told := make(map[uint8]netip.Addr)
		watch := func() {
			for _, in := range d.first().each(quietly) {
				if in.Has&wire.OptRemoveAddr != 0 {
					for _, id := range in.RemoveAddr.IDs[:in.RemoveAddr.N] {
						delete(told, id)
					}
				}
				if in.Has&wire.OptAddAddr == 0 || in.AddAddr.Echo {
					continue
				}
				was, known := told[in.AddAddr.ID]
				s.Check(!known || was == in.AddAddr.Addr, "id %d moves from %v to %v", in.AddAddr.ID, was, in.AddAddr.Addr)
				told[in.AddAddr.ID] = in.AddAddr.Addr
			}
		}
		watch()
		for _, i := range []int{1, 2, 1} {
			for _, present := range []bool{false, true} {
				s.must(s.T.SetAddr(i, present), "change of an address")
				watch()
			}
		}
	}},
	{ID: "T08", Section: "RFC 9293 3.4.1", Level: "MUST", Title: "initial sequence numbers cannot be told from others", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		const n = 12
		var iss [n]seq.SSN
		steps := make(map[seq.SSN]bool)
		for i := range iss {
			f := s.open(Offer{})
			iss[i] = f.wantSYNACK(Offer{}).Seq
			if i > 0 {
				steps[iss[i]-iss[i-1]] = true
			}
			f.rst(nil)
		}
		s.Check(len(steps) > n/2, "%d tuples have initial sequence numbers of only %d distances", n, len(steps))
	}},
}
