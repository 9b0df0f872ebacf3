package spec

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// meshed is the setup in which the target joins whatever the peer announces.
var meshed = Setup{Mesh: true}

// addrItems are those of RFC 8684, Section 3.4.
var addrItems = []Item{
	{ID: "M101", Section: "RFC 8684 3.4.1", Level: "MUST", Title: "announced addresses have distinct ids", Setup: Setup{Addrs: 4, Mesh: true}, Play: func(s *Script) {
		d := s.connect(Offer{}).warmNoted()
		ids, n := map[uint8]netip.Addr{0: s.T.Addr(0)}, 0
		for _, in := range d.announcements(quietly) {
			was, known := ids[in.AddAddr.ID]
			s.Check(!known || was == in.AddAddr.Addr, "id %d stands for %v and %v", in.AddAddr.ID, was, in.AddAddr.Addr)
			ids[in.AddAddr.ID] = in.AddAddr.Addr
			n++
		}
		if n == 0 {
			s.Skipf("the target announces nothing")
		}
	}},
	{ID: "M102", Section: "RFC 8684 3.4.1", Level: "MUST", Title: "a repeated ADD_ADDR is echoed and opens nothing new", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		d.announce(1, 0)
		d.wantEcho(1, 0)
		d.joined(s.wantStray("join of the announced address", soon, joinSYN), Join{ID: 2})
		d.announce(1, 0)
		d.wantEcho(1, 0)
		s.noStray("second join of the same address", quietly, joinSYN)
	}},
	{ID: "M103", Section: "RFC 8684 3.4.1", Level: "SHOULD", Title: "an address without port is joined at the port of the subflow", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		d.announce(1, 0)
		syn := s.wantStray("join of the announced address", soon, joinSYN)
		s.Check(syn.Dst == addrPort(s.T.Peer(1), peerPort), "join goes to %v, want %v", syn.Dst, addrPort(s.T.Peer(1), peerPort))
	}},
	{ID: "M104", Section: "RFC 8684 3.4.1", Level: "is", Title: "HMAC of a sent ADD_ADDR", Setup: Setup{Addrs: 2, Mesh: true}, Play: func(s *Script) {
		d := s.connect(Offer{}).warmNoted()
		got := d.announcements(quietly)
		if len(got) == 0 {
			s.Skipf("the target announces nothing")
		}
		a := got[0].AddAddr
		want := key.AddAddrHMAC(d.remoteKey, d.localKey, a.ID, a.Addr, a.Port)
		s.Check(a.HMAC == want, "HMAC is %x, want %x: %v", a.HMAC, want, &got[0].Segment)
		s.Check(a.Addr == s.T.Addr(1), "address is %v, want %v", a.Addr, s.T.Addr(1))
	}},
	{ID: "M105", Section: "RFC 8684 3.4.1", Level: "SHOULD", Title: "an ADD_ADDR with a wrong HMAC is ignored", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		o := d.addAddr(1, 0)
		o.AddAddr.HMAC[7] ^= 1
		d.first().send(o)
		d.first().none("answer to a forged ADD_ADDR", quietly, any1(isRST, has(wire.OptAddAddr)))
		s.noStray("join of a forged address", quietly, joinSYN)
	}},
	{ID: "M106", Section: "RFC 8684 3.4.1", Level: "MUST", Title: "unassigned flags of ADD_ADDR are ignored", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		o := d.addAddr(1, 0)
		raw := []byte{kindMPTCP, 0, subAddAddr<<4 | 0x0e, o.AddAddr.ID}
		raw = append(raw, o.AddAddr.Addr.AsSlice()...)
		raw = append(raw, o.AddAddr.HMAC[:]...)
		raw[1] = byte(len(raw))
		o.Has &^= wire.OptAddAddr
		o.Raw = raw
		d.first().send(o)
		d.wantEcho(1, 0)
	}},
	{ID: "M106b", Section: "RFC 8684 3.4.1", Level: "MUST", Title: "unassigned flags of ADD_ADDR are sent as 0", Setup: Setup{Addrs: 2, Mesh: true}, Play: func(s *Script) {
		d := s.connect(Offer{}).warmNoted()
		for _, in := range d.announcements(quietly) {
			o := in.option(kindMPTCP, subAddAddr)
			s.Check(o[2]&0x0e == 0, "flags are set in %x", o)
		}
	}},
	{ID: "M107", Section: "RFC 8684 3.4.1", Level: "is", Title: "the echo repeats id, address and port without HMAC", Setup: meshed, Play: func(s *Script) {
		d, _ := s.serve(Offer{NoTS: true})
		d.warm()
		for i, port := range []uint16{0, 7001} {
			d.announce(i+1, port)
			in := d.wantEcho(i+1, port)
			want := 8
			if s.Setup.IPv6 {
				want = 20
			}
			if port != 0 {
				want += 2
			}
			o := in.option(kindMPTCP, subAddAddr)
			s.Check(len(o) == want, "echo has %d bytes, want %d", len(o), want)
		}
	}},
	{ID: "M108", Section: "RFC 8684 3.4.1", Level: "is", Title: "an ADD_ADDR is repeated until its echo comes, within bounds", Setup: Setup{Addrs: 2, Mesh: true}, Play: m108},
	{ID: "M109", Section: "RFC 8684 3.4.1", Level: "SHOULD", Title: "a refused address is not tried again without a refresh", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		d.announce(1, 0)
		d.refuse(s.wantStray("join of the announced address", soon, joinSYN))
		s.noStray("second join of a refused address", 15*time.Second, joinSYN)
		d.announce(1, 0)
		s.wantStray("join of the announced address after a refresh", soon, joinSYN)
	}},
	{ID: "M111", Section: "RFC 8684 3.4.1", Level: "SHOULD", Title: "a known id with another port is tried there", Setup: meshed, Play: func(s *Script) {
		d, _ := s.serve(Offer{NoTS: true})
		d.warm()
		for _, port := range []uint16{7000, 7001} {
			d.announce(1, port)
			syn := s.wantStray("join of the announced port", soon, joinSYN)
			s.Check(syn.Dst.Port() == port, "join goes to %v, want port %d", syn.Dst, port)
			d.refuse(syn)
		}
	}},
	{ID: "M112", Section: "RFC 8684 3.4", Level: "is", Title: "an address that has joined is not joined again", Setup: meshed, Play: func(s *Script) {
		d := s.served()
		f := d.joinSYN(Join{Offer: Offer{Peer: 1}, ID: 2})
		if in := f.next(quietly, any1(isSYNACK, isRST)); in == nil || isRST(in) {
			s.Skipf("the target takes no joins as the opening side")
		} else {
			f.agree(Offer{}.withDefaults(s), in)
			f.nonceRemote = in.Join.Nonce
		}
		d.joinACK(f, nil)
		f.d = d
		d.flows = append(d.flows, f)
		s.Wait(quietly / 10)
		d.announce(1, 0)
		s.noStray("join of an address that has joined", quietly, joinSYN)
	}},
	{ID: "M113", Section: "RFC 8684 3.4.2", Level: "SHOULD", Title: "an address that is gone is withdrawn", Setup: joinsFirst, Play: func(s *Script) {
		d, syn := s.wantJoin()
		id := syn.Join.AddrID
		d.joined(syn, Join{})
		s.must(s.T.SetAddr(1, false), "remove the address")
		in := d.first().want("REMOVE_ADDR", soon, has(wire.OptRemoveAddr))
		s.Check(in.RemoveAddr.N >= 1 && in.RemoveAddr.IDs[0] == id, "REMOVE_ADDR names %v, want %d", in.RemoveAddr.IDs[:in.RemoveAddr.N], id)
	}},
	{ID: "M114", Section: "RFC 8684 3.4.2", Level: "SHOULD", Title: "REMOVE_ADDR has the path probed first", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}, ID: 2})
		g.mute = true
		d.removeAddr(2)
		in := g.want("probe or RST of the withdrawn path", soon, any1(isRST, g.isProbe))
		s.Check(!isRST(in), "the subflow is reset without a probe: %v", &in.Segment)
	}},
	{ID: "M115", Section: "RFC 8684 3.4.2", Level: "SHOULD", Title: "a withdrawn path that answers stays", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}, ID: 2})
		d.removeAddr(2)
		g.none("RST of a path that answers", 10*time.Second, isRST)
		g.data(10)
		d.wantRead("data on a withdrawn path that answers", 10)
	}},
	{ID: "M116", Section: "RFC 8684 3.4.2", Level: "SHOULD", Title: "a withdrawn path that does not answer is reset", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}, ID: 2})
		g.mute = true
		d.removeAddr(2)
		within := 10 * time.Second
		if s.T.Virtual() {
			within = 3 * time.Minute
		}
		g.wantRST("withdrawn path that is silent", within)
		d.wantAlive("the first subflow")
	}},
	{ID: "M117", Section: "RFC 8684 3.4.2", Level: "is", Title: "all ids of a REMOVE_ADDR are handled, unknown ones ignored", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}, ID: 2})
		h := d.join(Join{Offer: Offer{Peer: 2}, ID: 3})
		g.mute, h.mute = true, true
		d.removeAddr(2, 9, 3)
		g.want("reaction on the first withdrawn path", soon, any1(isRST, g.isProbe))
		h.want("reaction on the second withdrawn path", soon, any1(isRST, h.isProbe))
		d.wantAlive("the first subflow")
	}},
	{ID: "M118", Section: "RFC 8684 3.4.2", Level: "MUST", Title: "a working subflow is closed by FIN", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		s.must(d.app.CloseSubflow(g.local), "close one subflow")
		g.want("FIN of the closed subflow", soon, isFIN)
		d.first().none("REMOVE_ADDR for a closed subflow", 0, has(wire.OptRemoveAddr))
	}},
}

