package spec

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Flow is the peer's end of one subflow. It keeps count of the sequence
// numbers and, unless muted, acknowledges what comes in order; everything else
// is up to the script.
type Flow struct {
	s *Script
	d *Dialog // nil = plain TCP

	local, remote netip.AddrPort // local is the peer's
	iss, irs      seq.SSN
	sndNxt        seq.SSN
	sndUna        seq.SSN // the target has acknowledged everything before
	rcvNxt        seq.SSN // meaningful once up
	up            bool    // a SYN of the target came

	wnd      int   // advertised, in bytes
	scale    uint8 // of wnd; 0 before it is agreed
	theirs   uint8 // scale of the target's windows
	theirWnd int   // last window of the target, in bytes
	ts, sack bool  // agreed
	tsRecent uint32
	tsBase   uint32

	syn    *Out   // that opened the flow
	early  uint32 // bytes that went with the SYN, which no mapping covers
	mute   bool   // no ACK but the script's
	lose   Match  // segments that the network loses; nil = none
	noDSS  bool   // a middlebox takes the DSS options of the peer
	finned bool   // the target's FIN came in order
	reset  *In    // the target's RST
	raw    []byte
	in     []*In   // not yet looked at by the script
	pieces []piece // declared mappings

	nonceLocal, nonceRemote uint32 // of MP_JOIN
}

// piece is a mapping that the target declared.
type piece struct {
	dsn seq.DSN
	ssn uint32 // relative
	n   int    // payload bytes
	fin bool   // a DATA_FIN follows them
}

// Out is a segment that the peer is about to send.
type Out struct {
	wire.Segment
	Raw  []byte // option bytes after those of the segment
	NoTS bool   // without the agreed timestamps
}

// out returns an empty segment of the flow with the numbers in place.
func (f *Flow) out(flags wire.Flags) *Out {
	o := &Out{}
	o.Src, o.Dst = f.local, f.remote
	o.Header = wire.Header{Seq: f.sndNxt, Flags: flags, Wnd: f.window(flags)}
	if flags.Has(wire.ACK) {
		o.Ack = f.rcvNxt
	}
	return o
}

func (f *Flow) window(flags wire.Flags) uint16 {
	if flags.Has(wire.SYN) {
		return uint16(min(f.wnd, 65535))
	}
	return uint16(min(f.wnd>>f.scale, 65535))
}

// clock is the peer's timestamp clock: milliseconds.
func (f *Flow) clock() uint32 { return f.tsBase + uint32(f.s.Now()/mono.Time(time.Millisecond)) }

// send sends a segment. SYN, FIN and payload at SND.NXT move it.
func (f *Flow) send(o *Out) {
	if (f.ts || o.Flags.Has(wire.SYN) && o.Has&wire.OptTimestamps != 0) && !o.NoTS {
		o.Has |= wire.OptTimestamps
		if o.TSVal == 0 {
			o.TSVal = f.clock()
		}
		if o.Flags.Has(wire.ACK) && o.TSEcr == 0 {
			o.TSEcr = f.tsRecent
		}
	}
	if o.Seq == f.sndNxt && !o.Flags.Has(wire.RST) {
		f.sndNxt = f.sndNxt.Add(o.Len())
	}
	f.sendPacket(packetOf(&o.Segment, o.Raw, f.s.Now()), &o.Segment)
}

func (f *Flow) sendPacket(p Packet, seg *wire.Segment) {
	f.s.trace("peer  ", seg)
	if f.s.gather {
		f.s.burst = append(f.s.burst, p)
		return
	}
	f.s.T.Send(p)
}

// ack sends an ACK, with a DATA_ACK on an MPTCP subflow.
func (f *Flow) ack() {
	o := f.out(wire.ACK)
	f.dataAck(o)
	f.send(o)
}

// plainAck sends an ACK without MPTCP options.
func (f *Flow) plainAck() { f.send(f.out(wire.ACK)) }

// fin sends a FIN.
func (f *Flow) fin() {
	o := f.out(wire.ACK | wire.FIN)
	f.dataAck(o)
	f.send(o)
}

