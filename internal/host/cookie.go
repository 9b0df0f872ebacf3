package host

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// While half-open connections are many, SYNs are answered without keeping
// state (RFC 4987, Section 3.6): the initial sequence number is a cookie that
// holds the peer's MSS, the low bits of the timestamp hold its other options,
// and our MPTCP key can be computed again. The third ACK brings all of it
// back, and the peer's key.
//
// What is lost: a SYN/ACK is not sent again, so that a peer whose third ACK
// gets lost is known only once it sends data; and without timestamps there
// are no window scaling and no SACK.

// cookieMSS are the values of a peer's MSS that a cookie can hold.
var cookieMSS = [8]uint16{88, 536, 1220, 1360, 1400, 1440, 1460, 8960}

// mssIndex returns the place of the largest value that is not above mss.
func mssIndex(mss uint16) uint8 {
	i := len(cookieMSS) - 1
	for i > 0 && cookieMSS[i] > mss {
		i--
	}
	return uint8(i)
}

// The low bits of a cookie's timestamp: the peer's window scale, noScale if
// it offered none, and whether it offered SACK.
const (
	tsScale = 0x0f
	noScale = 0x0f
	tsSACK  = 0x10
	tsBits  = 0x1f
)

// cookieTSVal returns the timestamp that holds bits and is not after clock.
func cookieTSVal(clock, bits uint32) uint32 {
	v := clock&^tsBits | bits
	if int32(v-clock) > 0 {
		v -= tsBits + 1
	}
	return v
}

// cookieSlot returns the slot of time of cookies made at now.
func cookieSlot(now mono.Time) uint64 { return uint64(now.Duration() / key.CookieSlot) }

// crowded reports whether the half-open connections of l, or of the host, are
// so many that no more are made from SYNs.
func (h *Host) crowded(l *Listener) bool {
	return len(l.opening) >= (l.backlog+1)/2 || h.opening >= h.cfg.MaxHalfOpen
}

// answerCookie answers a SYN without keeping anything of it.
func (h *Host) answerCookie(now mono.Time, l *Listener, t tuple, syn *wire.Segment) Verdict {
	slot, peer := cookieSlot(now), syn.Seq
	secret := &h.cfg.Secret
	r := reply{src: t.local, dst: t.remote, header: h.cookieHeader(now, l, t)}
	offer := l.synAck
	mss := defaultPeerMSS(t.remote.Addr())
	if syn.Has&wire.OptMSS != 0 {
		mss = syn.MSS
	}
	r.header.Seq = secret.Cookie(slot, mssIndex(mss), peer, t.local, t.remote)
	r.header.Ack = peer.Add(1)
	mtu, _ := h.cfg.Path(t.local.Addr(), t.remote.Addr())
	r.options = wire.Options{Has: wire.OptMSS, MSS: uint16(min(mtu-20, 65535))}
	if syn.Has&offer.Has&wire.OptTimestamps != 0 {
		_, offset := h.iss(now, t.local, t.remote)
		clock := subflow.TimeWait{TSOffset: offset}
		bits := uint32(noScale)
		if syn.Has&offer.Has&wire.OptWScale != 0 {
			bits = uint32(min(syn.WScale, 14)) // RFC 7323, Section 2.3
			r.options.Has |= wire.OptWScale
			r.options.WScale = offer.WScale
		}
		if syn.Has&offer.Has&wire.OptSACKPermitted != 0 {
			bits |= tsSACK
			r.options.Has |= wire.OptSACKPermitted
		}
		r.options.Has |= wire.OptTimestamps
		r.options.TSVal, r.options.TSEcr = cookieTSVal(clock.TSVal(now), bits), syn.TSVal
	}
	if k := secret.CookieKey(slot, peer, t.local, t.remote); syn.Has&offer.Has&wire.OptMPCapable != 0 && h.keyFree(k) {
		r.options.Has |= wire.OptMPCapable
		r.options.Capable = offer.Capable
		r.options.Capable.SenderKey = k
		r.options.Capable.Flags |= syn.Capable.Flags & wire.CapChecksum
	}
	if !h.replies.push(r) {
		h.counters.RepliesLost++
		return h.drop(reason.DropBacklog)
	}
	h.count(MIBSyncookiesSent)
	l.cookiesUntil = now.Add(2 * key.CookieSlot)
	return Verdict{Kind: VerdictReply}
}

// cookieHeader returns the header of a SYN/ACK, without numbers. It and the
// options are those of a connection of the listener, as the one that the third
// ACK makes will believe it has sent them.
func (h *Host) cookieHeader(now mono.Time, l *Listener, t tuple) wire.Header {
	if l.synAck == nil {
		syn := wire.Segment{Src: t.remote, Dst: t.local, Header: wire.Header{Flags: wire.SYN}}
		syn.Has = wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted | wire.OptTimestamps | wire.OptMPCapable
		syn.MSS = 1460
		syn.Capable = wire.MPCapable{Version: wire.Version, Flags: wire.CapHMACSHA256}
		cfg := h.connConfig(l.profile, &Conn{first: t})
		l.synAck = new(wire.Segment)
		mpconn.Accept(now, &cfg, &syn).PollSegment(now, l.synAck)
	}
	return wire.Header{Flags: wire.SYN | wire.ACK, Wnd: l.synAck.Wnd}
}

