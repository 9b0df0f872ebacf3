package pathmgr_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
)

// fourPaths is a view of a connection between hosts that are joined by four
// links, whose RTTs in milliseconds the host knows; 0 = it does not.
func fourPaths(size int64, rtts ...int) *pathmgr.View {
	v := &pathmgr.View{Active: true, Size: size, Limits: pathmgr.Limits{Subflows: 8}}
	for i := range rtts {
		v.Locals = append(v.Locals, pathmgr.Local{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 1})})
		v.Remotes = append(v.Remotes, pathmgr.Remote{ID: uint8(i), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 2}), 80)})
	}
	v.Routable = func(l, r netip.Addr) bool { return l.As4()[2] == r.As4()[2] }
	v.Measured = func(l, _ netip.Addr) pathmgr.Measurement {
		return pathmgr.Measurement{SRTT: time.Duration(rtts[l.As4()[2]-1]) * time.Millisecond}
	}
	return v
}

// begin tells a policy that the connection is established on a path, counted
// from 1, and returns the paths that it opens, those for probes negative.
func begin(p pathmgr.Policy, v *pathmgr.View, path int) (opened []int, watch int64) {
	l, r := v.Locals[path-1].Addr, v.Remotes[path-1].Addr
	v.Subflows = append(v.Subflows, pathmgr.Subflow{ID: 0, Local: netip.AddrPortFrom(l, 4000), Remote: r, Established: true})
	return tell(p, v, pathmgr.Event{Kind: pathmgr.Established, Local: l, Remote: r})
}

func tell(p pathmgr.Policy, v *pathmgr.View, e pathmgr.Event) (opened []int, watch int64) {
	for _, c := range p.Handle(v, e, nil) {
		switch c.Verb {
		case pathmgr.OpenSubflow:
			path := int(c.Remote.Addr().As4()[2])
			v.Subflows = append(v.Subflows, pathmgr.Subflow{ID: len(v.Subflows), Local: netip.AddrPortFrom(c.Local.Addr(), 4000), Remote: c.Remote})
			if c.Backup {
				path = -path
			}
			opened = append(opened, path)
		case pathmgr.Watch:
			watch = c.Bytes
		}
	}
	return opened, watch
}

// With RTTs of 50, 20, 90 and 30 ms flows of 80 and 100 KB have path 2, one of
// a byte more 4 as well, and so on.
func TestFlowSizeChoosesPaths(t *testing.T) {
	for size, want := range map[int64][]int{
		80_000: nil, 100_000: nil, 100_001: {4}, 300_000: {4}, 300_001: {4, 1}, 800_000: {4, 1}, 800_001: {4, 1, 3},
	} {
		v := fourPaths(size, 50, 20, 90, 30)
		p := pathmgr.FlowSize(pathmgr.FlowSizeConfig{})()
		opened, _ := begin(p, v, 2)
		require.Equal(t, want, opened, "%d", size)
	}
	// Two paths and 500 KB: both.
	v := fourPaths(500_000, 50, 20)
	opened, _ := begin(pathmgr.FlowSize(pathmgr.FlowSizeConfig{})(), v, 2)
	require.Equal(t, []int{1}, opened)
}

// A connection begins where the RTT is least, on paths to the same address.
func TestFlowSizeBeginsOnTheFastest(t *testing.T) {
	v := fourPaths(80_000, 50, 20, 90, 30)
	v.Routable = func(netip.Addr, netip.Addr) bool { return true }
	cmds := pathmgr.FlowSize(pathmgr.FlowSizeConfig{})().Handle(v, pathmgr.Event{Kind: pathmgr.ChooseInitial, Remote: v.Remotes[0].Addr}, nil)
	require.Len(t, cmds, 1)
	require.Equal(t, v.Locals[1].Addr, cmds[0].Local.Addr())
	v.Locals[1].Backup = true
	cmds = pathmgr.FlowSize(pathmgr.FlowSizeConfig{})().Handle(v, pathmgr.Event{Kind: pathmgr.ChooseInitial, Remote: v.Remotes[0].Addr}, nil)
	require.Equal(t, v.Locals[3].Addr, cmds[0].Local.Addr())
}

