package pathmgr_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// eliminated is a connection with subflows between one pair of addresses, as
// the policy sees it.
type eliminated struct {
	policy pathmgr.Policy
	view   pathmgr.View
	now    time.Duration
	rate   int64 // bytes/ms that the connection carries
}

func newEliminated(e pathmgr.Elimination, rates ...float64) *eliminated {
	b := &eliminated{policy: e.Factory()(), now: time.Second, rate: 1000}
	b.view = pathmgr.View{
		Active:  true,
		Locals:  []pathmgr.Local{{Addr: netip.MustParseAddr("10.0.0.1")}},
		Remotes: []pathmgr.Remote{{Addr: netip.MustParseAddrPort(r1)}},
	}
	for i, r := range rates {
		b.view.Subflows = append(b.view.Subflows, pathmgr.Subflow{
			ID: i, Local: netip.AddrPortFrom(b.view.Locals[0].Addr, uint16(1000+i)), Remote: b.view.Remotes[0].Addr,
			Established: true, SRTT: time.Millisecond, Rate: r,
		})
	}
	b.handle(pathmgr.Event{Kind: pathmgr.Established})
	return b
}

// handle shows the policy an event, obeys its commands and returns them.
func (b *eliminated) handle(e pathmgr.Event) string {
	e.Now = b.now
	var out []string
	for _, c := range b.policy.Handle(&b.view, e, nil) {
		switch c.Verb {
		case pathmgr.OpenSubflow:
			out = append(out, "open")
		case pathmgr.SetBackup:
			out = append(out, fmt.Sprintf("backup:%d:%v", c.Subflow, c.Backup))
			b.view.Subflows[c.Subflow].Backup = c.Backup
		case pathmgr.CloseSubflow:
			out = append(out, fmt.Sprintf("close:%d:%v", c.Subflow, c.Reset == reason.ResetPerformance))
		case pathmgr.Bequeath:
			out = append(out, fmt.Sprintf("heir:%d", c.Heir))
		case pathmgr.Wake:
			out = append(out, "wake:"+(c.At-b.now).String())
		}
	}
	return strings.Join(out, " ")
}

func (b *eliminated) tick(after time.Duration) string {
	b.now += after
	b.view.Acked += b.rate * after.Milliseconds()
	return b.handle(pathmgr.Event{Kind: pathmgr.Tick})
}

// Of four subflows on two links the faster one of each link is kept once the
// connection is no longer young, 64 round trips; the others stand by for two
// seconds and are closed.
func TestEliminationByKnownPaths(t *testing.T) {
	b := newEliminated(pathmgr.Elimination{PathOf: func(local, _ netip.AddrPort) string {
		return []string{"x", "y"}[local.Port()%2]
	}}, 5, 2, 1, 4)
	shared := pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: []int{0, 3}}
	require.Empty(t, b.handle(shared), "what is known goes before what is found out")
	require.Equal(t, "wake:64ms", b.handle(pathmgr.Event{Kind: pathmgr.SubflowUp}))
	require.Equal(t, "backup:2:true heir:0 backup:1:true heir:3 wake:2s", b.tick(64*time.Millisecond))
	require.Equal(t, "", b.handle(pathmgr.Event{Kind: pathmgr.SubflowUp}), "once")
	b.view.Subflows[0].Rate, b.view.Subflows[3].Rate = 6, 6
	require.Equal(t, "close:2:true close:1:true", b.tick(2*time.Second))
}

// A young connection keeps four of six, and gives up those of the fullest link
// first.
func TestEliminationSparesTheYoung(t *testing.T) {
	b := newEliminated(pathmgr.Elimination{PathOf: func(local, _ netip.AddrPort) string {
		return []string{"x", "x", "y", "x", "y", "x"}[local.Port()-1000]
	}}, 6, 5, 1, 4, 2, 3)
	require.Equal(t, "backup:5:true heir:0 backup:3:true heir:0 wake:64ms", b.handle(pathmgr.Event{Kind: pathmgr.SubflowUp}))
	require.Equal(t, "backup:1:true heir:0 backup:2:true heir:4 wake:1.936s", b.tick(64*time.Millisecond))
}

