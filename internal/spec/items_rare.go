package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// rareItems are those about what hardly ever happens: colliding tokens, joins
// that cross, subflows that fail under the connection.
var rareItems = []Item{
	{ID: "M013", Section: "RFC 8684 3.1", Level: "SHOULD", Title: "a key whose token is taken is drawn anew", Setup: Setup{Repeats: 3}, Play: func(s *Script) {
		s.needsRepeats()
		s.must(s.T.Listen(targetPort), "listen")
		seen := map[key.Token]bool{}
		for range 6 {
			in := s.open(Offer{}).wantSYNACK(Offer{})
			s.Check(in.Has&wire.OptMPCapable != 0, "SYN/ACK has no MP_CAPABLE although another key could be drawn: %v", &in.Segment)
			k := key.Key(in.Capable.SenderKey)
			s.Check(!seen[k.Token()], "token %08x comes twice", uint32(k.Token()))
			seen[k.Token()] = true
		}
	}},
	{ID: "M014", Section: "RFC 8684 3.1", Level: "MUST", Title: "no key with a free token: no MP_CAPABLE in the SYN/ACK", Setup: Setup{Repeats: 1 << 20}, Play: func(s *Script) {
		s.needsRepeats()
		d := s.connect(Offer{}).warm()
		f := s.open(Offer{Peer: 1})
		in := f.wantSYNACK(Offer{})
		s.Check(!hasMPTCP(in), "SYN/ACK has an MPTCP option although its token is taken: %v", &in.Segment)
		e := s.newDialog(f, Offer{}.withDefaults(s), in)
		e.fallen = true
		f.plainAck()
		e.accept().wantPlain("after a collision")
		d.wantAlive("the connection whose token it is")
	}},
	{ID: "M033", Section: "RFC 8684 3.1", Level: "MUST", Title: "flag A is obeyed, or its MP_CAPABLE ignored", Play: func(s *Script) {
		s.must(s.T.Listen(targetPort), "listen")
		o := Offer{Flags: wire.CapHMACSHA256 | wire.CapChecksum}
		f := s.open(o)
		in := f.wantSYNACK(o)
		d := s.newDialog(f, o.withDefaults(s), in)
		if in.Has&wire.OptMPCapable == 0 {
			d.fallen = true
			f.plainAck()
			d.accept().wantPlain("after flag A was refused")
			return
		}
		d.learnKey(in.Capable.SenderKey)
		d.third()
		d.accept().warm().wantChecksums(true)
	}},
	{ID: "M088", Section: "RFC 8684 3.3.3", Level: "MAY", Title: "a subflow whose data went another way ends in FIN or RST", Play: func(s *Script) {
		d, g := s.starved()
		d.closeAll()
		for end := s.Now().Add(3 * time.Second); g.reset == nil && s.pull(end); {
		}
		if in := g.reset; in != nil {
			s.Check(in.Has&wire.OptMPTCPRst == 0 || in.TCPRst.Reason == reason.ResetOutstanding,
				"the RST of a subflow with data queued has reason %d, want %d: %v", in.TCPRst.Reason, reason.ResetOutstanding, &in.Segment)
			return
		}
		// It is closed by FIN, once what is before it gets through.
		g.lose, g.mute = nil, false
		g.ack()
		for end := s.Now().Add(20 * time.Second); !g.finned && g.reset == nil; {
			if !s.pull(end) {
				s.Failf("neither FIN nor RST on a subflow of a closed connection%s", s.lastWords())
			}
		}
	}},
	// "A sanity check SHOULD be performed at the subflow level to ensure that the
	// subflow and mapped sequence numbers meet the following test: SSN -
	// SUBFLOW_ACK <= DSN - DATA_ACK". It is about what the connection accepts. A
	// stack may keep what fails it, which a sender that obeys Section 3.3.6 sends
	// behind data with higher numbers, until SUBFLOW_ACK has come up.
	{ID: "M093", Section: "RFC 8684 3.3.4", Level: "SHOULD", Title: "data farther ahead on its subflow than in the stream is not accepted yet", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		f := d.first()
		p, dsn := d.take(100)
		before, next := d.take(1000)
		o := f.out(wire.ACK)
		o.Payload = append(o.Payload, p)
		o.Seq = o.Seq.Add(len(before))
		f.dataAck(o)
		f.mapTo(o, dsn, uint32(f.sndNxt-f.iss)+uint32(len(before)), p)
		f.send(o)
		f.want("ACK of the hole", soon, acks(f.sndNxt))
		s.Check(d.una == dsn, "what is beyond a hole of the subflow is DATA_ACKed")
		d.noRead("data that is farther ahead on its subflow than in the stream")
		f.send(f.mapped(before, next))
		f.send(f.mapped(p, dsn))
		d.wantRead("the data once the hole is closed", len(p)+len(before))
		d.wantAlive("data after it")
	}},
	{ID: "M098", Section: "RFC 8684 3.3.6", Level: "MAY", Title: "a RST to a subflow that performs badly gives a reason", Play: func(s *Script) {
		during := 15 * time.Second
		if s.T.Virtual() {
			during = 20 * time.Minute
		}
		d, g := s.starved()
		for end := s.Now().Add(during); g.reset == nil && s.pull(end); {
		}
		if in := g.reset; in != nil {
			s.Check(in.Has&wire.OptMPTCPRst != 0, "a subflow that gets nothing through is reset without a reason: %v", &in.Segment)
		}
		d.wantAlive("the connection of a subflow that gets nothing through")
	}},
	{ID: "M136", Section: "RFC 8684 3.7", Level: "SHOULD", Title: "a subflow opened after MP_FAIL on a RST begins with an infinite mapping", Setup: joinsFirst, Play: m136},
	{ID: "M142", Section: "RFC 8684 3.9.2", Level: "SHOULD", Title: "joins that cross make at most one subflow", Setup: joinsFirst, Play: m142},
	{ID: "T17", Section: "RFC 9293 3.10.7.4", Level: "MUST", Title: "segments that are queued are processed before they are acknowledged", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.data(10)
		d.wantRead("first data", 10)
		s.Wait(quietly / 4)
		f.forget()
		const n = 10
		s.atOnce(func() { f.data(n * 1000) })
		acked := 0
		for _, in := range f.each(quietly) {
			if isPureACK(in) {
				acked++
			}
		}
		s.Check(f.sndUna == f.sndNxt, "%d segments at once are not acknowledged", n)
		if s.T.Virtual() { // in real time segments arrive one by one all the same
			s.Check(acked <= 2, "%d segments at once cause %d ACKs", n, acked)
		}
		d.wantRead("segments at once", n*1000)
	}},
}