// A flow whose size nobody knows is promoted by what was written.
func TestFlowSizePromotes(t *testing.T) {
	v := fourPaths(0, 50, 20, 90, 30)
	p := pathmgr.FlowSize(pathmgr.FlowSizeConfig{Classes: [3]int64{1000, 2000, 3000}})()
	opened, watch := begin(p, v, 2)
	require.Empty(t, opened)
	for _, step := range []struct {
		at   int64
		path int
	}{{1001, 4}, {2001, 1}, {3001, 3}} {
		require.Equal(t, step.at, watch)
		v.Written = step.at
		opened, watch = tell(p, v, pathmgr.Event{Kind: pathmgr.DataQueued, Bytes: step.at})
		require.Equal(t, []int{step.path}, opened)
	}
	require.Zero(t, watch)
	// A size declared later counts at once.
	v = fourPaths(0, 50, 20, 90, 30)
	p = pathmgr.FlowSize(pathmgr.FlowSizeConfig{})()
	begin(p, v, 2)
	v.Size = 1 << 30
	opened, _ = tell(p, v, pathmgr.Event{Kind: pathmgr.DataQueued})
	require.Equal(t, []int{4, 1, 3}, opened)
}

// A path that nobody knows, or has measured lately, is probed by a subflow that
// is for backup and closed when it is there.
func TestFlowSizeProbes(t *testing.T) {
	v := fourPaths(80_000, 50, 20, 0, 30)
	measured := v.Measured
	v.Measured = func(l, r netip.Addr) pathmgr.Measurement {
		m := measured(l, r)
		if l.As4()[2] == 1 {
			m.Age = time.Second + 1
		}
		return m
	}
	p := pathmgr.FlowSize(pathmgr.FlowSizeConfig{})()
	opened, _ := begin(p, v, 2)
	require.ElementsMatch(t, []int{-1, -3}, opened)
	s := v.Subflows[1]
	cmds := p.Handle(v, pathmgr.Event{Kind: pathmgr.SubflowUp, Subflow: s.ID, Local: s.Local.Addr(), Remote: s.Remote}, nil)
	require.Contains(t, cmds, pathmgr.Command{Verb: pathmgr.CloseSubflow, Subflow: s.ID})

	v = fourPaths(80_000, 50, 20, 0, 30)
	opened, _ = begin(pathmgr.FlowSize(pathmgr.FlowSizeConfig{ReprobeAfter: -1})(), v, 2)
	require.Empty(t, opened)
}

// With jitter equal paths are not always taken in their order.
func TestFlowSizeJitter(t *testing.T) {
	n := uint64(0)
	f := pathmgr.FlowSize(pathmgr.FlowSizeConfig{Jitter: func() uint64 { n = n*6364136223846793005 + 1442695040888963407; return n >> 33 }})
	chosen := map[netip.Addr]int{}
	for range 100 {
		v := fourPaths(80_000, 20, 20, 20, 20)
		v.Routable = func(netip.Addr, netip.Addr) bool { return true }
		cmds := f().Handle(v, pathmgr.Event{Kind: pathmgr.ChooseInitial, Remote: v.Remotes[0].Addr}, nil)
		chosen[cmds[0].Local.Addr()]++
	}
	require.Len(t, chosen, 4)
}

// What is placed on a path and takes 15 ms there makes 20 ms as good as 35.
func TestFlowSizeCountsBacklog(t *testing.T) {
	v := fourPaths(100_001, 50, 20, 90, 30)
	p := pathmgr.FlowSize(pathmgr.FlowSizeConfig{Backlog: func(l, _ netip.Addr) time.Duration {
		if l.As4()[2] == 2 {
			return 15 * time.Millisecond
		}
		return 0
	}})()
	v.Routable = func(netip.Addr, netip.Addr) bool { return true }
	cmds := p.Handle(v, pathmgr.Event{Kind: pathmgr.ChooseInitial, Remote: v.Remotes[0].Addr}, nil)
	require.Equal(t, v.Locals[3].Addr, cmds[0].Local.Addr())
	v = fourPaths(100_001, 50, 20, 90, 30)
	p = pathmgr.FlowSize(pathmgr.FlowSizeConfig{Backlog: func(l, _ netip.Addr) time.Duration {
		return time.Duration(l.As4()[2]) * 20 * time.Millisecond // 70, 60, 150, 110
	}})()
	opened, _ := begin(p, v, 2)
	require.Equal(t, []int{1}, opened)
}
