package experiment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// synTimes notes when a host sends each SYN.
type synTimes struct {
	sim  *sim.Sim
	node *sim.Node
	at   []time.Duration
}

func (s *synTimes) Sent(c *sim.Conn, seg *wire.Segment) {
	if c.Node() == s.node && seg.Flags.Has(wire.SYN) {
		s.at = append(s.at, s.sim.Elapsed())
	}
}
func (s *synTimes) Received(*sim.Conn, *wire.Segment)  {}
func (s *synTimes) Placed(*sim.Conn, mpconn.Placement) {}
func (s *synTimes) Event(c *sim.Conn, e mpconn.Event)  {}

// begin runs the first moments of a transfer over three paths of 50 ms one way,
// and returns when SYNs left and how many packets had left on the first path a
// millisecond after the handshake.
func begin(t *testing.T, p Profile) (syns []time.Duration, first uint64) {
	t.Helper()
	_, err := Execute(Case{Name: "begin", Run: func(u *Unit) error {
		l := link.Config{Delay: 50 * time.Millisecond}
		shape := sim.Shape{AB: l, BA: l, MTU: u.Profile.MTU()}
		net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Paths: []sim.Shape{shape, shape, shape}})
		seen := &synTimes{sim: net.Sim, node: net.A}
		net.Observe(seen)
		conn := u.Conn("", "reno", "fullmesh")
		net.Start(sim.TransferConfig{AB: 1 << 20, ConnA: conn, ConnB: conn})
		net.RunFor(101 * time.Millisecond)
		first = net.Links[0].AB.Stats().Packets
		net.RunFor(time.Second)
		syns = seen.at
		return u.Check(net.Sim)
	}}, 1, Options{Profile: p})
	require.NoError(t, err)
	return syns, first
}

// The old model begins with one segment and waits up to 50 ms before each
// join; today's hosts begin with ten and join at once.
func TestProfiles(t *testing.T) {
	modern, first := begin(t, Modern)
	require.Len(t, modern, 3)
	require.GreaterOrEqual(t, first, uint64(1+10))

	old, first := begin(t, NS32015)
	require.Len(t, old, 3)
	require.Equal(t, modern[0], old[0])
	for i := 1; i < 3; i++ {
		late := old[i] - modern[i]
		require.Positive(t, late, "join %d", i)
		require.LessOrEqual(t, late, 50*time.Millisecond, "join %d", i)
	}
	require.LessOrEqual(t, first, uint64(1+2))
}

func TestProfileNames(t *testing.T) {
	for _, name := range Profiles {
		p, err := ProfileByName(name)
		require.NoError(t, err)
		require.Equal(t, name, p.String())
	}
	_, err := ProfileByName("ns-3")
	require.ErrorContains(t, err, `"ns-3"`)
}

func TestSelect(t *testing.T) {
	all, err := Select("all")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, e := range all {
		require.False(t, e.Clocked, e.Name)
		require.NotEmpty(t, e.Summary, e.Name)
		require.NotEmpty(t, e.Source, e.Name)
	}
	two, err := Select("two-paths, outage,two-paths")
	require.NoError(t, err)
	require.Len(t, two, 2)
	require.Equal(t, "two-paths", two[0].Name)
	_, err = Select("two-paths,nothing")
	require.ErrorContains(t, err, `"nothing"`)
}

func TestCommonRandomNumbers(t *testing.T) {
	draw := func(name, purpose string, seed uint64) (v float64) {
		out, err := Execute(Case{Name: name, Run: func(u *Unit) error {
			u.Rand("something else").Float64()
			u.Set("v", u.Rand(purpose).Float64())
			return nil
		}}, seed, Options{})
		require.NoError(t, err)
		return out.Values["v"]
	}
	require.Equal(t, draw("minrtt", "arrivals", 1), draw("fsfs", "arrivals", 1))
	require.NotEqual(t, draw("minrtt", "arrivals", 1), draw("minrtt", "arrivals", 2))
	require.NotEqual(t, draw("minrtt", "arrivals", 1), draw("minrtt", "sizes", 1))
}

func TestMisuseIsAnError(t *testing.T) {
	for _, run := range []func(u *Unit) error{
		func(u *Unit) error { u.Set("v", 1/Mean([]float64{0})); return nil },
		func(u *Unit) error { u.AddSeries("s", []float64{1}, nil); return nil },
		func(*Unit) error { panic("surprise") },
	} {
		_, err := Execute(Case{Name: "c", Run: run}, 7, Options{})
		require.ErrorContains(t, err, "case c, seed 7")
	}
}