// rst sends a RST that any stack has to obey.
func (f *Flow) rst(edit func(*Out)) {
	o := f.out(wire.ACK | wire.RST)
	if edit != nil {
		edit(o)
	}
	f.send(o)
}

// receive takes a segment of the target: it keeps count, acknowledges, and
// keeps the segment for the script.
func (f *Flow) receive(in *In) {
	f.in = append(f.in, in)
	if f.lose != nil && f.lose(in) {
		return
	}
	if in.Flags.Has(wire.RST) {
		f.reset = in
		return
	}
	if in.Flags.Has(wire.SYN) {
		if f.up && f.irs == in.Seq && !f.mute {
			f.ack()
		}
		return
	}
	if f.sndUna.LessEq(in.Ack) {
		f.sndUna, f.theirWnd = in.Ack, int(in.Wnd)<<f.theirs
	}
	if in.Has&wire.OptTimestamps != 0 && in.Seq.LessEq(f.rcvNxt) {
		f.tsRecent = in.TSVal
	}
	due := f.learn(in)
	due = f.consume(in) || due
	if due && !f.mute {
		f.ack()
	}
}

// learn keeps what a segment says at the data level. It reports whether a lone
// DATA_FIN asks for an answer.
func (f *Flow) learn(in *In) bool {
	if f.d == nil {
		return false
	}
	if hasDataAck(in) {
		f.d.una = f.d.una.Max(f.d.ackOf(in))
	}
	switch {
	case in.Has&wire.OptMPCapable != 0 && in.Capable.HasData:
		return f.d.declare(f, piece{f.d.remoteKey.IDSN().Add(1), 1, int(in.Capable.DataLen), false})
	case infinite(in):
		f.d.fallen = true
	case mapping(in):
		p := piece{dsn: f.d.dsnOf(in), ssn: in.DSS.SSN, n: int(in.DSS.Len), fin: hasDataFin(in)}
		if p.fin {
			p.n--
		}
		return f.d.declare(f, p)
	}
	return false
}

// consume takes payload and FIN in order. It reports whether an ACK is due.
func (f *Flow) consume(in *In) bool {
	n := in.Len()
	if n == 0 {
		return in.Seq == f.rcvNxt.Add(-1) // a probe
	}
	if in.Seq != f.rcvNxt {
		return true
	}
	if b := in.Data(); len(b) > 0 {
		if f.d != nil {
			f.d.deliver(f, f.rel(f.rcvNxt), b)
		} else {
			f.raw = append(f.raw, b...)
		}
	}
	f.rcvNxt = f.rcvNxt.Add(n)
	f.finned = f.finned || in.Flags.Has(wire.FIN)
	return true
}

// rcvEdge is the right edge of the window that the target last advertised.
func (f *Flow) rcvEdge() seq.SSN { return f.sndUna.Add(f.theirWnd) }

// rel returns a sequence number of the target relative to its SYN.
func (f *Flow) rel(n seq.SSN) uint32 { return uint32(n - f.irs) }

// next returns the next segment that satisfies match; others are passed over.
// It is nil if none comes within the time.
func (f *Flow) next(within time.Duration, match Match) *In {
	for end := f.s.Now().Add(within); ; {
		for len(f.in) > 0 {
			in := f.in[0]
			f.in = f.in[1:]
			if match(in) {
				return in
			}
		}
		if !f.s.pull(end) && len(f.in) == 0 {
			return nil
		}
	}
}

// want is next that must come.
func (f *Flow) want(why string, within time.Duration, match Match) *In {
	in := f.next(within, match)
	if in == nil {
		f.s.Failf("%s: nothing like it came within %v%s", why, within, f.s.lastWords())
	}
	return in
}

// none fails if a segment that satisfies match comes in the time.
func (f *Flow) none(why string, during time.Duration, match Match) {
	if in := f.next(during, match); in != nil {
		f.s.Failf("%s: got %v", why, &in.Segment)
	}
}

// each waits and returns all segments that came, in order.
func (f *Flow) each(during time.Duration) []*In {
	f.s.Wait(during)
	got := f.in
	f.in = nil
	return got
}

// forget drops what came and was not looked at.
func (f *Flow) forget() { f.each(0) }
