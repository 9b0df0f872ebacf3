package subflow

import (
	"maps"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// counters are totals since the beginning.
type counters struct {
	bytesSent, bytesAcked, bytesReceived uint64
	segsSent, segsReceived               uint64

	troubles *troubles // nil = there were none
	drops    reason.Drops
}

// troubles are totals of what a subflow that all goes well with never has.
type troubles struct {
	bytesRetransmitted, segsRetransmitted          uint64
	timeouts, probes, recoveries, spurious, dsacks uint64
	mtuProbes, blackHoles, windowProbes            uint64
	cePackets, ceBytes, marked                     uint64
}

// trouble returns the totals to add to.
func (c *counters) trouble() *troubles {
	if c.troubles == nil {
		c.troubles = &troubles{}
	}
	return c.troubles
}

// Snapshot is what a scheduler looks at. It costs little.
type Snapshot struct {
	SRTT, RTTVar, MinRTT time.Duration // 0 before the first measurement
	Cwnd                 int           // bytes, now in force
	Ssthresh             int           // bytes; 1<<40 before the first loss
	InFlight             int           // bytes
	Queued               int           // bytes pushed and not yet sent
	MSS                  int           // payload bytes of a full segment
	PacingRate           float64       // bytes/s; 0 = not paced
	DeliveryRate         float64       // bytes/s; 0 = unknown
	LossRate             float64       // share of bytes lost, 0 to 1, smoothed over about 8 round trips
	LastSend             mono.Time     // of payload; 0 = never
	OldestSend           mono.Time     // of the oldest unacknowledged byte; 0 = there is none
	Recovering           bool          // a loss is being repaired
}

// Snapshot returns the figures for schedulers.
func (s *Subflow) Snapshot() Snapshot {
	snap := Snapshot{
		SRTT: s.rtt.srtt, RTTVar: s.rtt.rttvar, MinRTT: s.rtt.min,
		Cwnd: s.cwnd(), Ssthresh: int(min(s.ctl.State().Ssthresh, 1<<40)),
		InFlight: s.pipe(), Queued: s.snd.queued(), MSS: s.snd.mss,
		PacingRate: s.pacingRate(), DeliveryRate: s.rate.last, LossRate: s.rate.lossRate,
		LastSend: s.snd.lastAt, Recovering: s.rec.phase != phaseOpen,
	}
	if s.queue.len() > 0 {
		snap.OldestSend = s.queue.get(0).sentAt
	}
	return snap
}

// Stats are figures for people and tests.
type Stats struct {
	Snapshot
	State         State
	LastRTT       time.Duration // the latest measurement; 0 before the first
	LastRTTAt     mono.Time     // when it was taken
	RTO           time.Duration // backoff included
	Backoff       int           // consecutive timeouts
	DupThresh     int
	MTU           int // bytes of TCP header, options and payload that packets may have
	PeerWindow    int // bytes from the last acknowledged one on
	ReceiveWindow int // bytes that would be accepted
	OutOfOrder    int // bytes received beyond a hole

	BytesSent          uint64 // payload, retransmissions included
	BytesAcked         uint64
	BytesReceived      uint64 // payload, each byte once
	BytesRetransmitted uint64
	SegsSent           uint64 // a super-segment counts once
	SegsReceived       uint64
	SegsRetransmitted  uint64
	Timeouts           uint64 // retransmission timeouts
	Probes             uint64 // tail loss probes (RFC 8985)
	Recoveries         uint64 // fast recoveries begun
	Spurious           uint64 // timeouts and recoveries that proved needless

	DSACKs    uint64 // ACKs that reported duplicates
	MTUProbes uint64 // of the path MTU (RFC 8899)
	// WindowProbes are those of a closed window, this subflow's or the
	// connection's (RFC 9293, Section 3.8.6.1).
	WindowProbes uint64
	BlackHoles   uint64 // falls back to small packets
	CEPackets    uint64 // packets received with a CE mark (RFC 3168)
	CEBytes      uint64 // payload of those
	BytesMarked  uint64 // payload acknowledged by ACKs with ECE

	Drops reason.Drops // segments, or parts of them, ignored
}

// WindowProbes is Stats().WindowProbes.
func (s *Subflow) WindowProbes() uint64 {
	if t := s.count.troubles; t != nil {
		return t.windowProbes
	}
	return 0
}

// Stats returns a snapshot of everything.
func (s *Subflow) Stats() Stats {
	c, t := &s.count, troubles{}
	if c.troubles != nil {
		t = *c.troubles
	}
	outOfOrder := 0
	if b := s.rcv.beyond; b != nil {
		outOfOrder = int(b.held.Size())
	}
	return Stats{
		Snapshot: s.Snapshot(), State: s.state,
		LastRTT: s.rtt.last, LastRTTAt: s.rtt.lastAt,
		RTO: s.rtt.timeout(), Backoff: int(s.rec.timeouts),
		DupThresh: int(s.rec.dupThresh), PeerWindow: s.snd.wnd, ReceiveWindow: int(s.rcv.edge - s.rcv.nxt),
		OutOfOrder: outOfOrder,
		BytesSent:  c.bytesSent, BytesAcked: c.bytesAcked, BytesReceived: c.bytesReceived,
		BytesRetransmitted: t.bytesRetransmitted,
		SegsSent:           c.segsSent, SegsReceived: c.segsReceived, SegsRetransmitted: t.segsRetransmitted,
		Timeouts: t.timeouts, Probes: t.probes, Recoveries: t.recoveries, Spurious: t.spurious, DSACKs: t.dsacks,
		MTU: s.snd.mtu, MTUProbes: t.mtuProbes, WindowProbes: t.windowProbes, BlackHoles: t.blackHoles,
		CEPackets: t.cePackets, CEBytes: t.ceBytes, BytesMarked: t.marked,
		Drops: maps.Clone(c.drops),
	}
}
