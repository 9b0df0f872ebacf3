package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// version is the version of MPTCP spoken here (RFC 8684).
const version = 1

// Option bytes kept free on segments, each a multiple of 4.
const (
	roomCapableSYN    = 4
	roomCapableSYNACK = 12
	roomCapableACK    = 20
	roomJoinSYN       = 12
	roomJoinSYNACK    = 16
	roomJoinACK       = 24
	// roomData holds a DSS with both numbers of 8 bytes, with or without
	// checksum, and MP_CAPABLE with data.
	roomData = 28
	// roomACK holds a DSS with a DATA_ACK of 8 bytes.
	roomACK = 12
)

// roomFor returns the option room a flow needs in its present phase.
func (c *Conn) roomFor(f *flow) subflow.Room {
	if c.mode == modePlain {
		return subflow.Room{}
	}
	r := subflow.Room{Data: roomData, ACK: roomACK}
	switch {
	case f.join != nil && f.join.active:
		r.SYN = roomJoinSYN
	case f.join != nil:
		r.SYN = roomJoinSYNACK
	case c.active:
		r.SYN = roomCapableSYN
	default:
		r.SYN = roomCapableSYNACK
	}
	switch {
	case f.join != nil && f.phase != phaseUp:
		r.ACK = roomJoinACK
	case f.join == nil && c.active && !c.joinable:
		r.ACK = roomCapableACK
	}
	return r
}

// capableFlags returns the flags of our MP_CAPABLE options.
func (c *Conn) capableFlags() wire.CapableFlags {
	// RFC 8684, Section 3.1: 'An implementation that only supports this method
	// MUST set bit "H" to 1 and bits "D" through "G" to 0.' Of bit B: "It MUST
	// be set to 0 for current implementations."
	fl := wire.CapHMACSHA256
	if c.checksum || c.mode == modeUndecided && c.cfg.Checksum {
		// Deviation: without a wish of either side A is 0, as in Linux; the
		// RFC would have checksums on unless an administrator turns them off.
		fl |= wire.CapChecksum
	}
	if c.cfg.DenyJoinInitial {
		fl |= wire.CapDenyJoin
	}
	return fl
}

// acceptable reports whether a peer's MP_CAPABLE is one that we can answer.
func acceptable(o *wire.MPCapable) bool {
	// RFC 8684, Section 3.1: with B set, the option "MUST" be "silently
	// ignored"; a host that finds no algorithm it knows "MUST" act as if the
	// option were absent.
	return o.Version >= version && o.Flags&wire.CapExtension == 0 && o.Flags&wire.CapHMACSHA256 != 0
}

// acceptCapable decides, on a SYN, whether the passive side answers with
// MP_CAPABLE.
func (c *Conn) acceptCapable(syn *wire.Segment) {
	if c.mode == modePlain {
		return
	}
	// RFC 8684, Section 3.1: "If a SYN contains an MP_CAPABLE option but the
	// SYN/ACK does not", and the other way round, the connection "MUST"
	// operate as regular TCP.
	if syn.Has&wire.OptMPCapable == 0 || syn.Capable.Keys != 0 || !acceptable(&syn.Capable) {
		c.startPlain(reason.FallbackPeerSYN)
		return
	}
	c.takeCapableFlags(&syn.Capable)
}

// takeCapableFlags notes what the peer's flags ask for.
func (c *Conn) takeCapableFlags(o *wire.MPCapable) {
	// RFC 8684, Section 3.1: "if either host requires the use of checksums,
	// checksums MUST be used."
	if o.Flags&wire.CapChecksum != 0 || c.cfg.Checksum {
		c.checksum = true
	}
	if o.Flags&wire.CapDenyJoin != 0 {
		c.denyInitial = true
	}
}

// admit filters segments that must not even reach the subflow. A DSS that
// overtakes the third ACK would establish the subflow before the keys are
// here; the peer repeats it.
func (c *Conn) admit(f *flow, seg *wire.Segment) bool {
	early := c.mode == modeUndecided && !c.active && f.phase == phaseOpening
	if early && seg.Flags&(wire.SYN|wire.ACK|wire.RST) == wire.SYN && seg.Has&wire.OptMPCapable == 0 {
		// The peer has given up on MP_CAPABLE, perhaps because our answer with
		// it never arrives.
		c.startPlain(reason.FallbackPeerSYN)
		return true
	}
	return !early || seg.Has&wire.OptDSS == 0 || seg.Has&wire.OptMPCapable != 0 || seg.Flags&(wire.RST|wire.SYN) != 0
}

// handshake acts on a segment of a flow that is not up yet.
func (c *Conn) handshake(now mono.Time, f *flow, seg *wire.Segment) {
	switch {
	case seg.Flags&wire.RST != 0:
	case f.join != nil:
		c.joinHandshake(now, f, seg)
	case !c.active:
		if f.tcp.State().Synchronized() {
			c.capableThirdACK(now, f, seg)
		}
	case seg.Flags.Has(wire.SYN | wire.ACK):
		c.capableSYNACK(now, f, seg)
	case seg.Flags.Has(wire.SYN):
		// Simultaneous open: neither side would know whose key comes first.
		c.startPlain(reason.FallbackPeerSYN)
	}
}

