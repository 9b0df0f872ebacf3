package pathmgr_test

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
)

// With 100 arrivals a second, service times of 5 ms on average and 50e-6 s^2 on
// average of their squares (exponential ones), half of the time is used and an
// arrival waits 5 ms.
func TestMeanWait(t *testing.T) {
	require.InDelta(t, 5e-3, pathmgr.MeanWait(100, 5e-3, 50e-6), 1e-12)
	require.InDelta(t, 2.5e-3, pathmgr.MeanWait(100, 5e-3, 25e-6), 1e-12, "fixed service times wait half as long")
	require.Zero(t, pathmgr.MeanWait(0, 5e-3, 50e-6))
	require.True(t, math.IsInf(pathmgr.MeanWait(200, 5e-3, 50e-6), 1))
}

// roads is a host with four links to one server, on which 5 KB take 5 ms.
type roads struct {
	t       *testing.T
	factory pathmgr.Factory
	view    pathmgr.View
	now     time.Duration
}

func newRoads(t *testing.T, deadline time.Duration) *roads {
	r := &roads{t: t, now: time.Second}
	r.factory = pathmgr.Freeway(pathmgr.FreewayConfig{
		Deadline: deadline, Rate: func(netip.Addr) float64 { return 1e6 },
	})
	r.view = pathmgr.View{Active: true, Shared: map[any]any{}, Routable: func(_, _ netip.Addr) bool { return true }}
	for i := range 4 {
		r.view.Locals = append(r.view.Locals, pathmgr.Local{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 1})})
	}
	return r
}

// flow is a connection on its way.
type flow struct {
	*roads
	policy pathmgr.Policy
	view   pathmgr.View
}

var server = netip.MustParseAddrPort("10.0.9.9:80")

// begin begins a flow of a size, 0 = unknown, and returns its link from 1 on.
func (r *roads) begin(size int64) (*flow, int) {
	r.t.Helper()
	f := &flow{r, r.factory(), r.view}
	f.view.Size = size
	cmds := f.policy.Handle(&f.view, pathmgr.Event{Kind: pathmgr.ChooseInitial, Now: r.now, Remote: server}, nil)
	require.Len(r.t, cmds, 1)
	f.view.Remotes = []pathmgr.Remote{{Addr: server}}
	f.view.Subflows = []pathmgr.Subflow{{Local: cmds[0].Local, Remote: server, Established: true}}
	f.tell(pathmgr.Event{Kind: pathmgr.Established, Local: cmds[0].Local.Addr(), Remote: server})
	return f, link(cmds[0].Local.Addr())
}

func (f *flow) tell(e pathmgr.Event) []pathmgr.Command {
	e.Now = f.now
	return f.policy.Handle(&f.view, e, nil)
}

func link(a netip.Addr) int { return int(a.As4()[2]) }

// mice begins as many mice as come in a time at a rate, and returns how many
// took each link.
func (r *roads) mice(perSecond int, during time.Duration) (links [5]int) {
	for end := r.now + during; r.now < end; r.now += time.Second / time.Duration(perSecond) {
		_, at := r.begin(5000)
		links[at]++
	}
	return links
}

// At first one link is for mice, and elephants take the others in turn.
func TestFreewayIsolates(t *testing.T) {
	r := newRoads(t, time.Second)
	links := r.mice(10, time.Second)
	require.Equal(t, [5]int{1: 10}, links)
	var elephants []int
	for range 6 {
		_, at := r.begin(1 << 20)
		elephants = append(elephants, at)
	}
	slices.Sort(elephants)
	require.Equal(t, []int{2, 2, 3, 3, 4, 4}, elephants)
	_, at := r.begin(100_000)
	require.Equal(t, 1, at, "the largest mouse")
	_, at = r.begin(100_001)
	require.NotEqual(t, 1, at, "the smallest elephant")
}

