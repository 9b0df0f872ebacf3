package mpconn

import (
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// joinState is the MP_JOIN handshake of one subflow (RFC 8684, Section 3.2).
type joinState struct {
	ends                    subflow.Ends
	active                  bool // we sent the SYN
	localNonce, remoteNonce uint32
	tries                   int       // third ACKs repeated
	retry                   mono.Time // when to repeat the third ACK
}

// maxJoinACKs bounds how often the third ACK is repeated.
const maxJoinACKs = 6

// OpenArgs name a new subflow.
type OpenArgs struct {
	Local    netip.AddrPort
	Remote   netip.AddrPort
	RemoteID uint8 // address id under which the peer is known to have Remote
	Backup   bool  // ask the peer not to send data there
}

// Open begins a subflow by MP_JOIN and returns its id. It returns false while
// joins are not allowed or the limit of subflows is reached.
func (c *Conn) Open(now mono.Time, a OpenArgs) (id int, ok bool) {
	// RFC 8684, Section 3.1: a host "MUST NOT" open a subflow before a DSS
	// was received; flag C: "MUST NOT" join the peer's initial address.
	if l := c.limitOf(a.Remote); l != reason.LimitNone {
		c.JoinStopped(a.Local, a.Remote, l)
		return 0, false
	}
	localID, ok := c.addrs.idOf(a.Local)
	if !ok {
		c.JoinStopped(a.Local, a.Remote, reason.LimitIDs)
		return 0, false
	}
	c.addrs.cancelWithdrawal(localID)
	f := c.addFlow(flowArgs{
		local: a.Local, remote: a.Remote, localID: localID, remoteID: a.RemoteID, backup: a.Backup,
		join: &joinState{active: true, localNonce: uint32(c.cfg.Rand())},
	})
	f.tcp = subflow.Open(now, c.flowConfig(now, f), f.ctl)
	c.emit(pending{kind: EventSubflowOpened, f: f})
	return f.id, true
}

// limitOf says what forbids a subflow to an address of the peer.
func (c *Conn) limitOf(remote netip.AddrPort) reason.Limit {
	switch {
	case !c.Joinable():
		return reason.LimitState
	case len(c.flows) >= c.cfg.MaxSubflows:
		return reason.LimitSubflows
	case c.denyInitial && remote == c.ends.Remote:
		return reason.LimitDenied
	case slices.Contains(c.addrs.removed, remote.Addr()):
		return reason.LimitWithdrawn
	}
	return reason.LimitNone
}

// HandleJoin takes a SYN whose MP_JOIN names this connection's token and
// returns the id of the subflow it began. It returns false if the join is
// refused; the driver answers with a RST and reason.ResetProhibited.
func (c *Conn) HandleJoin(now mono.Time, syn *wire.Segment) (id int, ok bool) {
	switch {
	case !c.Joinable() || syn.Has&wire.OptMPJoin == 0 || syn.Join.Form != wire.JoinSYN:
		c.drop(reason.DropLimit)
		return 0, false
	case len(c.flows) >= c.cfg.MaxSubflows:
		c.JoinStopped(syn.Dst, syn.Src, reason.LimitSubflows)
		c.drop(reason.DropLimit)
		return 0, false
	}
	localID, ok := c.addrs.joinedAt(syn.Dst)
	if !ok {
		c.JoinStopped(syn.Dst, syn.Src, reason.LimitAddress)
		c.drop(reason.DropLimit)
		return 0, false
	}
	f := c.addFlow(flowArgs{
		local: syn.Dst, remote: syn.Src, localID: localID, remoteID: syn.Join.AddrID,
		join: &joinState{localNonce: uint32(c.cfg.Rand()), remoteNonce: syn.Join.Nonce},
	})
	f.backupRemote = syn.Join.Backup
	f.tcp = subflow.Accept(now, c.flowConfig(now, f), f.ctl, syn)
	c.snd.idle = false
	c.emit(pending{kind: EventSubflowOpened, f: f})
	return f.id, true
}

// joinHandshake acts on a segment of a joining flow.
func (c *Conn) joinHandshake(now mono.Time, f *flow, seg *wire.Segment) {
	j := f.join
	switch {
	case f.phase == phasePreEstablished:
		if seg.Flags&wire.SYN == 0 {
			// The fourth ACK, or any later segment in its place.
			j.retry = 0
			c.flowUp(now, f)
		}
	case j.active && seg.Flags.Has(wire.SYN|wire.ACK):
		c.joinSYNACK(now, f, seg)
	case j.active && seg.Flags.Has(wire.SYN):
		c.abortFlow(now, f, reason.CloseHandshake, reason.ResetMPTCP)
	case !j.active && f.tcp.State().Synchronized():
		c.joinThirdACK(now, f, seg)
	}
}

// joinSYNACK verifies the responder's HMAC.
func (c *Conn) joinSYNACK(now mono.Time, f *flow, seg *wire.Segment) {
	j := f.join
	o := &seg.Join
	j.remoteNonce = o.Nonce
	mac := key.JoinHMAC(c.remoteKey, c.localKey, j.remoteNonce, j.localNonce)
	// RFC 8684, Section 3.2: a SYN/ACK whose HMAC does not verify, or that
	// lacks the option, MUST be answered by a RST, SHOULD with reason code 1.
	if seg.Has&wire.OptMPJoin == 0 || o.Form != wire.JoinSYNACK || !key.Equal(mac[:8], o.HMAC[:8]) {
		c.drop(reason.DropHMAC)
		c.abortFlow(now, f, reason.CloseHandshake, reason.ResetMPTCP)
		return
	}
	c.stats.JoinsAnswered++
	f.remoteID = o.AddrID
	f.backupRemote = o.Backup
	f.phase = phasePreEstablished
	j.retry = now.Add(f.tcp.RTO())
}

// joinThirdACK verifies the joiner's HMAC.
func (c *Conn) joinThirdACK(now mono.Time, f *flow, seg *wire.Segment) {
	j := f.join
	mac := key.JoinHMAC(c.remoteKey, c.localKey, j.remoteNonce, j.localNonce)
	if seg.Has&wire.OptMPJoin == 0 || seg.Join.Form != wire.JoinACK || !key.Equal(mac[:20], seg.Join.HMAC[:]) {
		c.drop(reason.DropHMAC)
		c.abortFlow(now, f, reason.CloseHandshake, reason.ResetMPTCP)
		return
	}
	c.addrs.cancelWithdrawal(f.localID)
	c.flowUp(now, f)
	// RFC 8684, Section 3.2: the receiver "MUST" answer the third ACK with an
	// ACK, for which the joiner waits.
	f.tcp.RequestAck()
}

// putJoinSYN adds MP_JOIN to a SYN or SYN/ACK.
func (c *Conn) putJoinSYN(f *flow, seg *wire.Segment) {
	j := f.join
	seg.Has |= wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinSYN, Backup: f.backupLocal, AddrID: f.localID, Nonce: j.localNonce}
	if j.active {
		seg.Join.Token = uint32(c.remoteToken)
		return
	}
	seg.Join.Form = wire.JoinSYNACK
	mac := key.JoinHMAC(c.localKey, c.remoteKey, j.localNonce, j.remoteNonce)
	copy(seg.Join.HMAC[:8], mac[:8])
}

// putJoinACK adds MP_JOIN to the third ACK.
func (c *Conn) putJoinACK(f *flow, seg *wire.Segment) {
	j := f.join
	mac := key.JoinHMAC(c.localKey, c.remoteKey, j.localNonce, j.remoteNonce)
	seg.Has |= wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinACK}
	copy(seg.Join.HMAC[:], mac[:20])
}

// retryJoins repeats third ACKs that stayed unanswered.
//
// RFC 8684, Section 3.2: the third ACK "MUST" be retransmitted until the
// fourth arrives.
func (c *Conn) retryJoins(now mono.Time) {
	for _, f := range c.flows {
		j := f.join
		if j == nil || !j.retry.Reached(now) {
			continue
		}
		j.tries++
		if j.tries > maxJoinACKs {
			j.retry = 0
			c.abortFlow(now, f, reason.CloseTimeout, reason.ResetMPTCP)
			continue
		}
		j.retry = now.Add(f.tcp.RTO() << j.tries)
		f.tcp.RequestAck()
	}
}
