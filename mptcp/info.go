package mptcp

import (
	"iter"
	"maps"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// Info is a snapshot of a connection. Bytes are those of payload.
type Info struct {
	State      string    // of the data level: OPENING, ESTAB, FIN-WAIT-1, ... CLOSED (RFC 8684, Appendix D)
	MPTCP      bool      // speaks MPTCP
	Fallback   string    // why it does not; "" if it does
	FallbackAt time.Time // when it fell back; zero if it did not, or plain TCP was asked for
	Checksum   bool      // DSS checksums are in use
	Token      uint32    // ours, by which the peer's subflows join
	Close      string    // how the connection ended; "" while it goes on
	SYNData    int       // bytes that went along with the SYN and were taken: ours or the peer's (RFC 7413)

	Subflows       int // that may carry data now
	SubflowsOpened int // ever

	BytesSent       uint64 // every copy counted
	BytesAcked      uint64
	BytesReceived   uint64 // each byte once
	BytesDuplicate  uint64 // received again
	BytesReinjected uint64 // sent again on another subflow

	// Sums over all subflows, those that have ended included.
	BytesRetransmitted    uint64 // sent again on the same subflow
	SegmentsSent          uint64 // a super-segment counts once
	SegmentsReceived      uint64
	SegmentsRetransmitted uint64
	Timeouts              uint64 // of retransmission

	// Drops are segments, or parts of them, that were ignored, by reason.
	Drops map[string]uint64

	Unsent     int // bytes written and never sent
	Unacked    int // bytes sent and not acknowledged by the peer's connection
	Readable   int // bytes that can be read
	OutOfOrder int // bytes received beyond a hole
	SendWindow int // bytes that the peer's window allows
}

// Info returns a snapshot. It never waits for the network.
func (c *Conn) Info() Info {
	c.mu.Lock()
	defer c.leave()
	i := c.core.Info()
	info := Info{
		State: i.State.String(), MPTCP: i.MPTCP, Checksum: i.Checksum, Token: uint32(i.Token), SYNData: i.SYNData,
		Subflows: i.Subflows, SubflowsOpened: i.Opened,
		BytesSent: i.Stats.BytesSent, BytesAcked: i.Stats.BytesAcked,
		BytesReceived: i.Stats.BytesReceived, BytesDuplicate: i.Stats.BytesDuplicate,
		BytesReinjected: i.Stats.BytesReinjected,
		Unsent:          i.Unsent, Unacked: i.Unacked, Readable: i.Readable, OutOfOrder: i.OutOfOrder,
		SendWindow: i.SendWindow,
	}
	t := c.core.SubflowTotals()
	info.BytesRetransmitted, info.SegmentsRetransmitted = t.BytesRetransmitted, t.SegmentsRetransmitted
	info.SegmentsSent, info.SegmentsReceived, info.Timeouts = t.SegmentsSent, t.SegmentsReceived, t.Timeouts
	info.Drops = dropsByName(maps.All(i.Stats.Drops), maps.All(t.Drops))
	if i.Fallback != reason.FallbackNone {
		info.Fallback, info.FallbackAt = i.Fallback.String(), c.stack.origin.Add(c.fellBack.Duration())
	}
	if c.core.Closed() {
		info.Close = i.Close.String()
	}
	return info
}

// SubflowInfo is a snapshot of a subflow. Sizes and windows are in bytes,
// rates in bytes a second.
type SubflowInfo struct {
	ID            int    // 0 is the first; IDs are not used again
	Link          string // name of the link that had the local address when it began
	Local, Remote netip.AddrPort
	State         string // of TCP: SYN-SENT, ESTABLISHED, ... (RFC 9293)
	Up            bool   // may carry data
	Backup        bool   // we asked the peer to send here only as a last resort
	PeerBackup    bool   // the peer asked that of us

	SRTT, RTTVar, MinRTT time.Duration // 0 before the first measurement
	RTO                  time.Duration

	Cwnd     int
	Ssthresh int // 0 before the first loss
	InFlight int
	MSS      int

	BytesSent          uint64 // payload, every copy counted
	BytesAcked         uint64
	BytesReceived      uint64
	BytesRetransmitted uint64 // sent again here
	BytesReinjected    uint64 // first sent elsewhere and sent again here

	PacingRate   float64 // 0 = not paced
	DeliveryRate float64 // 0 = unknown
	LossRate     float64 // 0 to 1, smoothed

	Close string // how it ended; "" while it lives
}

// Subflows returns snapshots of all subflows: those that ended lately, of
// which a bounded number is remembered, then the live ones.
func (c *Conn) Subflows() []SubflowInfo {
	c.mu.Lock()
	defer c.leave()
	all := c.core.AppendSubflows(nil)
	out := make([]SubflowInfo, len(all))
	for i := range all {
		out[i] = subflowInfo(&all[i])
		out[i].Link = c.core.Link(all[i].ID)
	}
	return out
}

func subflowInfo(s *mpconn.SubflowInfo) SubflowInfo {
	t := &s.TCP
	info := SubflowInfo{
		ID: s.ID, Local: s.Local, Remote: s.Remote,
		State: t.State.String(), Up: s.Up, Backup: s.Backup, PeerBackup: s.PeerBackup,
		SRTT: t.SRTT, RTTVar: t.RTTVar, MinRTT: t.MinRTT, RTO: t.RTO,
		Cwnd: t.Cwnd, InFlight: t.InFlight, MSS: t.MSS,
		BytesSent: t.BytesSent, BytesAcked: t.BytesAcked, BytesReceived: t.BytesReceived,
		BytesRetransmitted: t.BytesRetransmitted, BytesReinjected: s.BytesReinjected,
		PacingRate: t.PacingRate, DeliveryRate: t.DeliveryRate, LossRate: t.LossRate,
	}
	if t.Ssthresh < 1<<40 {
		info.Ssthresh = t.Ssthresh
	}
	if s.Close != reason.CloseNone {
		info.Close = s.Close.String()
	}
	return info
}

// Counters are what a Stack did since it was made.
type Counters struct {
	Dialed   uint64 // connections begun here
	Accepted uint64 // connections begun by peers
	Joined   uint64 // subflows begun by peers

	ResetsSent uint64 // to segments of no connection
	// Drops are segments, or parts of them, that were ignored, by reason. What
	// connections ignore is added when something happens to them, what
	// subflows do when they end.
	Drops map[string]uint64

	// MIB are counters by the names that Linux has for them: those of MPTCP in
	// /proc/net/netstat, and those of SYN cookies and of TCP Fast Open. Names of
	// Linux that are missing have no counterpart: there are no MD5 signatures
	// (MD5SigFallback) and no sockets (MPJoinSynTxCreatSkErr), joins are found by
	// token at any port and announced ports have no listener of their own
	// (MismatchPort..., MPCapableEndpAttempt), windows are the connection's and
	// change under its lock (SndWndShared, RcvWndShared, RcvWndConflict...), and
	// withdrawn addresses are acted on as they come, and each is told (RmAddrDrop,
	// RmAddrTxDrop).
	MIB map[string]uint64

	// JoinsStopped counts by which limit kept subflows from being opened, those
	// of peers too; see Trace.JoinStopped.
	JoinsStopped map[string]uint64

	Conns         int // connections now, those being closed included
	TimeWait      int // subflows in TIME-WAIT now
	HalfOpen      int // connections begun by peers, in their handshake now
	HalfOpenJoins int // subflows begun by peers, in their handshake now
}

// countersOf adds the drops that the host did not see to what it counted.
func countersOf(h host.Counters, drops *[reason.NumDrops]uint64) Counters {
	c := Counters{
		Dialed: h.Dialed, Accepted: h.Accepted, Joined: h.Joined, ResetsSent: h.ResetsSent,
		Drops: dropsByName(each(&h.Drops), each(&h.ConnDrops), each(drops)), MIB: make(map[string]uint64, host.NumMIBs),
		JoinsStopped: make(map[string]uint64),
		Conns:        h.Conns, TimeWait: h.TimeWait, HalfOpen: h.HalfOpen, HalfOpenJoins: h.HalfOpenJoins,
	}
	for m := range host.NumMIBs {
		c.MIB[m.String()] = h.MIB[m]
	}
	for l, n := range h.JoinsStopped {
		if n > 0 {
			c.JoinsStopped[reason.Limit(l).String()] = n
		}
	}
	return c
}

// dropsByName sums up counts and gives those that are not 0 their names.
func dropsByName(counts ...iter.Seq2[reason.Drop, uint64]) map[string]uint64 {
	all := make(map[string]uint64)
	for _, of := range counts {
		for r, n := range of {
			if n > 0 {
				all[r.String()] += n
			}
		}
	}
	return all
}

// each returns the counts of a full table.
func each(table *[reason.NumDrops]uint64) iter.Seq2[reason.Drop, uint64] {
	return func(yield func(reason.Drop, uint64) bool) {
		for r, n := range table {
			if !yield(reason.Drop(r), n) {
				return
			}
		}
	}
}