// served is a connection of the target on which DSS options have passed.
func (s *Script) served() *Dialog {
	d, _ := s.serve(Offer{})
	return d.warm()
}

// warmNoted is warm that keeps what the first flow got.
func (d *Dialog) warmNoted() *Dialog {
	f := d.first()
	f.data(10)
	d.wantRead("first data", 10)
	d.wantDataAcked("first data")
	d.keyed = true
	d.write(10)
	d.wantAll("the application's first data", soon)
	return d
}

// announcements waits and returns the ADD_ADDRs without echo that came.
func (d *Dialog) announcements(during time.Duration) []*In {
	var got []*In
	for _, in := range d.first().each(during) {
		if in.Has&wire.OptAddAddr != 0 && !in.AddAddr.Echo {
			got = append(got, in)
		}
	}
	return got
}

// addAddr returns an ADD_ADDR of the peer's i-th address, whose id is i+1.
func (d *Dialog) addAddr(i int, port uint16) *Out {
	a := wire.AddAddr{ID: uint8(i + 1), Addr: d.s.T.Peer(i), Port: port}
	a.HMAC = key.AddAddrHMAC(d.localKey, d.remoteKey, a.ID, a.Addr, a.Port)
	o := d.first().out(wire.ACK)
	o.Has |= wire.OptAddAddr
	o.AddAddr = a
	return o
}

