package mptcp

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

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

	// Scheduled is told every decision of the connection's scheduler, those to
	// wait included.
	Scheduled func(DecisionEvent)

	// SegmentSent and SegmentReceived are told of every segment, before it is
	// sent and before it is acted on.
	SegmentSent     func(SegmentInfo)
	SegmentReceived func(SegmentInfo)
}

// ConnEvent is something that happened to a connection, which is named by the
// addresses of its first subflow.
type ConnEvent struct {
	Local, Remote netip.AddrPort
	MPTCP         bool   // the connection speaks MPTCP
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
	Until    time.Duration // of a wait: when the scheduler wants to be asked at the latest, since the Stack's origin; 0 = at the next event
	Reason   string        // as the policy has it
}

// SegmentInfo is a segment of a subflow, or a super-segment before it is cut.
type SegmentInfo struct {
	Src, Dst netip.AddrPort
	Seq, Ack uint32
	Flags    uint8 // control bits as in byte 13 of the TCP header
	Len      int   // payload bytes

	seg *wire.Segment
}

// String returns the segment in one line, with all its options. It may be
// called only before the function that got the SegmentInfo returns.
func (s SegmentInfo) String() string { return s.seg.String() }

func segmentInfo(seg *wire.Segment) SegmentInfo {
	return SegmentInfo{
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
}

// newTracer returns nil if nobody wants to be told.
func newTracer(cfg *Config, local, remote netip.AddrPort) *tracer {
	if cfg.Trace == nil && cfg.Logger == nil {
		return nil
	}
	t := &tracer{conn: ConnEvent{Local: local, Remote: remote}}
	if cfg.Trace != nil {
		t.trace = *cfg.Trace
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
		t.tellSubflow(t.trace.SubflowUp, "subflow up", e, "")
	case mpconn.EventSubflowLost:
		t.tellSubflow(t.trace.SubflowLost, "subflow lost", e, e.Close.String())
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

func (t *tracer) tellSubflow(f func(SubflowEvent), text string, e mpconn.Event, reason string) {
	if f != nil {
		f(SubflowEvent{Conn: t.conn, ID: e.ID, Local: e.Local, Remote: e.Remote, Reason: reason})
	}
	if t.log != nil && t.log.Enabled(context.Background(), slog.LevelDebug) {
		t.log.LogAttrs(context.Background(), slog.LevelDebug, text,
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
		t.trace.SegmentReceived(segmentInfo(seg))
	}
}

// sent tells of the segments of a batch.
func (t *tracer) sent(b *batch) {
	if t == nil || t.trace.SegmentSent == nil {
		return
	}
	for i := range b.segs[:b.n] {
		t.trace.SegmentSent(segmentInfo(&b.segs[i]))
	}
}