// needsRepeats skips the item where the target's random numbers cannot be
// chosen.
func (s *Script) needsRepeats() {
	if !s.T.Virtual() {
		s.Skipf("the target's keys cannot be made to collide")
	}
}

// starved is a connection with a second subflow on which nothing comes through
// any more, and whose data went by the first.
func (s *Script) starved() (*Dialog, *Flow) {
	d := s.connect(Offer{}).warm()
	g := d.join(Join{Offer: Offer{Peer: 1}})
	d.first().prio(true)
	g.lose, g.mute = anything, true
	d.write(5000)
	g.want("data on the second subflow", soon, isData)
	d.first().prio(false)
	d.wantAll("data of a subflow that gets nothing through", 20*time.Second)
	return d, g
}

func m136(s *Script) {
	d, _ := s.serve(withChecksums)
	f := d.first()
	d.warm()
	// The join is under way, so that the connection outlives its only subflow.
	syn := s.wantStray("join of the target", soon, joinSYN)
	f.lose, f.mute = anything, true
	d.write(1000)
	in := f.want("data", soon, isData)
	dsn := d.dsnOf(in)
	f.rst(func(o *Out) {
		o.Has |= wire.OptMPFail
		o.FailDSN = dsn
	})
	g := d.respond(syn, Join{})
	third := g.next(soon, any1(has(wire.OptMPJoin), isRST))
	if third == nil || isRST(third) {
		s.Skipf("the target opens no other subflow, as it may")
	}
	g.d = d
	d.flows = append(d.flows, g)
	g.ack()
	data := g.want("data on the new subflow", 10*time.Second, isData)
	s.Check(infinite(data), "the new subflow begins with another mapping: %v", &data.Segment)
	s.Check(d.dsnOf(data) == dsn, "the infinite mapping begins at another DSN than that of MP_FAIL: %v", &data.Segment)
}

// m142: the peer's join from and to the ports of the target's crosses it.
func m142(s *Script) {
	d, syn := s.wantJoin()
	f := s.newFlow(Offer{}.withDefaults(s), syn.Dst, syn.Src)
	f.nonceLocal = peerNonce
	out := f.out(wire.SYN)
	Offer{}.withDefaults(s).synOptions(out, nil)
	out.Has |= wire.OptMPJoin
	out.Join = wire.MPJoin{Form: wire.JoinSYN, Token: uint32(d.remoteKey.Token()), Nonce: f.nonceLocal}
	f.send(out)
	s.noStray("another join between the same addresses", quietly, all(joinSYN, func(in *In) bool {
		return in.Src.Addr() == syn.Src.Addr() && in.Dst.Addr() == syn.Dst.Addr() && in.Src.Port() != syn.Src.Port()
	}))
	d.wantAlive("after joins that crossed")
}
