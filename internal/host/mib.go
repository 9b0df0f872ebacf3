package host

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// MIB is a counter that means what Linux's of the same name does: those of
// MPTCP in /proc/net/netstat under MPTcpExt, those of SYN cookies and of TCP Fast
// Open under TcpExt. Options are counted when they are sent, and received ones when they
// have had their effect, but for those marked: they count as they arrive.
type MIB uint8

// Counters by the kernel's names, in its order.
const (
	MIBMPCapableSYNRX          MIB = iota // SYNs with MP_CAPABLE at a listener
	MIBMPCapableSYNTX                     // dials that offered MPTCP
	MIBMPCapableSYNACKRX                  // dials that became MPTCP
	MIBMPCapableACKRX                     // accepted connections that became MPTCP
	MIBMPCapableFallbackACK               // third ACKs without MP_CAPABLE, or with wrong keys
	MIBMPCapableFallbackSYNACK            // SYN/ACKs without MP_CAPABLE
	MIBMPCapableSYNTXDrop                 // dials whose SYNs with MP_CAPABLE stayed unanswered
	MIBMPCapableSYNTXDisabled             // dials that went plain because of a black hole
	MIBMPFallbackTokenInit                // connections without MPTCP for want of a unique key
	MIBMPTCPRetrans                       // ranges sent again on another subflow
	MIBMPJoinNoTokenFound                 // MP_JOIN SYNs with an unknown token
	MIBMPJoinSynRx                        // SYNs with MP_JOIN; as they arrive
	MIBMPJoinSynBackupRx                  // those taken that are as backup
	MIBMPJoinSynAckRx                     // joins begun here whose SYN/ACK verified
	MIBMPJoinSynAckBackupRx               // of these, those as backup
	MIBMPJoinSynAckHMacFailure            // and whose did not
	MIBMPJoinAckRx                        // joins begun by peers whose third ACK verified
	MIBMPJoinAckHMacFailure               // and whose did not
	MIBMPJoinRejected                     // joins with a known token that were refused
	MIBMPJoinSynTx                        // joins begun here
	MIBMPJoinSynTxBindErr                 // that found no free local port
	MIBMPJoinSynTxConnectErr              // that found no route
	MIBMPJoinPortSynRx                    // joins begun by peers at another port than the first subflow's
	MIBMPJoinPortSynAckRx                 // joins begun here to another port, that came up
	MIBMPJoinPortAckRx                    // of those at another port, those whose third ACK verified
	MIBDSSNotMatching                     // mappings that contradict others
	MIBDSSCorruptionFallback              // connections that went plain after a wrong checksum
	MIBDSSCorruptionReset                 // subflows that were reset for one
	MIBDSSNoMatchTCP                      // mappings far from what the subflow can carry
	MIBInfiniteMapTx
	MIBInfiniteMapRx
	MIBDataCsumErr   // DSS checksums that did not hold
	MIBNoDSSInWindow // mappings outside the window
	MIBOFOQueueTail  // runs of payload received behind all others, beyond a hole
	MIBOFOQueue      // runs of payload received beyond a hole
	MIBOFOMerge      // of these, those that go on where another ends
	MIBDuplicateData // runs of payload received that brought nothing new
	MIBAddAddr       // as they arrive, if their HMAC verifies
	MIBAddAddrTx
	MIBAddAddrTxDrop // addresses not announced because no id was left
	MIBEchoAdd       // as they arrive
	MIBEchoAddTx
	MIBEchoAddTxDrop // echoes not sent because too many were due
	MIBPortAdd       // announced with a port; as they arrive
	MIBAddAddrDrop   // valid announcements that were not taken
	MIBRmAddr        // addresses that peers withdrew
	MIBRmAddrTx
	MIBRmSubflow // subflows ended because an address went away
	MIBMPPrioTx
	MIBMPPrioRx // as they arrive
	MIBMPFailTx
	MIBMPFailRx // as they arrive
	MIBMPFastcloseTx
	MIBMPFastcloseRx
	MIBMPRstTx
	MIBMPRstRx               // those with a reason
	MIBSubflowStale          // subflows that did not answer in time
	MIBSubflowRecover        // and then did
	MIBMPCurrEstab           // connections that speak MPTCP now
	MIBBlackhole             // ways found that drop SYNs with MP_CAPABLE
	MIBMPCapableDataFallback // connections whose first data came without MPTCP, or its ACK did
	MIBDssFallback           // and whose later data or ACKs did
	MIBSimultConnectFallback
	MIBFallbackFailed // signs of a path without MPTCP that came too late to fall back
	MIBWinProbe       // probes of a window that is closed, which is the connection's
	MIBSyncookiesSent
	MIBSyncookiesRecv
	MIBSyncookiesFailed
	MIBTCPFastOpenActive         // dials all of whose data on the SYN was taken
	MIBTCPFastOpenActiveFail     // dials whose data on the SYN was not, or not all
	MIBTCPFastOpenPassive        // accepted connections whose SYN had a good cookie
	MIBTCPFastOpenPassiveFail    // SYNs with a bad one
	MIBTCPFastOpenListenOverflow // SYNs with the option while too many were pending
	MIBTCPFastOpenCookieReqd     // SYNs that asked for a cookie
	MIBTCPFastOpenBlackhole      // ways found that drop what belongs to a fast open
	NumMIBs
)