// defaultPeerMSS is the MSS of a SYN that names none (RFC 9293, Section 3.7.1).
func defaultPeerMSS(peer netip.Addr) uint16 {
	if peer.Is4() {
		return 536
	}
	return 1220
}

// handleCookie makes a connection from a segment that acknowledges a cookie.
// It reports false if seg is nothing of the kind.
func (h *Host) handleCookie(now mono.Time, t tuple, seg *wire.Segment) (Verdict, bool) {
	if seg.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.ACK {
		return Verdict{}, false
	}
	l := h.listenerFor(t.local)
	if l == nil || !now.Before(l.cookiesUntil) {
		return Verdict{}, false
	}
	slot, index, ok := h.cfg.Secret.CheckCookie(cookieSlot(now), seg.Ack.Add(-1), seg.Seq.Add(-1), t.local, t.remote)
	switch {
	case !ok && seg.PayloadLen() > 0:
		// The third ACK and the first data may have been lost: what follows
		// them comes again behind them.
		h.count(MIBSyncookiesFailed)
		return h.drop(reason.DropBacklog), true
	case !ok:
		h.count(MIBSyncookiesFailed)
		return Verdict{}, false
	case seg.Has&(wire.OptDSS|wire.OptMPCapable) == wire.OptDSS:
		// The peer is sure of MPTCP, but this segment does not bring its key.
		return h.drop(reason.DropState), true
	case l.profile.cfg.RequireMPTCP && seg.Has&wire.OptMPCapable == 0:
		return h.stray(seg, reason.DropOption), true
	case l.full():
		return h.drop(reason.DropBacklog), true
	}
	h.count(MIBSyncookiesRecv)
	return h.acceptCookie(now, l, t, seg, slot, index), true
}

// acceptCookie makes a connection from the segment that brought a cookie back.
// It is led through the handshake that did take place: the SYN as far as it is
// known, then seg.
func (h *Host) acceptCookie(now mono.Time, l *Listener, t tuple, seg *wire.Segment, slot uint64, index uint8) Verdict {
	syn := wire.Segment{Src: t.remote, Dst: t.local, Header: wire.Header{
		Seq: seg.Seq.Add(-1), Flags: wire.SYN, Wnd: seg.Wnd,
	}}
	syn.Has, syn.MSS = wire.OptMSS, cookieMSS[index]
	answered := h.restore(now, l, t, &syn, seg)
	c := h.newConn(l.profile, t)
	cfg := l.profile.baseConfig(c)
	if !cfg.Plain && seg.Has&wire.OptMPCapable != 0 && seg.Capable.Keys == 2 {
		cfg.Key = h.cfg.Secret.CookieKey(slot, syn.Seq, t.local, t.remote)
		if h.keyFree(cfg.Key) {
			syn.Has |= wire.OptMPCapable
			syn.Capable = wire.MPCapable{Version: seg.Capable.Version, Flags: seg.Capable.Flags}
		} else {
			// Another connection took the token in the meantime.
			cfg.Plain, cfg.PlainWhy = true, reason.FallbackCollision
			h.count(MIBMPFallbackTokenInit)
			if l.profile.cfg.RequireMPTCP {
				return h.stray(seg, reason.DropLimit)
			}
		}
	}
	cfg.ChangeISS = func(seq.SSN) seq.SSN { return seg.Ack.Add(-1) }
	c.Conn = mpconn.Accept(answered, &cfg, &syn)
	var sent wire.Segment
	c.Conn.PollSegment(answered, &sent) // the SYN/ACK that the peer has
	l.add(c)
	c.HandleSegment(now, 0, seg)
	h.register(c, t)
	h.counters.Accepted++
	return Verdict{Kind: VerdictAccept, Conn: c}
}

// restore adds to syn the options that seg tells of, and returns when the SYN
// was answered, as well as that is known.
func (h *Host) restore(now mono.Time, l *Listener, t tuple, syn, seg *wire.Segment) mono.Time {
	// RFC 6298, Section 2.1, has 1 s for a round trip that was not measured.
	ago := time.Second
	if p, ok := h.Path(t.local.Addr(), t.remote.Addr()); ok && p.SRTT > 0 {
		ago = min(ago, p.SRTT)
	}
	if !l.profile.cfg.Subflow.NoTimestamps && seg.Has&wire.OptTimestamps != 0 {
		syn.Has |= wire.OptTimestamps
		syn.TSVal = seg.TSVal
		if scale := seg.TSEcr & tsScale; scale != noScale {
			syn.Has |= wire.OptWScale
			syn.WScale = uint8(scale)
		}
		if seg.TSEcr&tsSACK != 0 {
			syn.Has |= wire.OptSACKPermitted
		}
		_, offset := h.iss(now, t.local, t.remote)
		clock := subflow.TimeWait{TSOffset: offset}
		if age := int32(clock.TSVal(now) - seg.TSEcr); age >= 0 {
			ago = min(time.Second, time.Duration(age)*time.Millisecond)
		}
	}
	return max(1, now.Add(-ago))
}
