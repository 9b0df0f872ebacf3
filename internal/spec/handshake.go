package spec

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// peerKey is the peer's key, for which the checklist has vectors: token
// 66840dda, IDSN f5a101d3d29d6f72.
var peerKey = key.Key{1, 2, 3, 4, 5, 6, 7, 8}

// Offer is what the peer offers in a handshake; the zero value is what any
// current stack offers.
type Offer struct {
	Plain  bool // no MP_CAPABLE
	Flags  wire.CapableFlags
	Key    key.Key // zero = peerKey
	Peer   int     // the peer's address
	Port   uint16  // the peer's port; 0 = chosen
	Target int     // the target's address
	ISS    seq.SSN // 0 = one
	MSS    uint16  // 0 = 1460, 1440 for IPv6
	Wnd    int     // 0 = 1 MiB
	NoTS   bool
	NoSACK bool
	NoWS   bool
	NoMSS  bool
	Scale  uint8 // 0 = 7
	TSBase uint32
	Edit   func(*Out) // of the SYN or SYN/ACK
}

func (o Offer) withDefaults(s *Script) Offer {
	if o.Key == (key.Key{}) {
		o.Key = peerKey
	}
	if o.ISS == 0 {
		o.ISS = 1000000
	}
	if o.MSS == 0 {
		o.MSS = 1460
		if s.Setup.IPv6 {
			o.MSS = 1440
		}
	}
	if o.Wnd == 0 {
		o.Wnd = 1 << 20
	}
	if o.Scale == 0 {
		o.Scale = 7
	}
	if o.Flags == 0 {
		o.Flags = wire.CapHMACSHA256
	}
	if o.TSBase == 0 {
		o.TSBase = 1000
	}
	return o
}

// newFlow makes a flow of the peer that has sent nothing.
func (s *Script) newFlow(o Offer, local, remote netip.AddrPort) *Flow {
	f := &Flow{s: s, local: local, remote: remote, iss: o.ISS, sndNxt: o.ISS, sndUna: o.ISS, wnd: o.Wnd, tsBase: o.TSBase}
	s.flows = append(s.flows, f)
	return f
}

// synOptions writes the TCP options of an offer. An answer offers only what
// the SYN did.
func (o Offer) synOptions(out *Out, syn *In) {
	offered := func(opt wire.OptionSet) bool { return syn == nil || syn.Has&opt != 0 }
	if !o.NoMSS {
		out.Has |= wire.OptMSS
		out.MSS = o.MSS
	}
	if !o.NoWS && offered(wire.OptWScale) {
		out.Has |= wire.OptWScale
		out.WScale = o.Scale
	}
	if !o.NoSACK && offered(wire.OptSACKPermitted) {
		out.Has |= wire.OptSACKPermitted
	}
	if !o.NoTS && offered(wire.OptTimestamps) {
		out.Has |= wire.OptTimestamps
	}
}

// agree takes what both SYNs offered.
func (f *Flow) agree(o Offer, in *In) {
	f.irs, f.rcvNxt, f.up = in.Seq, in.Seq.Add(1), true
	f.theirWnd = int(in.Wnd)
	if in.Flags.Has(wire.ACK) {
		f.sndUna = in.Ack
	}
	f.sack = !o.NoSACK && in.Has&wire.OptSACKPermitted != 0
	f.ts = !o.NoTS && in.Has&wire.OptTimestamps != 0
	if f.ts {
		f.tsRecent = in.TSVal
	}
	if !o.NoWS && in.Has&wire.OptWScale != 0 {
		f.scale, f.theirs = o.Scale, min(in.WScale, 14)
	}
}

// capable returns the peer's MP_CAPABLE with a number of keys.
func (f *Flow) capable(keys uint8) wire.MPCapable {
	m := wire.MPCapable{Version: wire.Version, Flags: wire.CapHMACSHA256, Keys: keys}
	if f.d == nil {
		return m
	}
	if f.d.checksum {
		m.Flags |= wire.CapChecksum
	}
	m.SenderKey, m.ReceiverKey = f.d.localKey, f.d.remoteKey
	return m
}

// open sends a SYN to the target.
func (s *Script) open(o Offer) *Flow {
	o = o.withDefaults(s)
	if o.Port == 0 {
		o.Port = s.port()
	}
	f := s.newFlow(o, addrPort(s.T.Peer(o.Peer), o.Port), addrPort(s.T.Addr(o.Target), targetPort))
	out := f.out(wire.SYN)
	o.synOptions(out, nil)
	if !o.Plain {
		out.Has |= wire.OptMPCapable
		out.Capable = wire.MPCapable{Version: wire.Version, Flags: o.Flags}
	}
	if o.Edit != nil {
		o.Edit(out)
	}
	f.syn = out
	f.send(out)
	return f
}