var mibNames = [NumMIBs]string{
	"MPCapableSYNRX", "MPCapableSYNTX", "MPCapableSYNACKRX", "MPCapableACKRX",
	"MPCapableFallbackACK", "MPCapableFallbackSYNACK", "MPCapableSYNTXDrop", "MPCapableSYNTXDisabled",
	"MPFallbackTokenInit", "MPTCPRetrans",
	"MPJoinNoTokenFound", "MPJoinSynRx", "MPJoinSynBackupRx", "MPJoinSynAckRx", "MPJoinSynAckBackupRx", "MPJoinSynAckHMacFailure",
	"MPJoinAckRx", "MPJoinAckHMacFailure", "MPJoinRejected", "MPJoinSynTx",
	"MPJoinSynTxBindErr", "MPJoinSynTxConnectErr", "MPJoinPortSynRx", "MPJoinPortSynAckRx", "MPJoinPortAckRx",
	"DSSNotMatching", "DSSCorruptionFallback", "DSSCorruptionReset", "DSSNoMatchTCP", "InfiniteMapTx", "InfiniteMapRx", "DataCsumErr", "NoDSSInWindow",
	"OFOQueueTail", "OFOQueue", "OFOMerge", "DuplicateData",
	"AddAddr", "AddAddrTx", "AddAddrTxDrop", "EchoAdd", "EchoAddTx", "EchoAddTxDrop", "PortAdd", "AddAddrDrop", "RmAddr", "RmAddrTx", "RmSubflow",
	"MPPrioTx", "MPPrioRx", "MPFailTx", "MPFailRx", "MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx",
	"SubflowStale", "SubflowRecover", "MPCurrEstab", "Blackhole", "MPCapableDataFallback", "DssFallback", "SimultConnectFallback", "FallbackFailed", "WinProbe",
	"SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed",
	"TCPFastOpenActive", "TCPFastOpenActiveFail", "TCPFastOpenPassive", "TCPFastOpenPassiveFail",
	"TCPFastOpenListenOverflow", "TCPFastOpenCookieReqd", "TCPFastOpenBlackhole",
}

// String returns the kernel's name.
func (m MIB) String() string { return mibNames[m] }

func (h *Host) count(m MIB) { h.counters.MIB[m]++ }

// tally is what a connection has counted and its host has not yet taken over.
type tally struct {
	mib   []mibCount
	drops reason.Drops // of the connection, that the host has taken over
	seen  *seen        // nil = nothing
}

// mibCount is what is to be added to a counter.
type mibCount struct {
	m MIB
	n uint32
}

// seen are totals that were counted already.
type seen struct {
	reinjected, checksums uint64 // bytes, errors
	mapping, dataWindow   uint64 // drops
	joins, announcements  uint64 // answered, received
	oddities              mpconn.Oddities
}

func (t *tally) add(m MIB, n uint64) {
	if n > 0 {
		t.mib = append(t.mib, mibCount{m, uint32(n)})
	}
}

// Trim gives up memory that is not in use; see mpconn.Conn.Trim.
func (c *Conn) Trim() {
	c.Conn.Trim()
	if len(c.tally.mib) == 0 {
		c.tally.mib = nil
	}
}

// takeOver adds what c has counted to the host's counters.
func (h *Host) takeOver(c *Conn) {
	if now := c.Totals().Drops; len(now) > 0 {
		if c.tally.drops == nil {
			c.tally.drops = make(reason.Drops)
		}
		for d, n := range now {
			h.counters.ConnDrops[d] += n - c.tally.drops[d]
			c.tally.drops[d] = n
		}
	}
	for _, n := range c.tally.mib {
		h.counters.MIB[n.m] += uint64(n.n)
	}
	c.tally.mib = c.tally.mib[:0]
}

