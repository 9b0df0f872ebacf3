package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// basicItems are those of RFC 8684, Section 3 before 3.1.
var basicItems = []Item{
	{ID: "M001", Section: "RFC 8684 3", Level: "MUST", Title: "signals on unacceptable segments have no effect", Play: m001},
	{ID: "M002", Section: "RFC 8684 3", Level: "MUST", Title: "duplicate ACKs with MPTCP options are no congestion signal", Play: m002},
	{ID: "M003", Section: "RFC 8684 3", Level: "SHOULD", Title: "at most two ACKs in a row just to carry options", Setup: Setup{Addrs: 5, Mesh: true}, Play: m003},
	{ID: "M004", Section: "RFC 8684 3", Level: "SHOULD", Title: "initial sequence numbers are unpredictable", Play: m004},
	{ID: "M005", Section: "RFC 8684 7.2", Level: "is", Title: "unknown subtypes are skipped", Play: m005},
}

// signalsAt sends every signal that would do harm, in segments that edit makes
// unacceptable.
func signalsAt(f *Flow, edit func(*Out)) {
	for _, signal := range []func(*Out){
		func(o *Out) { o.Has |= wire.OptFastClose; o.FastClose = f.d.remoteKey },
		func(o *Out) { o.Has |= wire.OptRemoveAddr; o.RemoveAddr = wire.RemoveAddr{N: 1, IDs: [37]uint8{0}} },
		func(o *Out) { o.Has |= wire.OptMPPrio; o.PrioBackup = true },
	} {
		o := f.out(wire.ACK)
		signal(o)
		edit(o)
		f.send(o)
	}
}

func m001(s *Script) {
	d := s.connect(Offer{}).warm()
	f := d.first()
	signalsAt(f, func(o *Out) { o.Seq = o.Seq.Add(1 << 30) })
	signalsAt(f, func(o *Out) { o.Ack = o.Ack.Add(1 << 20) })
	f.none("RST or FIN after signals on unacceptable segments", quietly, any1(isRST, isFIN))
	f.data(10)
	d.wantRead("data after the signals", 10)
	d.write(10)
	d.wantAll("data of the target after the signals", soon)
}

func m002(s *Script) {
	d := s.connect(Offer{}).warm()
	f := d.first()
	f.mute = true
	d.write(14000)
	first := f.want("data", soon, isData)
	f.each(20 * time.Millisecond)
	for range 4 {
		o := f.out(wire.ACK)
		o.Ack = first.Seq
		o.Has |= wire.OptMPPrio
		f.send(o)
	}
	f.none("retransmission before any timeout", 60*time.Millisecond, all(isData, at(first.Seq)))
}

func m003(s *Script) {
	d := s.connect(Offer{})
	f := d.first()
	f.data(10)
	d.wantRead("first data", 10)
	d.keyed = true
	d.write(10)
	d.wantAll("first data of the target", soon)
	f.mute = true
	// What comes after a pause as long as a retransmission timeout is at least, 200
	// ms, waited for it: to a peer that has not heard anything all that time it is
	// no sign of congestion.
	row, last := 0, s.Now()
	announced := false
	for _, in := range append(f.in, f.each(time.Second)...) {
		if !isPureACK(in) || in.Has&wire.OptMPTCP&^wire.OptDSS == 0 {
			row = 0
			continue
		}
		announced = true
		if in.At.Sub(last) >= 200*time.Millisecond {
			row = 0
		}
		row, last = row+1, in.At
		s.Check(row <= 2, "%d ACKs in a row that only carry options: %v", row, &in.Segment)
	}
	if !announced {
		s.Skipf("the target announces nothing")
	}
}

func m004(s *Script) {
	s.must(s.T.Listen(targetPort), "listen")
	var iss []seq.SSN
	for range 20 {
		f := s.open(Offer{})
		iss = append(iss, f.wantSYNACK(Offer{}).Seq)
		f.rst(nil)
	}
	near := 0
	for i := 1; i < len(iss); i++ {
		if d := iss[i].Diff(iss[i-1]); d > -1<<20 && d < 1<<20 {
			near++
		}
	}
	s.Check(near <= 2, "%d of 19 initial sequence numbers lie close to the one before", near)
}

func m005(s *Script) {
	d := s.connect(Offer{NoTS: true}).warm()
	f := d.first()
	for _, sub := range []byte{9, 14, 15} {
		p, dsn := d.take(20)
		o := f.mapped(p, dsn)
		o.Raw = []byte{kindMPTCP, 4, sub << 4, 0}
		f.send(o)
		d.wantRead("data beside an unknown subtype", 20)
		d.wantDataAcked("data beside an unknown subtype")
	}
}