// wantSYNACK waits for the answer to open.
func (f *Flow) wantSYNACK(o Offer) *In {
	in := f.next(quietly, isSYNACK)
	if in == nil {
		// The network of a real target may not have been ready.
		again := *f.syn
		f.send(&again)
		in = f.want("SYN/ACK", soon, isSYNACK)
	}
	f.s.Check(in.Ack == f.sndNxt, "SYN/ACK acknowledges %d, want %d", in.Ack, f.sndNxt)
	f.agree(o.withDefaults(f.s), in)
	return in
}

// newDialog makes a dialog on its first flow.
func (s *Script) newDialog(f *Flow, o Offer, remote *In) *Dialog {
	d := &Dialog{s: s, localKey: o.Key, flows: []*Flow{f}}
	d.sndNxt, d.una = d.idsn().Add(1), d.idsn().Add(1)
	d.checksum = (o.Flags|remote.Capable.Flags)&wire.CapChecksum != 0
	f.d = d
	return d
}

// begin is connect without the third ACK: the SYN/ACK has come, with
// MP_CAPABLE.
func (s *Script) begin(o Offer) *Dialog {
	s.must(s.T.Listen(targetPort), "listen")
	return s.beginAgain(o)
}

func (s *Script) beginAgain(o Offer) *Dialog {
	f := s.open(o)
	in := f.wantSYNACK(o)
	s.Check(in.Has&wire.OptMPCapable != 0 && in.Capable.Keys == 1, "SYN/ACK has no MP_CAPABLE with a key: %v", &in.Segment)
	d := s.newDialog(f, o.withDefaults(s), in)
	d.learnKey(in.Capable.SenderKey)
	return d
}

// third sends the third ACK, with both keys.
func (d *Dialog) third() {
	f := d.first()
	o := f.out(wire.ACK)
	o.Has |= wire.OptMPCapable
	o.Capable = f.capable(2)
	f.send(o)
}

// accept takes the connection from the target's listener.
func (d *Dialog) accept() *Dialog {
	app, err := d.s.T.Accept(soon)
	d.s.must(err, "accept")
	d.app = app
	return d
}

// connect opens an MPTCP connection to the target.
func (s *Script) connect(o Offer) *Dialog {
	d := s.begin(o)
	d.third()
	return d.accept()
}

// connectPlain opens a plain TCP connection to the target. Its dialog has no
// options.
func (s *Script) connectPlain(o Offer) *Dialog {
	s.must(s.T.Listen(targetPort), "listen")
	o.Plain = true
	f := s.open(o)
	in := f.wantSYNACK(o)
	d := s.newDialog(f, o.withDefaults(s), in)
	d.fallen = true
	f.plainAck()
	return d.accept()
}

// dialed lets the target's application connect to the peer and returns the
// SYN.
func (s *Script) dialed(o Offer) (*Flow, *In, App) {
	o = o.withDefaults(s)
	app, err := s.T.Dial(addrPort(s.T.Peer(o.Peer), peerPort))
	s.must(err, "dial")
	in := s.wantStray("SYN", soon, isSYN)
	f := s.newFlow(o, in.Dst, in.Src)
	f.agree(o, in)
	return f, in, app
}

// synack answers the SYN of dialed.
func (f *Flow) synack(o Offer, syn *In) {
	o = o.withDefaults(f.s)
	out := f.out(wire.SYN | wire.ACK)
	o.synOptions(out, syn)
	if !o.Plain {
		out.Has |= wire.OptMPCapable
		out.Capable = wire.MPCapable{Version: wire.Version, Flags: o.Flags, Keys: 1, SenderKey: o.Key}
	}
	if o.Edit != nil {
		o.Edit(out)
	}
	f.send(out)
}

// serve accepts an MPTCP connection of the target and returns it with its
// third ACK, whose keys are checked.
func (s *Script) serve(o Offer) (*Dialog, *In) {
	f, syn, app := s.dialed(o)
	s.Check(syn.Has&wire.OptMPCapable != 0, "SYN has no MP_CAPABLE: %v", &syn.Segment)
	d := s.newDialog(f, o.withDefaults(s), syn)
	d.app = app
	f.synack(o, syn)
	in := f.want("third ACK", soon, all(isPureACK, acks(f.sndNxt)))
	s.Check(in.Has&wire.OptMPCapable != 0 && in.Capable.Keys == 2, "third ACK has no MP_CAPABLE with keys: %v", &in.Segment)
	s.Check(in.Capable.ReceiverKey == d.localKey, "third ACK echoes key %x, want %x", in.Capable.ReceiverKey, d.localKey)
	d.learnKey(in.Capable.SenderKey)
	// MP_CAPABLE with data is for the side that opened the connection.
	d.keyed = true
	return d, in
}

// servePlain accepts a plain TCP connection of the target.
func (s *Script) servePlain(o Offer) *Dialog {
	f, syn, app := s.dialed(o)
	o.Plain = true
	d := s.newDialog(f, o.withDefaults(s), syn)
	d.app, d.fallen = app, true
	f.synack(o, syn)
	f.want("third ACK", soon, all(isPureACK, acks(f.sndNxt)))
	return d
}