// HandleSegment takes a segment that arrived on subflow id.
func (c *Conn) HandleSegment(now mono.Time, id int, seg *wire.Segment) {
	if seg.Has&(wire.OptMPTCP&^wire.OptDSS) != 0 {
		c.tally.received(&seg.Options)
	}
	c.Conn.HandleSegment(now, id, seg)
	c.tally.totals(c.Totals(), c.Oddities())
	c.news = c.news || c.measure.Reached(now)
}

// PollSegment fills seg with the next segment to send and reports whether
// there was one.
func (c *Conn) PollSegment(now mono.Time, seg *wire.Segment) bool {
	if !c.Conn.PollSegment(now, seg) {
		return false
	}
	if seg.Has&wire.OptMPTCP != 0 {
		c.tally.sent(&seg.Options)
	}
	c.tally.totals(c.Totals(), c.Oddities())
	return true
}

func (t *tally) received(o *wire.Options) {
	if o.Has&wire.OptAddAddr != 0 && o.AddAddr.Echo {
		t.add(MIBEchoAdd, 1)
	}
	if o.Has&wire.OptAddAddr != 0 && !o.AddAddr.Echo && o.AddAddr.Port != 0 {
		t.add(MIBPortAdd, 1)
	}
	if o.Has&wire.OptMPPrio != 0 {
		t.add(MIBMPPrioRx, 1)
	}
	if o.Has&wire.OptMPFail != 0 {
		t.add(MIBMPFailRx, 1)
	}
}

func (t *tally) sent(o *wire.Options) {
	if o.Has&wire.OptDSS != 0 && o.DSS.Flags&(wire.DSSMap|wire.DSSFin) == wire.DSSMap && o.DSS.Len == 0 {
		t.add(MIBInfiniteMapTx, 1)
	}
	if o.Has&(wire.OptMPTCP&^wire.OptDSS) == 0 {
		return
	}
	if o.Has&wire.OptAddAddr != 0 {
		m := MIBAddAddrTx
		if o.AddAddr.Echo {
			m = MIBEchoAddTx
		}
		t.add(m, 1)
	}
	if o.Has&wire.OptRemoveAddr != 0 {
		t.add(MIBRmAddrTx, uint64(o.RemoveAddr.N))
	}
	for _, p := range [...]struct {
		opt wire.OptionSet
		m   MIB
	}{
		{wire.OptMPPrio, MIBMPPrioTx},
		{wire.OptMPFail, MIBMPFailTx},
		{wire.OptFastClose, MIBMPFastcloseTx},
		{wire.OptMPTCPRst, MIBMPRstTx},
	} {
		if o.Has&p.opt != 0 {
			t.add(p.m, 1)
		}
	}
}

// totals counts what the totals of the connection show that is new.
func (t *tally) totals(s *mpconn.Totals, o *mpconn.Oddities) {
	now := seen{
		reinjected: s.BytesReinjected, checksums: s.ChecksumErrors,
		joins: s.JoinsAnswered, announcements: s.Announcements, oddities: *o,
	}
	if len(s.Drops) > 0 {
		now.mapping, now.dataWindow = s.Drops[reason.DropMapping]-o.FarMappings, s.Drops[reason.DropDataWindow]
	}
	if t.seen == nil {
		if now == (seen{}) {
			return // as it mostly is
		}
		t.seen = &seen{}
	}
	old := t.seen
	if now == *old {
		return
	}
	if now.reinjected != old.reinjected {
		t.add(MIBMPTCPRetrans, 1)
	}
	t.add(MIBDataCsumErr, now.checksums-old.checksums)
	t.add(MIBDSSNotMatching, now.mapping-old.mapping)
	t.add(MIBNoDSSInWindow, now.dataWindow-old.dataWindow)
	t.add(MIBMPJoinSynAckRx, now.joins-old.joins)
	t.add(MIBAddAddr, now.announcements-old.announcements)
	t.oddities(&now.oddities, &old.oddities)
	*old = now
}

// oddities counts what is new among them.
func (t *tally) oddities(o, seen *mpconn.Oddities) {
	t.add(MIBOFOQueue, o.OutOfOrder-seen.OutOfOrder)
	t.add(MIBOFOQueueTail, o.OutOfOrderTail-seen.OutOfOrderTail)
	t.add(MIBOFOMerge, o.OutOfOrderMerged-seen.OutOfOrderMerged)
	t.add(MIBDSSNoMatchTCP, o.FarMappings-seen.FarMappings)
	t.add(MIBEchoAddTxDrop, o.EchoesDropped-seen.EchoesDropped)
	t.add(MIBDuplicateData, o.Duplicates-seen.Duplicates)
	t.add(MIBSubflowStale, o.Stale-seen.Stale)
	t.add(MIBSubflowRecover, o.Recovered-seen.Recovered)
	t.add(MIBAddAddrDrop, o.AddrsRefused-seen.AddrsRefused)
	t.add(MIBFallbackFailed, o.FallbacksFailed-seen.FallbacksFailed)
	t.add(MIBDSSCorruptionReset, o.ChecksumResets-seen.ChecksumResets)
	t.add(MIBWinProbe, o.WindowProbes-seen.WindowProbes)
	t.add(MIBAddAddrTxDrop, o.AnnouncesDropped-seen.AnnouncesDropped)
}

