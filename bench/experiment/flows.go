package experiment

import (
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// FlowWatch records what one host sends on each subflow of its first
// connection, for figures.
type FlowWatch struct {
	sim   *sim.Sim
	node  *sim.Node
	conn  *sim.Conn
	sent  [][2][]float64 // by subflow: seconds, MB into the stream
	again [][2][]float64 // the same, of reinjections
	cwnd  [][2][]float64 // seconds, kB
	srtt  [][2][]float64 // seconds, ms
	last  time.Duration  // of the last look at the windows

	from, to time.Duration // of the stream, that is of sent and again
}

// WatchFlows begins to watch a host: windows and round trips always, what is
// sent between two times only. It must come before the first connection.
func WatchFlows(s *sim.Sim, n *sim.Node, from, to time.Duration) *FlowWatch {
	w := &FlowWatch{sim: s, node: n, last: -time.Second, from: from, to: to}
	s.Observe(w)
	return w
}

// note adds a point to a subflow's list.
func (w *FlowWatch) note(lists *[][2][]float64, id int, y float64) {
	for len(*lists) <= id {
		*lists = append(*lists, [2][]float64{})
	}
	l := &(*lists)[id]
	l[0], l[1] = append(l[0], w.sim.Elapsed().Seconds()), append(l[1], y)
}

func (w *FlowWatch) watches(c *sim.Conn) bool {
	if w.conn == nil && c.Node() == w.node {
		w.conn = c
	}
	return c == w.conn
}

// looks reports whether the stream is being recorded.
func (w *FlowWatch) looks() bool { return w.sim.Elapsed() >= w.from && w.sim.Elapsed() <= w.to }

// Sent implements sim.Observer.
func (w *FlowWatch) Sent(c *sim.Conn, seg *wire.Segment) {
	if !w.watches(c) {
		return
	}
	if at := c.LocateSent(seg); at.Offset >= 0 && w.looks() {
		w.note(&w.sent, at.ID, float64(at.Offset)/1e6)
	}
	if w.sim.Elapsed()-w.last < 20*time.Millisecond {
		return
	}
	w.last = w.sim.Elapsed()
	c.EachFlow(func(f mpconn.FlowMetrics) {
		w.note(&w.cwnd, f.ID, float64(f.Cwnd)/1e3)
		w.note(&w.srtt, f.ID, f.SRTT.Seconds()*1e3)
	})
}

// Placed implements sim.Observer.
func (w *FlowWatch) Placed(c *sim.Conn, p mpconn.Placement) {
	if w.watches(c) && p.Again && w.looks() {
		w.note(&w.again, p.ID, float64(p.Offset)/1e6)
	}
}

// Received implements sim.Observer.
func (w *FlowWatch) Received(*sim.Conn, *wire.Segment) {}

// Event implements sim.Observer.
func (w *FlowWatch) Event(*sim.Conn, mpconn.Event) {}

// flowPoints is how many points of each line are kept.
const flowPoints = 600

// Keep adds what was recorded to the unit's series, as FlowPanels finds it. Only
// the first seed's is kept: it is much, and for looking at.
func (w *FlowWatch) Keep(u *Unit) {
	if u.Seed != 1 {
		return
	}
	for _, kind := range []struct {
		name  string
		lists [][2][]float64
	}{{"sent", w.sent}, {"again", w.again}, {"cwnd", w.cwnd}, {"srtt", w.srtt}} {
		for id, l := range kind.lists {
			x, y := Thin(l[0], l[1], flowPoints)
			u.AddSeries(fmt.Sprintf("%s subflow %d", kind.name, id), x, y)
		}
	}
}

// FlowPanels draws what a FlowWatch kept of a case's first seed: the stream
// over time by subflow with reinjections, windows, and round trips.
func FlowPanels(r *Results, name, note string, shades ...figure.Shade) []figure.Panel {
	out := r.Outcomes(name)[0]
	seconds := figure.Axis{Label: "seconds"}
	stream := &figure.XY{Title: "The stream by subflow", Note: note, X: seconds, Y: figure.Axis{Label: "MB into the stream"}, Shades: shades}
	windows := &figure.XY{Title: "Congestion windows", Note: note, X: seconds, Y: figure.Axis{Label: "kB"}, Shades: shades, Height: 130}
	trips := &figure.XY{Title: "Smoothed round trips", Note: note, X: seconds, Y: figure.Axis{Label: "ms"}, Shades: shades, Height: 130}
	for id := 0; ; id++ {
		flow := fmt.Sprintf("subflow %d", id)
		cwnd, ok := out.Series["cwnd "+flow]
		if !ok {
			return []figure.Panel{stream, windows, trips}
		}
		srtt, sent, again := out.Series["srtt "+flow], out.Series["sent "+flow], out.Series["again "+flow]
		stream.Points = append(stream.Points, figure.Points{Name: flow, X: sent.X, Y: sent.Y, Radius: 1.3})
		if len(again.X) > 0 {
			stream.Points = append(stream.Points, figure.Points{Name: "reinjected on " + flow, Like: flow, X: again.X, Y: again.Y, Hollow: true})
		}
		windows.Lines = append(windows.Lines, figure.Line{Name: flow, X: cwnd.X, Y: cwnd.Y})
		trips.Lines = append(trips.Lines, figure.Line{Name: flow, X: srtt.X, Y: srtt.Y})
	}
}