// capableSYNACK acts on the SYN/ACK as the active opener.
func (c *Conn) capableSYNACK(now mono.Time, f *flow, seg *wire.Segment) {
	o := &seg.Capable
	if seg.Has&wire.OptMPCapable == 0 || o.Keys != 1 || o.Version != version || !acceptable(o) {
		c.startPlain(reason.FallbackPeerSYNACK)
		return
	}
	c.takeCapableFlags(o)
	c.learnKey(f, o.SenderKey)
	// RFC 9293, Section 3.10.7.3: the window of a SYN is never scaled.
	c.snd.edge = uint64(seg.Wnd)
	c.flowUp(now, f)
}

// capableThirdACK acts, as the passive opener, on the segment that
// established the first subflow.
func (c *Conn) capableThirdACK(now mono.Time, f *flow, seg *wire.Segment) {
	o := &seg.Capable
	// RFC 8684, Section 3.1: "If the third packet (the ACK) does not contain
	// the MP_CAPABLE option, then the session MUST fall back to operating as a
	// regular, single-path TCP session."
	if seg.Has&wire.OptMPCapable == 0 || o.Keys != 2 {
		c.startPlain(reason.FallbackThirdACK)
		return
	}
	if !key.Equal(o.ReceiverKey[:], c.localKey[:]) {
		c.startPlain(reason.FallbackBadKeys)
		return
	}
	c.learnKey(f, o.SenderKey)
	c.snd.edge = max(uint64(f.tcp.PeerWindow(seg)), c.snd.nxt)
	c.flowUp(now, f)
	c.proveEarly(now, f)
}

// learnKey takes the peer's key: from here on the connection is MPTCP.
func (c *Conn) learnKey(f *flow, k key.Key) {
	c.mode = modeMPTCP
	c.remoteKey = k
	token, idsn := k.Derive()
	c.remoteToken = token
	c.rcv.setIDSN(idsn)
	c.rcv.skip(f.lead.in)
}

// handleCapableData acts on MP_CAPABLE with data: a mapping of the first
// bytes.
//
// RFC 8684, Section 3.1: it is "semantically equivalent" to a DSS mapping at
// IDSN+1 and subflow sequence number 1.
func (c *Conn) handleCapableData(now mono.Time, f *flow, seg *wire.Segment) {
	o := &seg.Capable
	if c.active || f.join != nil || o.DataLen == 0 {
		return
	}
	if o.HasChecksum != c.checksum {
		c.wrongChecksumUse(now, f)
		return
	}
	c.addMapping(now, f, mapping{off: f.lead.in, data: f.lead.in, n: int(o.DataLen), checksum: o.Checksum, dssLen: o.DataLen})
	c.prove(f)
}

// prove notes that the peer has seen our keys: the connection stays MPTCP.
func (c *Conn) prove(f *flow) {
	if c.joinable {
		return
	}
	c.joinable = true
	f.tcp.SetRoom(c.roomFor(f))
	if c.active && (c.rcv.q.Next() > 0 || f.lead.out > 0) {
		// What came before the proof was acknowledged by MP_CAPABLE, which leaves
		// no room for the DATA_ACK.
		f.tcp.RequestAck()
	}
	c.emit(pending{kind: EventJoinable})
}

// putCapable adds MP_CAPABLE to a segment of the first subflow.
func (c *Conn) putCapable(seg *wire.Segment, keys uint8) {
	seg.Has |= wire.OptMPCapable
	seg.Capable = wire.MPCapable{
		Version: version, Flags: c.capableFlags(), Keys: keys,
		SenderKey: c.localKey, ReceiverKey: c.remoteKey,
	}
}

// putCapableData adds MP_CAPABLE with a data length, the mapping m.
func (c *Conn) putCapableData(seg *wire.Segment, m *mapping) {
	c.putCapable(seg, 2)
	seg.Capable.HasData = true
	seg.Capable.DataLen = uint16(m.n)
	seg.Capable.HasChecksum = c.checksum
	seg.Capable.Checksum = m.checksum
}

// putSYN adds the MPTCP option of a SYN or SYN/ACK.
func (c *Conn) putSYN(f *flow, seg *wire.Segment) {
	f.syns++
	switch {
	case c.mode == modePlain:
	case f.join != nil:
		c.putJoinSYN(f, seg)
	case !c.active:
		c.putCapable(seg, 1)
	case f.syns <= uint16(c.offers):
		// RFC 8684, Section 3.7: a host "SHOULD" try a SYN without
		// MP_CAPABLE when several with it stayed unanswered.
		c.putCapable(seg, 0)
	default:
		c.startPlain(reason.FallbackSYNTimeout)
	}
}
