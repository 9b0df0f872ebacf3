package spec

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// peerNonce is the nonce of the peer's joins, as in the checklist's vectors.
const peerNonce = 0xa1a2a3a4

// Join is how the peer joins.
type Join struct {
	Offer
	Backup bool
	ID     uint8      // address id; 0 = Peer + 1
	Port   uint16     // of the target; 0 = that of the first subflow
	Edit   func(*Out) // of the SYN, or of the SYN/ACK of a responder
}

// joinSYN sends the SYN of a join.
func (d *Dialog) joinSYN(j Join) *Flow {
	s := d.s
	o := j.Offer.withDefaults(s)
	if o.Port == 0 {
		o.Port = s.port()
	}
	if j.ID == 0 {
		j.ID = uint8(o.Peer) + 1
	}
	if j.Port == 0 {
		j.Port = d.first().remote.Port()
	}
	f := s.newFlow(o, addrPort(s.T.Peer(o.Peer), o.Port), addrPort(s.T.Addr(o.Target), j.Port))
	f.nonceLocal = peerNonce
	out := f.out(wire.SYN)
	o.synOptions(out, nil)
	out.Has |= wire.OptMPJoin
	out.Join = wire.MPJoin{
		Form: wire.JoinSYN, Backup: j.Backup, AddrID: j.ID,
		Token: uint32(d.remoteKey.Token()), Nonce: f.nonceLocal,
	}
	if j.Edit != nil {
		j.Edit(out)
	}
	f.send(out)
	return f
}

// wantJoinSYNACK waits for the SYN/ACK of a join and verifies its HMAC.
func (d *Dialog) wantJoinSYNACK(f *Flow, j Join) *In {
	in := f.want("SYN/ACK of the join", soon, isSYNACK)
	d.s.Check(in.Has&wire.OptMPJoin != 0 && in.Join.Form == wire.JoinSYNACK, "SYN/ACK has no MP_JOIN of 16 bytes: %v", &in.Segment)
	f.agree(j.Offer.withDefaults(d.s), in)
	f.nonceRemote = in.Join.Nonce
	want := key.JoinHMAC(d.remoteKey, d.localKey, f.nonceRemote, f.nonceLocal)
	d.s.Check([8]byte(in.Join.HMAC[:8]) == [8]byte(want[:8]), "HMAC of the SYN/ACK is %x, want %x", in.Join.HMAC[:8], want[:8])
	return in
}

// joinACK sends the third ACK of a join.
func (d *Dialog) joinACK(f *Flow, edit func(*Out)) {
	o := f.out(wire.ACK)
	o.Has |= wire.OptMPJoin
	o.Join = wire.MPJoin{Form: wire.JoinACK}
	mac := key.JoinHMAC(d.localKey, d.remoteKey, f.nonceLocal, f.nonceRemote)
	copy(o.Join.HMAC[:], mac[:])
	if edit != nil {
		edit(o)
	}
	f.send(o)
}

// join adds a subflow to the connection.
func (d *Dialog) join(j Join) *Flow {
	f := d.joinSYN(j)
	d.wantJoinSYNACK(f, j)
	d.joinACK(f, nil)
	f.want("ACK of the join's third ACK", soon, all(isPureACK, acks(f.sndNxt)))
	f.d = d
	d.flows = append(d.flows, f)
	d.s.Wait(quietly / 10)
	f.forget()
	return f
}

// respond answers a join of the target with a SYN/ACK.
func (d *Dialog) respond(syn *In, j Join) *Flow {
	o := j.Offer.withDefaults(d.s)
	f := d.s.newFlow(o, syn.Dst, syn.Src)
	f.agree(o, syn)
	f.nonceLocal, f.nonceRemote = peerNonce, syn.Join.Nonce
	out := f.out(wire.SYN | wire.ACK)
	o.synOptions(out, syn)
	out.Has |= wire.OptMPJoin
	out.Join = wire.MPJoin{Form: wire.JoinSYNACK, Backup: j.Backup, AddrID: j.ID, Nonce: f.nonceLocal}
	mac := key.JoinHMAC(d.localKey, d.remoteKey, f.nonceLocal, f.nonceRemote)
	copy(out.Join.HMAC[:], mac[:8])
	if j.Edit != nil {
		j.Edit(out)
	}
	f.send(out)
	return f
}

// wantJoinACK waits for the third ACK of a target's join and verifies it.
func (d *Dialog) wantJoinACK(f *Flow) *In {
	in := f.want("third ACK of the join", soon, has(wire.OptMPJoin))
	d.s.Check(in.Join.Form == wire.JoinACK, "MP_JOIN of the third ACK has the wrong form: %v", &in.Segment)
	want := key.JoinHMAC(d.remoteKey, d.localKey, f.nonceRemote, f.nonceLocal)
	d.s.Check([20]byte(in.Join.HMAC[:]) == [20]byte(want[:20]), "HMAC of the third ACK is %x, want %x", in.Join.HMAC, want[:20])
	return in
}

// joined answers a whole join of the target.
func (d *Dialog) joined(syn *In, j Join) *Flow {
	f := d.respond(syn, j)
	d.wantJoinACK(f)
	f.d = d
	d.flows = append(d.flows, f)
	f.ack()
	d.s.Wait(quietly / 10)
	f.forget()
	return f
}

// wantRST waits for a RST of a flow. Where the RFC recommends an MP_TCPRST
// reason, it is checked if the option is there; codes lists those that fit.
func (f *Flow) wantRST(why string, within time.Duration, codes ...reason.Reset) *In {
	if f.reset == nil {
		f.want(why, within, isRST)
	}
	in := f.reset
	if len(codes) == 0 || in.Has&wire.OptMPTCPRst == 0 {
		return in
	}
	for _, c := range codes {
		if in.TCPRst.Reason == c {
			return in
		}
	}
	f.s.Failf("%s: MP_TCPRST has reason %d, want %v", why, in.TCPRst.Reason, codes)
	return in
}
