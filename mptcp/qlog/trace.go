package qlog

import "github.com/gomptcp/gomptcp/mptcp"

// Trace returns the functions that write events. It may be the Trace of any
// number of connections.
func (q *Writer) Trace() *mptcp.Trace {
	return &mptcp.Trace{
		Connected:       func(e mptcp.ConnEvent) { q.conn("connected", e) },
		Closed:          func(e mptcp.ConnEvent) { q.conn("closed", e) },
		Fallback:        q.fallback,
		SubflowUp:       func(e mptcp.SubflowEvent) { q.subflow("up", e) },
		SubflowLost:     func(e mptcp.SubflowEvent) { q.subflow("lost", e) },
		JoinStopped:     q.joinStopped,
		SegmentSent:     func(s mptcp.SegmentInfo) { q.segment("segment_sent", &s) },
		SegmentReceived: func(s mptcp.SegmentInfo) { q.segment("segment_received", &s) },
		Placed:          q.placed,
		Metrics:         q.metrics,
	}
}

func (q *Writer) conn(state string, c mptcp.ConnEvent) {
	q.emit("connection_state", c, -1, func(e *event) {
		e.text("state", state)
		e.key("mptcp")
		if c.MPTCP {
			e.b = append(e.b, "true"...)
		} else {
			e.b = append(e.b, "false"...)
		}
		e.text("reason", c.Reason)
	})
}

func (q *Writer) fallback(c mptcp.ConnEvent) {
	q.emit("fallback", c, -1, func(e *event) { e.text("reason", c.Reason) })
}

func (q *Writer) subflow(state string, s mptcp.SubflowEvent) {
	q.emit("subflow_state", s.Conn, s.ID, func(e *event) {
		e.text("state", state)
		e.addr("local", s.Local)
		e.addr("remote", s.Remote)
		e.text("reason", s.Reason)
	})
}

func (q *Writer) joinStopped(s mptcp.SubflowEvent) {
	q.emit("join_stopped", s.Conn, -1, func(e *event) {
		e.addr("local", s.Local)
		e.addr("remote", s.Remote)
		e.text("reason", s.Reason)
	})
}

// flagLetters are the control bits from the lowest.
const flagLetters = "FSRPAUEC"

// marked are the flags of segments that are written with all their options.
const marked = 1<<0 | 1<<1 | 1<<2 // FIN, SYN, RST

func (q *Writer) segment(name string, s *mptcp.SegmentInfo) {
	q.emit(name, s.Conn, s.Subflow, func(e *event) {
		e.addr("src", s.Src)
		e.addr("dst", s.Dst)
		e.integer("seq", int64(s.Seq))
		e.integer("ack", int64(s.Ack))
		e.key("flags")
		e.b = append(e.b, '"')
		for i := range len(flagLetters) {
			if s.Flags&(1<<i) != 0 {
				e.b = append(e.b, flagLetters[i])
			}
		}
		e.b = append(e.b, '"')
		e.integer("len", int64(s.Len))
		if s.Offset >= 0 {
			e.integer("offset", s.Offset)
		}
		if s.DataAck >= 0 {
			e.integer("data_ack", s.DataAck)
		}
		if s.Flags&marked != 0 {
			e.text("text", s.String())
		}
	})
}

func (q *Writer) placed(p mptcp.Placement) {
	name := "scheduler_pick"
	if p.Again {
		name = "reinjection"
	}
	q.emit(name, p.Conn, p.Subflow, func(e *event) {
		e.integer("offset", int64(p.Offset))
		e.integer("len", int64(p.Len))
		e.text("reason", p.Reason)
	})
}

func (q *Writer) metrics(m mptcp.Metrics) {
	q.emit("cc_metrics", m.Conn, m.Subflow, func(e *event) {
		e.integer("cwnd", int64(m.Cwnd))
		e.integer("in_flight", int64(m.InFlight))
		e.ms("srtt", m.SRTT)
		e.ms("rttvar", m.RTTVar)
		e.ms("min_rtt", m.MinRTT)
		e.rate("pacing_rate", m.PacingRate)
		e.rate("delivery_rate", m.DeliveryRate)
	})
}
