package mptcp

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Trace is a set of functions that are told about connections. Any may be
// nil. They run under the connection's lock: they must be quick, must not
// wait, and must not call methods of a Conn, Listener or Stack.
type Trace struct {
	// Connected: the handshake is done.
	Connected func(ConnEvent)
	// Fallback: the connection goes on as plain TCP; Reason says why.
	Fallback func(ConnEvent)
	// Closed: the connection is over; Reason says how it ended.
	Closed func(ConnEvent)

	// SubflowUp: a subflow may carry data.
	SubflowUp func(SubflowEvent)
	// SubflowLost: a subflow ended; Reason says how.
	SubflowLost func(SubflowEvent)

	// SubflowPriority: the peer asked, by MP_PRIO, to send on a subflow only when
	// no other works (Reason "backup"), or took that back ("regular").
	SubflowPriority func(SubflowEvent)
	// AddrAnnounced: the peer announced an address of its, Remote, that may lead
	// to more subflows. AddrWithdrawn: it took one back. The ID is -1, and Local
	// is zero.
	AddrAnnounced, AddrWithdrawn func(SubflowEvent)

	// JoinStopped: a subflow that could be was not opened here, or not let in, or
	// an address that could be used was not announced or taken; Reason says
	// which limit stopped it. The ID is -1, and addresses that do not matter are
	// zero. Each limit is told once, and again after a subflow was lost.
	JoinStopped func(SubflowEvent)

	// Scheduled is told every decision of the connection's scheduler, those to
	// wait included.
	Scheduled func(DecisionEvent)

	// SegmentSent and SegmentReceived are told of every segment, before it is
	// sent and before it is acted on.
	SegmentSent     func(SegmentInfo)
	SegmentReceived func(SegmentInfo)

	// Placed: the scheduler gave a range of the stream to a subflow.
	Placed func(Placement)
	// Metrics: the congestion window or the round-trip time of a subflow
	// changed. At most one in 10 ms for each subflow, but for windows that
	// shrink.
	Metrics func(Metrics)
}

// ConnEvent is something that happened to a connection, which is named by the
// addresses of its first subflow.
type ConnEvent struct {
	Local, Remote netip.AddrPort
	MPTCP         bool   // the connection speaks MPTCP; false while that is not known
	Reason        string // in words; "" if there is none
}

// SubflowEvent is something that happened to a subflow.
type SubflowEvent struct {
	Conn          ConnEvent // whose subflow it is; without a Reason
	ID            int
	Local, Remote netip.AddrPort
	Reason        string
}

// DecisionEvent is a decision of a scheduler.
type DecisionEvent struct {
	Conn     ConnEvent     // whose scheduler it is; without a Reason
	Subflows []int         // IDs of those that were to send, none to wait; valid during the call
	Offset   int64         // in the outgoing stream, of the range
	Bytes    int           // at most; 0 = as much as fits
	Again    bool          // the range was sent before
	Until    time.Duration // when the scheduler wants to be asked again at the latest, since the Stack's origin; 0 = at the next event, or, if it sends, at once
	Reason   string        // as the policy has it
}

// Placement is a range of the outgoing stream that a subflow is to carry.
type Placement struct {
	Conn    ConnEvent // without a Reason
	Subflow int
	Offset  uint64 // of its first byte in the stream
	Len     int
	Again   bool   // another subflow carried it before: a reinjection
	Reason  string // the scheduler's; "" if it gives none
}

// Metrics is the state of a subflow. Windows are in bytes, rates in bytes a
// second, 0 if not known.
type Metrics struct {
	Conn                     ConnEvent // without a Reason
	Subflow                  int
	Local, Remote            netip.AddrPort
	SRTT, RTTVar, MinRTT     time.Duration
	Cwnd, InFlight           int
	PacingRate, DeliveryRate float64
}

