package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// timingItems are those of RFC 9293, Sections 3.7 to 3.9: timers and windows.
var timingItems = []Item{
	{ID: "T22", Section: "RFC 9293 3.7.4", Level: "SHOULD", Title: "Nagle's algorithm holds small segments back", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.mute = true
		d.write(10)
		f.want("first small segment", soon, isData)
		d.write(10)
		if f.next(100*time.Millisecond, isData) != nil {
			s.Deviate("Nagle's algorithm is off by default, as in Go's net")
		}
	}},
	{ID: "T23", Section: "RFC 9293 3.8.1", Level: "MUST", Title: "retransmissions back off by doubling, from a second on", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.mute = true
		d.write(1000)
		gaps := f.retransmissions(4, 19*time.Second)
		// Where time is real, the peer may see segments late.
		s.Check(gaps[3] > gaps[0], "gaps of retransmissions are %v", gaps)
		for i := 2; i < len(gaps) && s.T.Virtual(); i++ {
			s.Check(gaps[i] > gaps[i-1]*3/2 && gaps[i] < gaps[i-1]*5/2, "gaps of retransmissions are %v", gaps)
		}
		if gaps[0] < time.Second || gaps[1] < time.Second {
			s.Deviate("the least RTO is 200 ms, as in Linux")
		}
	}},
	{ID: "T24", Section: "RFC 9293 3.8.3", Level: "SHOULD", Title: "a silent peer is given at least 100 s", Play: func(s *Script) {
		s.Takes(100 * time.Second)
		d := s.connectPlain(Offer{})
		f := d.first()
		f.mute = true
		d.write(1000)
		n := 0
		for _, in := range f.each(100 * time.Second) {
			s.Check(!isRST(in), "RST within 100 s")
			if isData(in) {
				n++
			}
		}
		s.Check(n >= 4, "only %d retransmissions in 100 s", n-1)
		_, err := d.app.Read(1, 0)
		s.Check(err == nil, "the connection ends within 100 s: %v", err)
	}},
	{ID: "T25", Section: "RFC 9293 3.8.3", Level: "MUST", Title: "SYNs are sent again for three minutes", Play: func(s *Script) {
		s.Takes(3 * time.Minute)
		f, _, app := s.dialed(Offer{})
		f.mute = true
		begin := s.Now()
		n := len(f.each(3 * time.Minute))
		_, err := app.Read(1, 0)
		s.Check(err == nil, "the dial gives up within three minutes of %v, after %d repetitions: %v", begin, n, err)
		s.Check(n >= 3, "only %d repetitions", n)
	}},
	{ID: "T26", Section: "RFC 9293 3.8.4", Level: "MUST", Title: "keepalives are off by default", Play: func(s *Script) {
		s.Takes(2 * time.Minute)
		d := s.connectPlain(Offer{})
		f := d.first()
		s.Wait(quietly)
		f.forget()
		in := f.next(2*time.Minute, anything)
		if in == nil {
			return
		}
		s.Check(f.isProbe(in), "an idle connection sends %v", &in.Segment)
		s.Deviate("keepalives are on, after 15 s, as in Go's net")
	}},
	{ID: "T27", Section: "RFC 9293 3.8.6", Level: "SHOULD", Title: "a peer that shrinks its window is survived", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.mute = true
		d.write(50000)
		first := f.want("data", soon, isData)
		f.each(20 * time.Millisecond)
		edge := f.farthest(first)
		o := f.out(wire.ACK)
		o.Ack = first.Seq
		o.Wnd = uint16(1000 >> f.scale)
		f.send(o)
		f.none("new data beyond a window that shrank", 50*time.Millisecond, func(in *In) bool { return isData(in) && edge.Less(in.Seq.Add(in.PayloadLen())) })
		f.want("retransmission", 5*time.Second, all(isData, at(first.Seq)))
		f.mute = false
		f.rcvNxt = first.Seq
		f.ack()
		s.Wait(10 * time.Second)
		f.wnd = 1 << 20
		f.ack()
		d.got = nil
	}},
	{ID: "T28", Section: "RFC 9293 3.8.6.1", Level: "MUST", Title: "a zero window is probed, backed off, for ever", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.wnd = 0
		f.ack()
		d.write(5000)
		during := 15 * time.Second
		if s.T.Virtual() {
			during = 5 * time.Minute
		}
		probes := f.each(during)
		s.Check(f.reset == nil, "the connection is reset at a zero window")
		s.Check(len(probes) >= 3, "%d probes in %v", len(probes), during)
		n := len(probes)
		a, b := probes[n-2].At.Sub(probes[n-3].At), probes[n-1].At.Sub(probes[n-2].At)
		s.Check(b >= a, "probes come after %v and then %v", a, b)
		f.wnd = 1 << 20
		f.ack()
		d.wantAll("data after the window opened", 10*time.Second)
	}},
	{ID: "T29", Section: "RFC 9293 3.8.6.2", Level: "MUST", Title: "no silly segment into a window that opens a little", Play: func(s *Script) {
		d := s.connectPlain(Offer{NoWS: true})
		f := d.first()
		f.wnd = 0
		f.ack()
		f.mute = true
		d.write(5000)
		s.Wait(20 * time.Millisecond)
		f.forget()
		f.wnd = 10
		f.ack()
		f.none("a segment of ten bytes", 100*time.Millisecond, func(in *In) bool { return in.PayloadLen() > 1 })
	}},
	{ID: "T29b", Section: "RFC 9293 3.8.6.2", Level: "MUST", Title: "a slow reader advertises no silly windows", Setup: Setup{ReadBuffer: 64 << 10}, Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		for range 4096 {
			if f.theirWnd < 1000 {
				break
			}
			f.data(1000)
			s.Wait(time.Millisecond)
		}
		s.Wait(quietly / 4)
		f.forget()
		for range 20 {
			d.wantRead("a slow reader", 20)
		}
		n := 0
		for _, in := range f.each(100 * time.Millisecond) {
			if isPureACK(in) {
				n++
			}
		}
		s.Check(n <= 2, "400 bytes read in small pieces cause %d window updates", n)
	}},
	{ID: "T30", Section: "RFC 9293 3.8.6.3", Level: "MUST", Title: "an ACK is delayed by less than half a second", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		f.data(100)
		f.want("ACK of one segment", 500*time.Millisecond, acks(f.sndNxt))
		f.data(100)
		f.want("ACK of another segment", 500*time.Millisecond, acks(f.sndNxt))
	}},
	{ID: "T30b", Section: "RFC 9293 3.8.6.3", Level: "SHOULD", Title: "every second full segment is acknowledged", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		for range 40 {
			p, _ := d.take(1440)
			o := f.out(wire.ACK)
			o.Payload = append(o.Payload, p[:1428])
			f.sndNxt = f.iss.Add(1 + d.sent - 1440)
			o.Seq = f.sndNxt
			d.sent -= 12
			f.send(o)
		}
		var last seq.SSN = f.iss.Add(1)
		n := 0
		for _, in := range f.each(100 * time.Millisecond) {
			if isPureACK(in) && last.Less(in.Ack) {
				n, last = n+1, in.Ack
			}
		}
		s.Check(last == f.sndNxt, "the last segment is not acknowledged within 100 ms")
		if s.T.Virtual() { // in real time segments may be merged on the way
			s.Check(n >= 18, "40 full segments cause %d ACKs", n)
		}
	}},
	{ID: "T31", Section: "RFC 9293 3.9.1.2", Level: "MUST", Title: "the last segment of a write has PSH", Play: func(s *Script) {
		d := s.connectPlain(Offer{})
		f := d.first()
		d.write(4000)
		d.wantAll("data", soon)
		var last *In
		for _, in := range f.in {
			if isData(in) {
				last = in
			}
		}
		s.Check(last.Flags.Has(wire.PSH), "the last segment has no PSH: %v", &last.Segment)
	}},
}

// retransmissions waits for a segment and n repetitions of it and returns the
// times between them.
func (f *Flow) retransmissions(n int, within time.Duration) []time.Duration {
	last := f.want("data", soon, isData)
	first := last.Seq
	var gaps []time.Duration
	for range n {
		in := f.want("retransmission", within, all(isData, at(first)))
		gaps = append(gaps, in.At.Sub(last.At))
		last = in
	}
	return gaps
}

// farthest returns the end of all data that came, the given segment included.
func (f *Flow) farthest(in *In) seq.SSN {
	return f.rcvNxt.Max(in.Seq.Add(in.PayloadLen()))
}