// 100 mice a second of 5 ms wait 2.5 ms on one link and 0.83 ms on each of two.
// With a bound of 1.5 ms, which is a deadline of ln(100) times that, two links
// are for mice, as half of the bound is less; with 50 ms one link is enough,
// and without mice it is one again.
func TestFreewayBalances(t *testing.T) {
	deadline := time.Duration(1.5e6 * math.Log(100))
	r := newRoads(t, deadline)
	r.mice(100, 3*time.Second)
	links := r.mice(100, time.Second)
	used := 0
	for _, n := range links {
		if n > 0 {
			used++
			require.Greater(t, n, 30, "the hash spreads")
		}
	}
	require.Equal(t, 2, used, "%v", links)
	for range 4 {
		_, at := r.begin(1 << 20)
		require.Zero(t, links[at], "elephants are elsewhere")
	}
	r.mice(10, 3*time.Second)
	links = r.mice(10, time.Second)
	require.Equal(t, [5]int{1: 10}, links, "given back")

	r = newRoads(t, 50*time.Millisecond)
	r.mice(100, 3*time.Second)
	require.Equal(t, [5]int{1: 100}, r.mice(100, time.Second))
}

// However many mice there are, a link is left to elephants, though no path can
// hold them: 2000 mice of 5 ms keep ten links busy.
func TestFreewayKeepsALinkForElephants(t *testing.T) {
	r := newRoads(t, 10*time.Millisecond)
	r.mice(2000, 2*time.Second)
	links := r.mice(2000, 100*time.Millisecond)
	_, at := r.begin(1 << 20)
	require.Zero(t, links[at])
	require.Positive(t, links[1])
}

// A flow of unknown size is a mouse until it has written more than one; then it
// moves, and leaves the mice's link when the other subflow is there.
func TestFreewayMovesElephants(t *testing.T) {
	r := newRoads(t, time.Second)
	f, at := r.begin(0)
	require.Equal(t, 1, at)
	f.view.Written = 100_000
	require.Contains(t, f.tell(pathmgr.Event{Kind: pathmgr.DataQueued}), pathmgr.Command{Verb: pathmgr.Watch, Bytes: 100_001})
	f.view.Written = 100_001
	cmds := f.tell(pathmgr.Event{Kind: pathmgr.DataQueued})
	require.Equal(t, pathmgr.OpenSubflow, cmds[0].Verb)
	require.Equal(t, 2, link(cmds[0].Local.Addr()))
	require.Equal(t, pathmgr.Command{Verb: pathmgr.Wake, At: r.now + 100*time.Millisecond}, cmds[1])
	f.view.Subflows = append(f.view.Subflows, pathmgr.Subflow{ID: 1, Local: cmds[0].Local, Remote: server, Established: true})
	require.Equal(t, []pathmgr.Command{{Verb: pathmgr.CloseSubflow}},
		f.tell(pathmgr.Event{Kind: pathmgr.SubflowUp, Subflow: 1, Local: cmds[0].Local.Addr(), Remote: server}))
	f.view.Subflows = f.view.Subflows[1:]

	// As long as it is there it counts: the next ones go elsewhere.
	for range 10 {
		r.now += 100 * time.Millisecond
		cmds = f.tell(pathmgr.Event{Kind: pathmgr.Tick})
		require.Len(t, cmds, 1)
	}
	_, at = r.begin(1 << 20)
	require.NotEqual(t, 2, at)
}

// A mouse whose link does not answer takes another, and so does an elephant.
func TestFreewayLeavesADeadLink(t *testing.T) {
	for _, size := range []int64{50_000, 1 << 20} {
		r := newRoads(t, time.Second)
		f, at := r.begin(size)
		f.view.Written = size
		f.tell(pathmgr.Event{Kind: pathmgr.DataQueued})
		f.view.Subflows[0].Stale = true
		r.now += time.Second
		cmds := f.tell(pathmgr.Event{Kind: pathmgr.Tick})
		require.Equal(t, pathmgr.OpenSubflow, cmds[0].Verb, "%d", size)
		require.NotEqual(t, at, link(cmds[0].Local.Addr()))
	}
}