// What the congestion control found out: the slowest of a group first, and the
// next when the connection carries no less over the 64 round trips after than
// over those before. Equals by rate are told by round trip, then by age.
func TestEliminationByVerdict(t *testing.T) {
	b := newEliminated(pathmgr.Elimination{}, 3, 3, 3, 9)
	b.view.Subflows[2].SRTT = time.Microsecond
	shared := pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: []int{0, 1, 2}}
	require.Equal(t, "wake:64ms", b.handle(shared))
	require.Equal(t, "backup:1:true wake:64ms", b.tick(64*time.Millisecond))
	require.Empty(t, b.handle(shared), "watched")
	b.rate = 901
	require.Equal(t, "backup:0:true wake:64ms", b.tick(64*time.Millisecond))
	b.rate = 812
	require.Equal(t, "wake:1.872s", b.tick(64*time.Millisecond), "one is left")
	require.Equal(t, "close:1:true wake:64ms", b.tick(1872*time.Millisecond))
	require.Equal(t, "close:0:true", b.tick(64*time.Millisecond))
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: []int{3}}), "never the last one")
}

// If the connection carries a tenth less without it a subflow comes back, and
// is left alone.
func TestEliminationIsUndone(t *testing.T) {
	b := newEliminated(pathmgr.Elimination{}, 5, 5)
	shared := pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: []int{0, 1}}
	require.Equal(t, "wake:64ms", b.handle(shared))
	require.Equal(t, "backup:1:true wake:64ms", b.tick(64*time.Millisecond))
	b.rate = 899
	require.Equal(t, "backup:1:false", b.tick(64*time.Millisecond))
	require.Empty(t, b.handle(shared))
}

// A pair of addresses rests for 30 s.
func TestEliminationRests(t *testing.T) {
	b := newEliminated(pathmgr.Elimination{Open: pathmgr.NDiffPorts(2), OpenAlways: true}, 5, 5)
	b.handle(pathmgr.Event{Kind: pathmgr.SharedBottleneck, Group: []int{0, 1}})
	for range 2 {
		b.tick(100 * time.Millisecond)
	}
	require.Equal(t, "close:1:true", b.tick(2*time.Second))
	b.view.Subflows = b.view.Subflows[:1]
	lost := pathmgr.Event{Kind: pathmgr.LocalAddrUp, Local: b.view.Locals[0].Addr}
	b.now += 29 * time.Second
	require.NotContains(t, b.handle(lost), "open")
	b.now += 2 * time.Second
	require.Contains(t, b.handle(lost), "open")
}

// Short flows keep their one subflow; long ones get more as soon as they are
// known to be long.
func TestEliminationOpensForLongFlows(t *testing.T) {
	open := func(size, written int64, always bool) string {
		e := pathmgr.Elimination{Open: pathmgr.NDiffPorts(4), OpenAlways: always}
		b := &eliminated{policy: e.Factory()(), now: time.Second}
		b.view = newEliminated(pathmgr.Elimination{}, 1).view
		b.view.Size, b.view.Written = size, written
		return b.handle(pathmgr.Event{Kind: pathmgr.Established})
	}
	require.Equal(t, "wake:10ms", open(50_000, 50_000, false))
	require.Equal(t, "open open open", open(50_000, 50_000, true))
	require.Equal(t, "open open open", open(100_000, 0, false))
	require.Equal(t, "wake:10ms", open(0, 99_999, false))

	b := newEliminated(pathmgr.Elimination{Open: pathmgr.NDiffPorts(4)}, 1)
	require.Equal(t, "wake:10ms", b.tick(10*time.Millisecond))
	b.view.Written = 100_000
	require.Equal(t, "open open open", b.tick(10*time.Millisecond))
}