// fallbackMIB are the counters of the reasons to fall back that have one.
var fallbackMIB = map[reason.Fallback]MIB{
	reason.FallbackPeerSYNACK: MIBMPCapableFallbackSYNACK,
	reason.FallbackThirdACK:   MIBMPCapableFallbackACK,
	reason.FallbackBadKeys:    MIBMPCapableFallbackACK,
	reason.FallbackSYNTimeout: MIBMPCapableSYNTXDrop,
	reason.FallbackNoDataACK:  MIBMPCapableDataFallback,
	reason.FallbackNoMapping:  MIBMPCapableDataFallback,
	reason.FallbackInfinite:   MIBInfiniteMapRx,
	reason.FallbackChecksum:   MIBDSSCorruptionFallback,
}

// countEvent counts what an event tells of. joined says that it ends the
// handshake of a join that the peer began.
func (h *Host) countEvent(c *Conn, e *mpconn.Event, joined bool) {
	switch e.Kind {
	case mpconn.EventFallback:
		h.setEstab(c, false)
		h.countFallback(c, e)
	case mpconn.EventSubflowUp:
		switch {
		case joined:
			h.count(MIBMPJoinAckRx)
			h.countJoin(c, e, joined)
		case e.ID == 0 && c.IsMPTCP():
			h.setEstab(c, true)
			if c.active {
				h.count(MIBMPCapableSYNACKRX)
			} else {
				h.count(MIBMPCapableACKRX)
			}
		case e.ID != 0:
			h.countJoin(c, e, joined)
		}
	case mpconn.EventSubflowLost:
		switch {
		case e.Close == reason.CloseHandshake:
			if joined {
				h.count(MIBMPJoinAckHMacFailure)
			} else {
				h.count(MIBMPJoinSynAckHMacFailure)
			}
		case e.Close == reason.CloseAddressGone:
			h.count(MIBRmSubflow)
		case e.Reset != reason.ResetUnspecified:
			h.count(MIBMPRstRx)
		}
	case mpconn.EventAddrWithdrawn:
		h.count(MIBRmAddr)
	case mpconn.EventJoinStopped:
		h.counters.JoinsStopped[e.Limit]++
	case mpconn.EventClosed:
		h.setEstab(c, false)
		if e.Close == reason.CloseFastClose {
			h.count(MIBMPFastcloseRx)
		}
	}
}

// countFallback counts why a connection became plain TCP.
func (h *Host) countFallback(c *Conn, e *mpconn.Event) {
	m, ok := fallbackMIB[e.Fallback]
	switch {
	case m == MIBMPCapableDataFallback && e.Proven:
		h.count(MIBDssFallback)
	case ok:
		h.count(m)
	case e.Fallback == reason.FallbackPeerSYN && c.active:
		h.count(MIBSimultConnectFallback)
	}
}

// countJoin counts what is particular about a join that came up.
func (h *Host) countJoin(c *Conn, e *mpconn.Event, joined bool) {
	if joined {
		if e.Local.Port() != c.first.local.Port() {
			h.count(MIBMPJoinPortAckRx)
		}
		return
	}
	if e.Remote.Port() != c.first.remote.Port() {
		h.count(MIBMPJoinPortSynAckRx)
	}
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		if s := &h.subflows[i]; s.ID == e.ID && s.PeerBackup {
			h.count(MIBMPJoinSynAckBackupRx)
		}
	}
}

// countJoinError counts a join that could not begin.
func (h *Host) countJoinError(err error) {
	switch err {
	case ErrNoPort, ErrAddrInUse:
		h.count(MIBMPJoinSynTxBindErr)
	case ErrNoRoute:
		h.count(MIBMPJoinSynTxConnectErr)
	}
}

// setEstab counts c among the connections that speak MPTCP, or no longer.
func (h *Host) setEstab(c *Conn, estab bool) {
	switch {
	case estab && !c.estab:
		h.count(MIBMPCurrEstab)
	case !estab && c.estab:
		h.counters.MIB[MIBMPCurrEstab]--
	}
	c.estab = estab
}
