package experiment

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/mptcp/qlog"
)

// Trace offers traces of a simulation: if they are asked for, the life of every
// connection goes to a qlog file for each host, and all packets to a pcapng
// file with an interface for each link. It must come after the links and before
// the first connection.
func (u *Unit) Trace(s *sim.Sim) {
	if u.TraceDir == "" {
		return
	}
	base := filepath.Join(u.TraceDir, fmt.Sprintf("%s.%d", fileSafe(u.Case), u.Seed))
	if err := os.MkdirAll(u.TraceDir, 0o755); err != nil {
		u.misuse("%w", err)
		return
	}
	t := &simTrace{base: base, sim: s, ends: make(map[*sim.Node]*mptcp.Trace), told: make(map[flowID]told)}
	u.finish = append(u.finish, t.close)
	s.Observe(t)
	if err := t.capture(); err != nil {
		u.misuse("%w", err)
	}
}

// fileSafe makes a name of a case one of a file.
func fileSafe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,=", r) {
			return r
		}
		return '_'
	}, name)
}

// simTrace writes the files of one simulation.
type simTrace struct {
	base  string
	sim   *sim.Sim
	ends  map[*sim.Node]*mptcp.Trace // of each host
	told  map[flowID]told
	files []func() error
	err   error
}

// flowID names a subflow; told is what was written of it last.
type flowID struct {
	conn *sim.Conn
	id   int
}

type told struct {
	at   time.Duration
	cwnd int
	srtt time.Duration
}

// metricsEvery is the least time between two records of a subflow's metrics,
// unless its window shrank.
const metricsEvery = 10 * time.Millisecond

func (t *simTrace) capture() error {
	f, err := os.Create(t.base + ".pcapng")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	c, err := t.sim.StartCapture(w)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.files = append(t.files, func() error { return errors.Join(c.Close(), w.Flush(), f.Close()) })
	return nil
}

func (t *simTrace) close() error {
	err := t.err
	for _, f := range t.files {
		err = errors.Join(err, f())
	}
	return err
}

// of returns the trace of a connection's host.
func (t *simTrace) of(c *sim.Conn) *mptcp.Trace {
	if tr := t.ends[c.Node()]; tr != nil {
		return tr
	}
	t.ends[c.Node()] = &mptcp.Trace{}
	f, err := os.Create(t.base + "." + fileSafe(c.Node().Name) + ".sqlog")
	if err != nil {
		t.err = errors.Join(t.err, err)
		return t.ends[c.Node()]
	}
	w := qlog.New(f, qlog.Config{
		Title: filepath.Base(t.base), VantagePoint: c.Node().Name, Reference: time.Unix(0, 0), Clock: t.sim.Elapsed,
	})
	t.files = append(t.files, func() error { return errors.Join(w.Flush(), f.Close()) })
	t.ends[c.Node()] = w.Trace()
	return t.ends[c.Node()]
}

func connEvent(c *sim.Conn) mptcp.ConnEvent {
	return mptcp.ConnEvent{Local: c.LocalAddr(), Remote: c.RemoteAddr(), MPTCP: c.IsMPTCP()}
}

func segmentInfo(c *sim.Conn, seg *wire.Segment, at mpconn.Location) mptcp.SegmentInfo {
	return mptcp.SegmentInfo{
		Conn: connEvent(c), Subflow: at.ID, Offset: at.Offset, DataAck: at.DataAck,
		Src: seg.Src, Dst: seg.Dst, Seq: uint32(seg.Seq), Ack: uint32(seg.Ack), Flags: uint8(seg.Flags), Len: seg.PayloadLen(),
	}
}

// Sent implements sim.Observer.
func (t *simTrace) Sent(c *sim.Conn, seg *wire.Segment) {
	if tr := t.of(c); tr.SegmentSent != nil {
		tr.SegmentSent(segmentInfo(c, seg, c.LocateSent(seg)))
		t.metrics(c, tr)
	}
}

// Received implements sim.Observer.
func (t *simTrace) Received(c *sim.Conn, seg *wire.Segment) {
	if tr := t.of(c); tr.SegmentReceived != nil {
		tr.SegmentReceived(segmentInfo(c, seg, c.LocateReceived(seg)))
	}
}

// Placed implements sim.Observer.
func (t *simTrace) Placed(c *sim.Conn, p mpconn.Placement) {
	if tr := t.of(c); tr.Placed != nil {
		tr.Placed(mptcp.Placement{
			Conn: connEvent(c), Subflow: p.ID, Offset: p.Offset, Len: p.Len, Again: p.Again, Reason: string(p.Reason),
		})
	}
}

// Event implements sim.Observer.
func (t *simTrace) Event(c *sim.Conn, e mpconn.Event) {
	tr, conn := t.of(c), connEvent(c)
	if tr.Connected == nil {
		return
	}
	flow := mptcp.SubflowEvent{Conn: conn, ID: e.ID, Local: e.Local, Remote: e.Remote}
	switch e.Kind {
	case mpconn.EventConnected:
		tr.Connected(conn)
	case mpconn.EventFallback:
		conn.Reason = e.Fallback.String()
		tr.Fallback(conn)
	case mpconn.EventClosed:
		conn.Reason = e.Close.String()
		tr.Closed(conn)
	case mpconn.EventSubflowUp:
		tr.SubflowUp(flow)
	case mpconn.EventSubflowLost:
		flow.Reason = e.Close.String()
		tr.SubflowLost(flow)
	}
}

// metrics writes the subflows whose windows or round trips changed.
func (t *simTrace) metrics(c *sim.Conn, tr *mptcp.Trace) {
	now := t.sim.Elapsed()
	c.EachFlow(func(f mpconn.FlowMetrics) {
		id := flowID{c, f.ID}
		last, known := t.told[id]
		switch {
		case f.Cwnd == last.cwnd && f.SRTT == last.srtt:
			return
		case known && f.Cwnd >= last.cwnd && now-last.at < metricsEvery:
			return
		}
		t.told[id] = told{now, f.Cwnd, f.SRTT}
		tr.Metrics(mptcp.Metrics{
			Conn: connEvent(c), Subflow: f.ID, Local: f.Local, Remote: f.Remote,
			SRTT: f.SRTT, RTTVar: f.RTTVar, MinRTT: f.MinRTT, Cwnd: f.Cwnd, InFlight: f.InFlight,
			PacingRate: f.PacingRate, DeliveryRate: f.DeliveryRate,
		})
	})
}
