package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// position says where on a connection a box begins to act.
type position uint8

const (
	atHandshake position = iota // on the first path, from the first SYN
	atData                      // on the first path, from the first data
	midStream                   // on the first path, when a second is in use
	midOnly                     // in mid-stream on the only path
	atJoin                      // on the second path, from its first SYN
	numPositions
)

func (p position) String() string {
	return [...]string{"handshake", "first data", "mid-stream", "only path", "join"}[p]
}

// middle is when a box in mid-stream begins to act: every transfer of the
// matrix is at work then, on each of its paths.
const middle = 300 * time.Millisecond

// cell is one run of the matrix.
type cell struct {
	*sim.Pair
	*sim.Transfer
	at     position
	inside sim.End
	link   *sim.Link
	cfg    sim.TransferConfig
	begin  []func() // what a box does besides, once it begins
	grows  int64    // by which the stream from the inside grows, if it becomes plain
}

// begun matches once the box has to act.
func (c *cell) begun() sim.Match {
	data := false
	return func(seg *wire.Segment) bool {
		data = data || seg.PayloadLen() > 0
		switch c.at {
		case atData:
			return data
		case midStream, midOnly:
			return c.Elapsed() >= middle
		}
		return true
	}
}

// insideNode returns the host at the box's inside.
func (c *cell) insideNode() *sim.Node { return []*sim.Node{c.A, c.B}[c.inside] }

// newCell makes the network of a cell.
func newCell(at position, inside sim.End) *cell {
	c := &cell{at: at, inside: inside}
	paths := fastAndSlow()
	if at == midOnly {
		paths = paths[:1]
	}
	c.Pair = sim.TwoHosts(sim.PairConfig{Seed: 31, Paths: paths})
	c.link = c.Links[0]
	if at == atJoin {
		c.link = c.Links[1]
	}
	// What is expected depends on which subflow carries the first bytes of each
	// side.
	conn := sim.ConnWith("minrtt-plain", "", "")
	c.cfg = sim.TransferConfig{AB: 3 * mib, BA: 3 * mib, ConnA: conn, ConnB: conn}
	return c
}

// fate is what becomes of one end of a connection.
type fate struct {
	Fallback reason.Fallback
	Close    reason.Close
}

// outcome is the final state of a cell.
type outcome struct {
	A, B     fate
	Whole    bool // every byte arrived in both directions
	Subflows int  // that are up when the last byte has arrived
}

func (o outcome) String() string {
	s := fmt.Sprintf("%d subflows", o.Subflows)
	for i, e := range []fate{o.A, o.B} {
		s += fmt.Sprintf("; %c: %v, %v", "AB"[i], e.Fallback, e.Close)
	}
	if !o.Whole {
		s += "; not whole"
	}
	return s
}

// mptcp is the outcome of a connection that stays MPTCP.
func mptcp(subflows int) outcome {
	done := fate{Close: reason.CloseDone}
	return outcome{A: done, B: done, Whole: true, Subflows: subflows}
}

// plain is the outcome of one that falls back.
func plain(a, b reason.Fallback) outcome {
	return outcome{A: fate{a, reason.CloseDone}, B: fate{b, reason.CloseDone}, Whole: true, Subflows: 1}
}

// lost is the outcome of one that ends before its time.
func lost(a, b reason.Close) outcome {
	return outcome{A: fate{Close: a}, B: fate{Close: b}}
}

// run plays a cell to its end. Rules that hold for all are checked here.
func (c *cell) run(t *testing.T) outcome {
	t.Helper()
	c.cfg.StayOpen = true
	c.Transfer = c.Start(c.cfg)
	[]*sim.Program{c.ProgramB, c.ProgramA}[c.inside].Receive += c.grows
	for _, f := range c.begin {
		c.After(middle, f)
	}
	c.RunUntil(time.Hour, func() bool { return c.Delivered() || c.over() })
	o := outcome{Whole: c.Delivered(), Subflows: c.up()}
	for _, p := range []*sim.Program{c.ProgramA, c.ProgramB} {
		p.StayOpen = false
	}
	c.ConnA.Wake()
	if c.accepted() {
		c.ConnB.Wake()
	}
	ended := c.RunUntil(time.Hour, c.over)
	require.Empty(t, c.Violations())
	require.True(t, ended, "hangs; A read %d, B %d bytes", c.ProgramA.Received, c.ProgramB.Received)
	o.A = fate{c.ConnA.Fallback(), c.ConnA.Err()}
	if c.accepted() {
		o.B = fate{c.ConnB.Fallback(), c.ConnB.Err()}
	}
	c.RunFor(2 * time.Minute)
	for _, n := range []*sim.Node{c.A, c.B} {
		require.Zero(t, n.Host.Counters().Conns, n.Name)
	}
	for _, p := range []*sim.Program{c.ProgramA, c.ProgramB} {
		// RFC 8684, Section 3.7: only after a fallback may bytes be altered
		// "without affecting MPTCP".
		require.False(t, p.Wrong > 0 && o.A.Fallback == reason.FallbackNone, "%d wrong bytes", p.Wrong)
	}
	return o
}

// over reports whether both ends are.
func (c *cell) over() bool { return c.ConnA.Closed() && (!c.accepted() || c.ConnB.Closed()) }

func (c *cell) accepted() bool { return c.ConnB != nil }

// up counts the subflows that A may send on.
func (c *cell) up() int {
	n := 0
	for _, f := range c.ConnA.AppendSubflows(nil) {
		if f.Up {
			n++
		}
	}
	return n
}

// matrixRow is a box at one side, and what becomes of the connection for each
// position; nil where the box has nothing to act on.
type matrixRow struct {
	name   string
	inside sim.End
	box    func(c *cell) sim.Middlebox
	setup  func(c *cell)
	want   map[position]outcome
	always bool  // the box itself asks when to begin
	grows  int64 // see cell
}

// everywhere says that a box changes nothing: two paths stay two.
func everywhere(o outcome) map[position]outcome {
	m := make(map[position]outcome)
	for p := range numPositions {
		m[p] = o
		if p == midOnly {
			o := o
			o.Subflows = 1
			m[p] = o
		}
	}
	return m
}

func strips(opts wire.OptionSet, match sim.Match) func(*cell) sim.Middlebox {
	return func(*cell) sim.Middlebox { return sim.Strip(opts, match) }
}

func notSYN(seg *wire.Segment) bool { return !sim.IsSYN(seg) }

// insertNAT puts a translator in the way, whose public address the client
// connects to if the server is behind it.
func insertNAT(c *cell) *sim.NAT {
	public := netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + c.inside)})
	nat := c.link.NewNAT(c.inside, public)
	c.link.Insert(c.inside, sim.Middlebox{})
	return nat
}

func TestMiddleboxMatrix(t *testing.T) {
	t.Parallel()
	cells := 0
	for _, row := range matrix() {
		for at := range numPositions {
			want, ok := row.want[at]
			if !ok {
				continue
			}
			side := []string{"client", "server"}[row.inside]
			if cells++; raced && cells%8 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%v", row.name, side, at), func(t *testing.T) {
				c := newCell(at, row.inside)
				if want.A.Fallback != reason.FallbackNone {
					c.grows = row.grows
				}
				if row.setup != nil {
					row.setup(c)
				}
				box := row.box(c)
				if !row.always {
					box = sim.From(c.begun(), box)
				}
				c.link.Insert(row.inside, box)
				got := c.run(t)
				require.Equal(t, want.String(), got.String())
			})
		}
	}
}