// SegmentInfo is a segment of a subflow, or a super-segment before it is cut.
type SegmentInfo struct {
	Conn     ConnEvent // without a Reason
	Subflow  int       // -1 if not known
	Offset   int64     // of the first payload byte in the sender's stream; -1 if not known, or there is none
	DataAck  int64     // bytes of the receiver's stream that DATA_ACK acknowledges; -1 if there is none
	Src, Dst netip.AddrPort
	Seq, Ack uint32
	Flags    uint8 // control bits as in byte 13 of the TCP header
	Len      int   // payload bytes

	seg *wire.Segment
}

// String returns the segment in one line, with all its options. It may be
// called only before the function that got the SegmentInfo returns.
func (s SegmentInfo) String() string {
	if s.seg == nil {
		return ""
	}
	return s.seg.String()
}

func (t *tracer) segment(seg *wire.Segment, at mpconn.Location) SegmentInfo {
	return SegmentInfo{
		Conn: t.conn, Subflow: at.ID, Offset: at.Offset, DataAck: at.DataAck,
		Src: seg.Src, Dst: seg.Dst, Seq: uint32(seg.Seq), Ack: uint32(seg.Ack),
		Flags: uint8(seg.Flags), Len: seg.PayloadLen(), seg: seg,
	}
}

// tracer tells the Trace and the Logger of one connection's configuration.
type tracer struct {
	trace Trace // functions may be nil
	log   *slog.Logger
	conn  ConnEvent
	ids   []int // reused by every DecisionEvent
	core  *host.Conn
	told  map[int]told // by subflow; what Metrics was told last
}

// told is when and what Metrics was told of a subflow.
type told struct {
	at   mono.Time
	cwnd int
	srtt time.Duration
}

// metricsEvery is the least time between two Metrics of a subflow.
const metricsEvery = 10 * time.Millisecond

// newTracer returns nil if nobody wants to be told.
func newTracer(cfg *Config, core *host.Conn) *tracer {
	if cfg.Trace == nil && cfg.Logger == nil {
		return nil
	}
	local, remote := core.LocalAddr(), core.RemoteAddr()
	t := &tracer{conn: ConnEvent{Local: local, Remote: remote}, core: core, told: make(map[int]told)}
	if cfg.Trace != nil {
		t.trace = *cfg.Trace
	}
	if t.trace.Placed != nil {
		core.ObservePlacements(t.placed)
	}
	if cfg.Logger != nil {
		t.log = cfg.Logger.With("local", local, "remote", remote)
	}
	return t
}

// event tells of an event of the connection proper.
func (t *tracer) event(e mpconn.Event, mptcp bool) {
	if t == nil {
		return
	}
	t.conn.MPTCP = mptcp
	switch e.Kind {
	case mpconn.EventConnected:
		t.tell(t.trace.Connected, slog.LevelInfo, "connected", "")
	case mpconn.EventFallback:
		t.tell(t.trace.Fallback, slog.LevelWarn, "fell back to plain tcp", e.Fallback.String())
	case mpconn.EventClosed:
		t.tell(t.trace.Closed, slog.LevelInfo, "closed", e.Close.String())
	case mpconn.EventSubflowUp:
		t.tellSubflow(t.trace.SubflowUp, slog.LevelDebug, "subflow up", e, "")
	case mpconn.EventSubflowLost:
		t.tellSubflow(t.trace.SubflowLost, slog.LevelDebug, "subflow lost", e, e.Close.String())
	case mpconn.EventPriority:
		reason := "regular"
		if e.Backup {
			reason = "backup"
		}
		t.tellSubflow(t.trace.SubflowPriority, slog.LevelDebug, "subflow priority", e, reason)
	case mpconn.EventAddrAnnounced:
		e.ID = -1
		t.tellSubflow(t.trace.AddrAnnounced, slog.LevelDebug, "address announced", e, "")
	case mpconn.EventAddrWithdrawn:
		e.ID = -1
		t.tellSubflow(t.trace.AddrWithdrawn, slog.LevelDebug, "address withdrawn", e, "")
	case mpconn.EventJoinStopped:
		e.ID = -1
		t.tellSubflow(t.trace.JoinStopped, slog.LevelInfo, "join stopped by a limit", e, e.Limit.String())
	}
}