func (d *Dialog) announce(i int, port uint16) { d.first().send(d.addAddr(i, port)) }

// wantEcho waits for the echo of announce.
func (d *Dialog) wantEcho(i int, port uint16) *In {
	in := d.first().want("echo of the ADD_ADDR", soon, has(wire.OptAddAddr))
	a := in.AddAddr
	d.s.Check(a.Echo && a.ID == uint8(i+1) && a.Addr == d.s.T.Peer(i) && a.Port == port,
		"the echo differs from what was announced: %v", &in.Segment)
	return in
}

// refuse answers a SYN with RST.
func (d *Dialog) refuse(syn *In) {
	f := d.s.newFlow(Offer{}.withDefaults(d.s), syn.Dst, syn.Src)
	d.s.flows = d.s.flows[:len(d.s.flows)-1] // a later SYN is a stray again
	f.agree(Offer{}, syn)
	f.ts = false
	o := f.out(wire.RST | wire.ACK)
	o.Seq = 0
	f.send(o)
}

// removeAddr withdraws addresses of the peer.
func (d *Dialog) removeAddr(ids ...uint8) {
	o := d.first().out(wire.ACK)
	o.Has |= wire.OptRemoveAddr
	o.RemoveAddr.N = uint8(copy(o.RemoveAddr.IDs[:], ids))
	d.first().send(o)
}

// isProbe matches a keepalive probe: RFC 9293, Section 3.8.4: "SEG.SEQ =
// SND.NXT-1".
func (f *Flow) isProbe(in *In) bool {
	return in.Seq == f.rcvNxt.Add(-1) && in.Len() <= 1
}

func m108(s *Script) {
	d := s.connect(Offer{}).warmNoted()
	f := d.first()
	var first *In
	for _, in := range append(f.in, f.each(quietly)...) {
		if in.Has&wire.OptAddAddr != 0 {
			first = in
		}
	}
	if first == nil {
		s.Skipf("the target announces nothing")
	}
	echo := func(id uint8) {
		o := f.out(wire.ACK)
		o.Has |= wire.OptAddAddr
		o.AddAddr = first.AddAddr
		o.AddAddr.Echo, o.AddAddr.ID = true, id
		f.send(o)
	}
	echo(first.AddAddr.ID + 50)
	if f.next(15*time.Second, has(wire.OptAddAddr)) == nil {
		s.Skipf("the target does not repeat an ADD_ADDR")
	}
	echo(first.AddAddr.ID)
	s.Wait(quietly / 10)
	f.forget()
	f.none("ADD_ADDR after its echo", 15*time.Second, has(wire.OptAddAddr))
}
