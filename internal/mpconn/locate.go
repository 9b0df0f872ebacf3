package mpconn

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Placement is a range of the outgoing stream that was given to a subflow.
type Placement struct {
	ID     int    // of the subflow
	Offset uint64 // in the stream
	Len    int
	Again  bool             // another subflow carried it before: a reinjection
	Reason scheduler.Reason // of the decision
}

// ObservePlacements has f told of every Placement, for traces; nil ends it. f
// must not call back.
func (c *Conn) ObservePlacements(f func(now mono.Time, p Placement)) { c.placed = f }

// Location is where a segment belongs in the streams of its connection; -1 is
// unknown, or that it carries nothing.
type Location struct {
	ID      int   // of the subflow
	Offset  int64 // of the first byte of payload in the sender's stream
	DataAck int64 // bytes of the receiver's stream that it acknowledges
}

// LocateSent returns the location of a segment that was just polled.
func (c *Conn) LocateSent(seg *wire.Segment) Location {
	at := Location{ID: -1, Offset: -1, DataAck: -1}
	f := c.flowOf(seg.Src, seg.Dst)
	if f == nil {
		return at
	}
	at.ID = f.id
	if off := f.tcp.SentOffset(seg.Seq); off >= 0 && seg.PayloadLen() > 0 {
		if m, ok := f.out.find(uint64(off)); ok {
			at.Offset = int64(m.data) + off - int64(m.off)
		}
	}
	if d := &seg.DSS; c.mode == modeMPTCP && seg.Has&wire.OptDSS != 0 && d.Flags&wire.DSSAck != 0 {
		at.DataAck = c.rcv.place(d.Ack, d.Flags&wire.DSSAck8 != 0, c.rcv.q.Next())
	}
	return at
}

// LocateReceived returns the location of a segment that is about to be
// handled.
func (c *Conn) LocateReceived(seg *wire.Segment) Location {
	at := Location{ID: -1, Offset: -1, DataAck: -1}
	f := c.flowOf(seg.Dst, seg.Src)
	if f == nil {
		return at
	}
	at.ID = f.id
	off := f.tcp.ReceivedOffset(seg.Seq)
	data := off >= 0 && seg.PayloadLen() > 0
	if data && c.mode == modePlain {
		at.Offset = off + int64(f.infiniteDelta)
	}
	if c.mode != modeMPTCP {
		return at
	}
	has := seg.Has&wire.OptDSS != 0
	d := &seg.DSS
	if has && d.Flags&wire.DSSAck != 0 {
		at.DataAck = c.snd.place(d.Ack, d.Flags&wire.DSSAck8 != 0, c.snd.una)
	}
	if !data {
		return at
	}
	if has && d.Flags&wire.DSSMap != 0 && d.SSN != 0 {
		place := c.rcv.place(d.DSN, d.Flags&wire.DSSDSN8 != 0, c.rcv.q.Next())
		at.Offset = place + off - int64(f.offsetOf(d.SSN))
	} else if m, ok := f.in.find(uint64(off)); ok {
		at.Offset = int64(m.data) + off - int64(m.off)
	}
	return at
}

// flowOf returns the live flow between two addresses, or nil.
func (c *Conn) flowOf(local, remote netip.AddrPort) *flow {
	for _, f := range c.flows {
		if f.tcp != nil && f.tcp.Local() == local && f.tcp.Remote() == remote {
			return f
		}
	}
	return nil
}

// FlowMetrics is the state of a subflow's congestion control.
type FlowMetrics struct {
	ID            int
	Local, Remote netip.AddrPort
	subflow.Snapshot
}

// EachFlow shows every live subflow that may carry data.
func (c *Conn) EachFlow(see func(FlowMetrics)) {
	for _, f := range c.flows {
		if f.phase == phaseUp {
			see(FlowMetrics{f.id, f.tcp.Local(), f.tcp.Remote(), f.tcp.Snapshot()})
		}
	}
}
