package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// windowItems are those of RFC 8684, Sections 3.3.4 to 3.3.8.
var windowItems = []Item{
	{ID: "M091", Section: "RFC 8684 3.3.4", Level: "MUST", Title: "the right edge of the data window never moves left", Setup: Setup{ReadBuffer: 128 << 10}, Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		d.fillWindow(func(in *In, f *Flow, edge *seq.DSN) {
			e := d.ackOf(in).Add(int(in.Wnd) << f.theirs)
			s.Check(e.Diff(*edge) > -1<<f.theirs, "the edge moves back by %d: %v", edge.Diff(e), &in.Segment)
			*edge = edge.Max(e)
		})
	}},
	{ID: "M092", Section: "RFC 8684 3.3.4", Level: "is", Title: "all subflows advertise one window", Setup: Setup{ReadBuffer: 128 << 10}, Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		before := g.theirWnd
		for range 20 {
			d.first().data(1000)
		}
		d.wantDataAcked("20 KB on the first subflow")
		g.forget()
		g.data(1000)
		d.wantDataAcked("1 KB on the second")
		s.Check(g.theirWnd < before, "20 KB unread on the first subflow leave the window of the second at %d", g.theirWnd)
	}},
	{ID: "M094", Section: "RFC 8684 3.3.5", Level: "is", Title: "an older, smaller window does not shrink the send window", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		f := d.first()
		f.ack()
		g.wnd = 1000
		g.ack()
		g.lose = anything // it would be limited by its own window anyway
		d.muteAll(true)
		s.Wait(quietly / 10)
		f.forget()
		d.write(10000)
		got := 0
		for _, in := range f.each(quietly) {
			got += in.PayloadLen()
		}
		s.Check(got > 4000, "only %d of 10000 bytes come although the window of the first subflow is open", got)
	}},
	{ID: "M096", Section: "RFC 8684 3.3.5", Level: "MUST", Title: "a subflow's own window is obeyed", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1, Wnd: 4096}})
		edge := g.rcvNxt.Add(4096)
		d.write(200000)
		for end := s.Now().Add(10 * time.Second); len(d.got) < d.wrote; {
			s.Check(s.pull(end), "the transfer stands still at %d of %d bytes", len(d.got), d.wrote)
			for _, in := range g.in {
				s.Check(in.Seq.Add(in.PayloadLen()).LessEq(edge), "data beyond the subflow's window: %v", &in.Segment)
			}
			g.in = nil
			edge = edge.Max(g.rcvNxt.Add(4096))
		}
	}},
	{ID: "M097", Section: "RFC 8684 3.3.6", Level: "MAY", Title: "data of a dead subflow moves to a live one", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		d.join(Join{Offer: Offer{Peer: 1}})
		f := d.first()
		f.mute, f.lose = true, anything
		d.write(50000)
		d.wantAll("data although one subflow is dead", 18*time.Second)
	}},
	{ID: "M099", Section: "RFC 8684 3.3.8", Level: "SHOULD", Title: "no data on a backup subflow while another is usable", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}, Backup: true})
		d.write(60000)
		d.wantAll("data beside a backup subflow", soon)
		g.none("data on the backup subflow", 0, isData)
		g.data(100)
		d.wantRead("data of the peer on the backup subflow", 100)
		d.wantDataAcked("data of the peer on the backup subflow")
		d.first().rst(nil)
		d.write(1000)
		g.want("data on the backup subflow when it is the last", 10*time.Second, isData)
	}},
	{ID: "M100", Section: "RFC 8684 3.3.8", Level: "is", Title: "MP_PRIO changes the subflow that it came on", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		f := d.first()
		f.prio(true)
		d.write(60000)
		d.wantAll("data after MP_PRIO", soon)
		f.none("data on the subflow that became backup", 0, isData)
		g.forget()
		f.prio(false)
		g.prio(true)
		d.write(60000)
		d.wantAll("data after MP_PRIO back", soon)
		g.none("data on the other subflow that became backup", 0, isData)
	}},
	{ID: "M100b", Section: "RFC 8684 3.3.8", Level: "is", Title: "MP_PRIO with an address id touches no other subflow", Play: func(s *Script) {
		d := s.connect(Offer{}).warm()
		g := d.join(Join{Offer: Offer{Peer: 1}})
		g.prio(true)
		o := g.out(wire.ACK)
		o.Raw = []byte{kindMPTCP, 4, subPrio<<4 | 1, 0}
		g.send(o)
		s.Wait(quietly / 10)
		d.first().forget()
		d.write(20000)
		d.first().want("data on the first subflow", soon, isData)
	}},
}

// prio sends an MP_PRIO.
func (f *Flow) prio(backup bool) {
	o := f.out(wire.ACK)
	f.dataAck(o)
	o.Has |= wire.OptMPPrio
	o.PrioBackup = backup
	f.send(o)
	f.s.Wait(quietly / 10)
}

// fillWindow sends on all flows until the window is full, lets the application
// read slowly, and shows check every DATA_ACK.
func (d *Dialog) fillWindow(check func(in *In, f *Flow, edge *seq.DSN)) {
	edge := d.sndNxt
	look := func() {
		d.s.Wait(2 * time.Millisecond)
		for _, f := range d.flows {
			for _, in := range f.in {
				if hasDataAck(in) {
					check(in, f, &edge)
				}
			}
			f.in = nil
		}
	}
	d.first().data(1000)
	look()
	for round := range 6 {
		for i := 0; d.sndNxt.Add(1000).LessEq(edge) && i < 2000; i++ {
			d.flows[i%len(d.flows)].data(1000)
			look()
		}
		if n := d.sent - d.read; n > 0 {
			d.wantRead("a slow reader", min(n, 3000*(round+1)))
		}
		look()
	}
}