func (t *tracer) tell(f func(ConnEvent), level slog.Level, text, reason string) {
	if f != nil {
		e := t.conn
		e.Reason = reason
		f(e)
	}
	if t.log != nil {
		attrs := []slog.Attr{slog.Bool("mptcp", t.conn.MPTCP)}
		if reason != "" {
			attrs = append(attrs, slog.String("reason", reason))
		}
		t.log.LogAttrs(context.Background(), level, text, attrs...)
	}
}

func (t *tracer) tellSubflow(f func(SubflowEvent), level slog.Level, text string, e mpconn.Event, reason string) {
	if f != nil {
		f(SubflowEvent{Conn: t.conn, ID: e.ID, Local: e.Local, Remote: e.Remote, Reason: reason})
	}
	if t.log != nil && t.log.Enabled(context.Background(), level) {
		t.log.LogAttrs(context.Background(), level, text,
			slog.Int("subflow", e.ID), slog.Any("from", e.Local), slog.Any("to", e.Remote), slog.String("reason", reason))
	}
}

// decisions returns what is to be told of decisions; nil if nobody is.
func (t *tracer) decisions() func(*scheduler.View, scheduler.Decision) {
	if t == nil || t.trace.Scheduled == nil {
		return nil
	}
	return t.decided
}

func (t *tracer) decided(v *scheduler.View, d scheduler.Decision) {
	e := DecisionEvent{Conn: t.conn, Offset: v.First, Bytes: d.Bytes, Until: d.Until, Reason: string(d.Reason)}
	switch e.Again = d.Again || v.Ask == scheduler.Lost; {
	case v.Ask == scheduler.Lost:
	case e.Again || v.Ask == scheduler.Spare:
		e.Offset = v.Acked + d.Offset
	default:
		e.Offset += d.Offset
	}
	t.ids = t.ids[:0]
	for i := range v.Subflows {
		if d.Send>>i&1 != 0 {
			t.ids = append(t.ids, v.Subflows[i].ID)
		}
	}
	e.Subflows = t.ids
	t.trace.Scheduled(e)
}

// received tells of a segment that is about to be acted on.
func (t *tracer) received(seg *wire.Segment) {
	if t != nil && t.trace.SegmentReceived != nil {
		t.trace.SegmentReceived(t.segment(seg, t.core.LocateReceived(seg)))
	}
}

// sent tells of the segments of a batch.
func (t *tracer) sent(b *batch) {
	if t == nil || t.trace.SegmentSent == nil {
		return
	}
	for i := range b.segs[:b.n] {
		t.trace.SegmentSent(t.segment(&b.segs[i], t.core.LocateSent(&b.segs[i])))
	}
}

func (t *tracer) placed(_ mono.Time, p mpconn.Placement) {
	t.trace.Placed(Placement{
		Conn: t.conn, Subflow: p.ID, Offset: p.Offset, Len: p.Len, Again: p.Again, Reason: string(p.Reason),
	})
}

// metrics tells of the subflows whose state changed.
func (t *tracer) metrics(now mono.Time) {
	if t == nil || t.trace.Metrics == nil {
		return
	}
	t.core.EachFlow(func(f mpconn.FlowMetrics) {
		last, known := t.told[f.ID]
		switch {
		case f.Cwnd == last.cwnd && f.SRTT == last.srtt:
			return
		case known && f.Cwnd >= last.cwnd && now.Sub(last.at) < metricsEvery:
			return
		}
		t.told[f.ID] = told{now, f.Cwnd, f.SRTT}
		t.trace.Metrics(Metrics{
			Conn: t.conn, Subflow: f.ID, Local: f.Local, Remote: f.Remote,
			SRTT: f.SRTT, RTTVar: f.RTTVar, MinRTT: f.MinRTT, Cwnd: f.Cwnd, InFlight: f.InFlight,
			PacingRate: f.PacingRate, DeliveryRate: f.DeliveryRate,
		})
	})
}
