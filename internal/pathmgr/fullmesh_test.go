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

// bench is a connection as the driver would show it to a policy: commands are
// obeyed at once, subflows opened stay pending until up or lost is called.
type bench struct {
	t      *testing.T
	policy pathmgr.Policy
	view   pathmgr.View
	nextID int
	wake   time.Duration // of the last Wake
	now    time.Duration
}

func newBench(t *testing.T, active bool, locals, remotes string) *bench {
	t.Helper()
	return newBenchOf(t, "fullmesh", active, locals, remotes)
}

func newBenchOf(t *testing.T, policy string, active bool, locals, remotes string) *bench {
	t.Helper()
	f, err := pathmgr.ByName(policy)
	require.NoError(t, err)
	return newBenchWith(t, f, active, locals, remotes)
}

func newBenchWith(t *testing.T, f pathmgr.Factory, active bool, locals, remotes string) *bench {
	t.Helper()
	b := &bench{t: t, policy: f(), now: time.Second, nextID: 1}
	b.view = pathmgr.View{Active: active, Routable: func(_, _ netip.Addr) bool { return true }}
	for _, s := range strings.Fields(locals) {
		b.view.Locals = append(b.view.Locals, pathmgr.Local{Addr: netip.MustParseAddr(s)})
	}
	for i, s := range strings.Fields(remotes) {
		b.view.Remotes = append(b.view.Remotes, pathmgr.Remote{ID: uint8(i), Addr: netip.MustParseAddrPort(s)})
	}
	if len(b.view.Locals) > 0 && len(b.view.Remotes) > 0 {
		b.view.Subflows = []pathmgr.Subflow{{
			Local:  netip.AddrPortFrom(b.view.Locals[0].Addr, 40000),
			Remote: b.view.Remotes[0].Addr, Established: true,
		}}
	}
	return b
}

// handle gives the policy an event, obeys its commands and returns them, one
// word each.
func (b *bench) handle(e pathmgr.Event) string {
	b.t.Helper()
	e.Now = b.now
	var words []string
	for _, c := range b.policy.Handle(&b.view, e, nil) {
		words = append(words, b.obey(c))
	}
	return strings.Join(words, " ")
}

func (b *bench) obey(c pathmgr.Command) string {
	switch c.Verb {
	case pathmgr.OpenSubflow:
		require.Zero(b.t, c.Local.Port())
		b.view.Subflows = append(b.view.Subflows, pathmgr.Subflow{
			ID: b.nextID, Local: netip.AddrPortFrom(c.Local.Addr(), uint16(41000+b.nextID)),
			Remote: c.Remote, RemoteID: c.RemoteID, Backup: c.Backup,
		})
		b.nextID++
		suffix := ""
		if c.Backup {
			suffix = "(backup)"
		}
		return fmt.Sprintf("open:%v-%v%s", c.Local.Addr(), c.Remote, suffix)
	case pathmgr.CloseSubflow:
		return fmt.Sprintf("close:%d", c.Subflow)
	case pathmgr.AnnounceAddr:
		if c.Local.Port() != 0 {
			return fmt.Sprintf("announce:%v", c.Local)
		}
		return fmt.Sprintf("announce:%v", c.Local.Addr())
	case pathmgr.Withhold:
		if !c.Remote.IsValid() {
			return fmt.Sprintf("withhold:%v", c.Local.Addr())
		}
		return fmt.Sprintf("withhold:%v-%v", c.Local.Addr(), c.Remote)
	case pathmgr.WithdrawAddr:
		return fmt.Sprintf("withdraw:%v", c.Local.Addr())
	case pathmgr.SetBackup:
		for i := range b.view.Subflows {
			if s := &b.view.Subflows[i]; s.ID == c.Subflow {
				s.Backup = c.Backup
			}
		}
		if c.Backup {
			return fmt.Sprintf("backup:%d", c.Subflow)
		}
		return fmt.Sprintf("regular:%d", c.Subflow)
	case pathmgr.Wake:
		b.wake = c.At
		return fmt.Sprintf("wake:%v", c.At-b.now)
	}
	return fmt.Sprintf("verb(%d)", c.Verb)
}

func (b *bench) established() string { return b.handle(pathmgr.Event{Kind: pathmgr.Established}) }

// of returns an event about a subflow.
func (b *bench) of(kind pathmgr.Kind, id int) pathmgr.Event {
	b.t.Helper()
	for _, s := range b.view.Subflows {
		if s.ID == id {
			return pathmgr.Event{Kind: kind, Subflow: id, Local: s.Local.Addr(), Remote: s.Remote, RemoteID: s.RemoteID}
		}
	}
	require.Fail(b.t, "no such subflow", "%d", id)
	return pathmgr.Event{}
}

// lost ends a subflow the way how says.
func (b *bench) lost(id int, how pathmgr.Event) string {
	b.t.Helper()
	e := b.of(pathmgr.SubflowLost, id)
	e.Close, e.Reset, e.Transient = how.Close, how.Reset, how.Transient
	for i, s := range b.view.Subflows {
		if s.ID == id {
			b.view.Subflows = append(b.view.Subflows[:i], b.view.Subflows[i+1:]...)
			break
		}
	}
	return b.handle(e)
}

// up establishes a subflow.
func (b *bench) up(id int) string {
	b.t.Helper()
	for i := range b.view.Subflows {
		if b.view.Subflows[i].ID == id {
			b.view.Subflows[i].Established = true
		}
	}
	return b.handle(b.of(pathmgr.SubflowUp, id))
}

// tick lets the time of the last Wake come.
func (b *bench) tick() string {
	b.now = b.wake
	return b.handle(pathmgr.Event{Kind: pathmgr.Tick})
}

func (b *bench) announced(id uint8, addr string) string {
	ap := netip.MustParseAddrPort(addr)
	b.view.Remotes = append(b.view.Remotes, pathmgr.Remote{ID: id, Addr: ap})
	return b.handle(pathmgr.Event{Kind: pathmgr.AddrAnnounced, Remote: ap, RemoteID: id})
}

func (b *bench) localDown(addr string) string {
	a := netip.MustParseAddr(addr)
	for i, l := range b.view.Locals {
		if l.Addr == a {
			b.view.Locals = append(b.view.Locals[:i], b.view.Locals[i+1:]...)
			break
		}
	}
	return b.handle(pathmgr.Event{Kind: pathmgr.LocalAddrDown, Local: a})
}

func (b *bench) localUp(addr string) string {
	a := netip.MustParseAddr(addr)
	b.view.Locals = append(b.view.Locals, pathmgr.Local{Addr: a})
	return b.handle(pathmgr.Event{Kind: pathmgr.LocalAddrUp, Local: a})
}

const (
	r1 = "198.51.100.1:80"
	r2 = "198.51.100.2:80"
	r3 = "198.51.100.3:80"
)

var timedOut = pathmgr.Event{Close: reason.CloseTimeout}

func TestNames(t *testing.T) {
	require.Equal(t, []string{"backup", "flowsize", "freeway", "fullmesh", "mptcpd", "ndiffports", "signal"}, pathmgr.Names())
	require.Contains(t, pathmgr.Names(), pathmgr.Default)
	f, err := pathmgr.ByName("")
	require.NoError(t, err)
	require.NotNil(t, f())
	_, err = pathmgr.ByName("star")
	require.EqualError(t, err, `path manager "star" is unknown (known: backup, flowsize, freeway, fullmesh, mptcpd, ndiffports, signal)`)
	for _, name := range pathmgr.Names() {
		f, err := pathmgr.ByName(name)
		require.NoError(t, err)
		require.NotNil(t, f())
	}
}

// What the active side opens as soon as joins are allowed. The first subflow
// is between the first addresses.
func TestOpenOnEstablished(t *testing.T) {
	tests := []struct {
		why, locals, remotes string
		change               func(*pathmgr.View)
		want                 string
	}{
		{"one pair", "10.0.0.1", r1, nil, ""},
		{"a second local address", "10.0.0.1 10.0.0.2", r1, nil, "open:10.0.0.2-" + r1},
		{
			"unused addresses first", "10.0.0.1 10.0.0.2", r1 + " " + r2, nil,
			"open:10.0.0.2-" + r2 + " open:10.0.0.1-" + r2 + " open:10.0.0.2-" + r1,
		},
		{"another port of an address is another remote", "10.0.0.1", r1 + " 198.51.100.1:81", nil, "open:10.0.0.1-198.51.100.1:81"},
		{"families do not mix", "10.0.0.1 2001:db8::1", r1 + " [2001:db8::2]:80", nil, "open:2001:db8::1-[2001:db8::2]:80"},
		{"mapped addresses are of their own family", "10.0.0.1 ::ffff:10.0.0.2", r1, nil, "open:10.0.0.2-" + r1},
		{"listed twice, opened once", "10.0.0.1 10.0.0.2 10.0.0.2", r1, nil, "open:10.0.0.2-" + r1},
		{"what has no route", "10.0.0.1 10.0.0.2 10.0.0.3", r1, func(v *pathmgr.View) {
			v.Routable = func(l, _ netip.Addr) bool { return l != netip.MustParseAddr("10.0.0.2") }
		}, "open:10.0.0.3-" + r1},
		{"what cannot be a peer", "10.0.0.1", r1 + " 0.0.0.0:80 224.0.0.1:80 198.51.100.2:0", nil, ""},
		{"backup links", "10.0.0.1 10.0.0.2", r1, func(v *pathmgr.View) { v.Locals[1].Backup = true }, "open:10.0.0.2-" + r1 + "(backup)"},
		{"the limit counts the first", "10.0.0.1 10.0.0.2 10.0.0.3", r1, func(v *pathmgr.View) { v.Limits.Subflows = 2 }, "open:10.0.0.2-" + r1 + " withhold:10.0.0.3-" + r1},
		{"a limit of one", "10.0.0.1 10.0.0.2", r1, func(v *pathmgr.View) { v.Limits.Subflows = 1 }, "withhold:10.0.0.2-" + r1},
		{"the initial address denied", "10.0.0.1 10.0.0.2", r1, func(v *pathmgr.View) { v.Remotes = nil }, ""},
	}
	for _, tt := range tests {
		b := newBench(t, true, tt.locals, tt.remotes)
		if tt.change != nil {
			tt.change(&b.view)
		}
		require.Equal(t, tt.want, b.established(), tt.why)
		require.NotContains(t, b.handle(pathmgr.Event{Kind: pathmgr.Tick}), "open", "%s: nothing twice", tt.why)
	}
}

// Three addresses on each side: with the limit raised all nine pairs are
// tried, each once; by default eight are used, and every address at least
// twice.
func TestFullMeshThreeByThree(t *testing.T) {
	const locals = "10.0.0.1 10.0.0.2 10.0.0.3"
	b := newBench(t, true, locals, strings.Join([]string{r1, r2, r3}, " "))
	b.view.Limits.Subflows = 100
	b.established()
	pairs := map[string]int{}
	for _, s := range b.view.Subflows {
		pairs[s.Local.Addr().String()+"-"+s.Remote.String()]++
	}
	require.Len(t, pairs, 9)
	require.Len(t, b.view.Subflows, 9)

	b = newBench(t, true, locals, strings.Join([]string{r1, r2, r3}, " "))
	b.established()
	uses := map[string]int{}
	for _, s := range b.view.Subflows {
		uses[s.Local.Addr().String()]++
		uses[s.Remote.String()]++
	}
	require.Len(t, b.view.Subflows, pathmgr.DefaultSubflows)
	for a, n := range uses {
		require.GreaterOrEqual(t, n, 2, a)
	}
}

// Nothing may be opened before joins are allowed.
func TestNothingBeforeEstablished(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2", r1)
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.ChooseInitial}))
	require.Empty(t, b.localUp("10.0.0.3"))
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.SubflowUp}))
	require.Equal(t, "open:10.0.0.2-"+r1+" open:10.0.0.3-"+r1, b.established())
}

func TestOpenOnNewAddresses(t *testing.T) {
	b := newBench(t, true, "10.0.0.1", r1)
	require.Empty(t, b.established())
	require.Equal(t, "open:10.0.0.1-"+r2, b.announced(1, r2))
	require.Equal(t, "open:10.0.0.2-"+r1+" open:10.0.0.2-"+r2, b.localUp("10.0.0.2"))
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.AddrAnnounced, Remote: netip.MustParseAddrPort(r2), RemoteID: 1}), "a repeated announcement")
}

// What becomes of a pair after each way for a subflow to end.
func TestReopenAfterLoss(t *testing.T) {
	tests := []struct {
		how   pathmgr.Event
		again bool
	}{
		{pathmgr.Event{Close: reason.CloseTimeout}, true},
		{pathmgr.Event{Close: reason.CloseKeepalive}, true},
		{pathmgr.Event{Close: reason.CloseUnreachable}, true},
		{pathmgr.Event{Close: reason.CloseAddressGone}, true},
		{pathmgr.Event{Close: reason.CloseRemoteReset, Transient: true}, true},
		{pathmgr.Event{Close: reason.CloseRefused, Reset: reason.ResetResources, Transient: true}, true},
		{pathmgr.Event{Close: reason.CloseRemoteReset}, false},
		{pathmgr.Event{Close: reason.CloseRemoteReset, Reset: reason.ResetProhibited}, false},
		{pathmgr.Event{Close: reason.CloseRefused}, false},
		{pathmgr.Event{Close: reason.CloseRefused, Transient: true}, false},
		{pathmgr.Event{Close: reason.CloseHandshake}, false},
		{pathmgr.Event{Close: reason.CloseLocalReset}, false},
		{pathmgr.Event{Close: reason.CloseDone}, false},
		{pathmgr.Event{Close: reason.CloseCommand}, false},
	}
	for _, tt := range tests {
		b := newBench(t, true, "10.0.0.1 10.0.0.2", r1)
		b.established()
		want := ""
		if tt.again {
			want = "wake:1s"
		}
		require.Equal(t, want, b.lost(1, tt.how), "%+v", tt.how)
		b.now += 999 * time.Millisecond
		require.NotContains(t, b.handle(pathmgr.Event{Kind: pathmgr.Tick}), "open", "%+v: not early", tt.how)
		b.now += time.Millisecond
		want = ""
		if tt.again {
			want = "open:10.0.0.2-" + r1
		}
		require.Equal(t, want, b.handle(pathmgr.Event{Kind: pathmgr.Tick}), "%+v", tt.how)
	}
}

// RFC 8684, Section 3.9.3: after a failed MP_JOIN no other address of ours
// tries that address and port "unless the other host refreshes the
// information with another ADD_ADDR option".
func TestRefresh(t *testing.T) {
	refused := pathmgr.Event{Close: reason.CloseRefused}
	reset := pathmgr.Event{Close: reason.CloseRemoteReset, Reset: reason.ResetPerformance}

	b := newBench(t, true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	b.view.Limits.Subflows = 2
	stopped := " withhold:10.0.0.3-" + r1
	require.Equal(t, "open:10.0.0.2-"+r1+stopped, b.established())
	require.Empty(t, b.lost(1, refused), "the third local address does not try")
	require.Equal(t, "open:10.0.0.2-"+r1+stopped, b.announced(0, r1))
	require.Equal(t, "open:10.0.0.3-"+r1, b.lost(2, reset), "a reset bars its pair only")
	require.Equal(t, "", b.lost(3, reset))
	require.Equal(t, "open:10.0.0.2-"+r1+stopped, b.announced(0, r1))
}

func TestBackoff(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2", r1)
	b.established()
	id := 1
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		require.Equal(t, fmt.Sprintf("wake:%v", want*time.Second), b.lost(id, timedOut))
		require.Equal(t, "open:10.0.0.2-"+r1, b.tick())
		id++
	}
	require.Empty(t, b.handle(b.of(pathmgr.SubflowUp, id)))
	require.Equal(t, "wake:1s", b.lost(id, timedOut), "established in between")
}

// Two pairs fail one after the other: one Tick each, none lost.
func TestTwoRetries(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	b.established()
	require.Equal(t, "wake:1s", b.lost(1, timedOut))
	b.now += 400 * time.Millisecond
	require.Empty(t, b.lost(2, timedOut), "an earlier Tick is on its way")
	require.Equal(t, "open:10.0.0.2-"+r1+" wake:400ms", b.tick())
	require.Equal(t, "open:10.0.0.3-"+r1, b.tick())
}

// Under the limit, what was left out takes the place of what ended.
func TestLossMakesPlace(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	b.view.Limits.Subflows = 2
	require.Equal(t, "open:10.0.0.2-"+r1+" withhold:10.0.0.3-"+r1, b.established())
	require.Equal(t, "open:10.0.0.3-"+r1+" wake:1s", b.lost(1, timedOut))
	require.Equal(t, "withhold:10.0.0.2-"+r1, b.tick(), "no place")
}

// The address of a path goes and comes back; the rest of the mesh stays.
func TestLocalAddressFlaps(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2", r1+" "+r2)
	b.established()
	require.Equal(t, "close:1 close:3 withdraw:10.0.0.2", b.localDown("10.0.0.2"))
	gone := pathmgr.Event{Close: reason.CloseAddressGone}
	require.Empty(t, b.lost(1, gone))
	require.Empty(t, b.lost(3, gone))
	require.Equal(t, "open:10.0.0.2-"+r1+" open:10.0.0.2-"+r2, b.localUp("10.0.0.2"))
}

// Losing every subflow at once and getting one address back is survived, even
// when the peer had refused a join to the only address that is known.
func TestAllAddressesFlap(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2", r1)
	b.established()
	require.Empty(t, b.lost(1, pathmgr.Event{Close: reason.CloseRefused}))
	require.Equal(t, "close:0 withdraw:10.0.0.1", b.localDown("10.0.0.1"))
	b.lost(0, pathmgr.Event{Close: reason.CloseAddressGone})
	require.Equal(t, "open:10.0.0.2-"+r1+" open:10.0.0.1-"+r1, b.localUp("10.0.0.1"))
}

func TestWithdrawnAddressIsForgotten(t *testing.T) {
	b := newBench(t, true, "10.0.0.1", r1+" "+r2)
	b.established()
	require.Equal(t, "wake:1s", b.lost(1, timedOut))
	b.view.Remotes = b.view.Remotes[:1]
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.AddrWithdrawn, RemoteID: 1}))
	require.Empty(t, b.tick())
}

// The passive side announces and never opens, whatever happens.
func TestPassiveAnnounces(t *testing.T) {
	b := newBench(t, false, "10.0.0.1 10.0.0.2 2001:db8::1 127.0.0.1 fe80::1", r1)
	require.Equal(t, "announce:10.0.0.2 announce:2001:db8::1", b.established())
	require.Equal(t, "announce:10.0.0.3", b.localUp("10.0.0.3"))
	require.Empty(t, b.announced(1, r2))
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.Tick}))
	require.Equal(t, "withdraw:10.0.0.2", b.localDown("10.0.0.2"))
	require.Equal(t, "announce:10.0.0.2", b.localUp("10.0.0.2"), "again")
	require.Equal(t, "close:0 withdraw:10.0.0.1", b.localDown("10.0.0.1"))
	require.Empty(t, b.lost(0, pathmgr.Event{Close: reason.CloseAddressGone}))
	require.Equal(t, "announce:10.0.0.1", b.localUp("10.0.0.1"), "the first address is no longer known to the peer")
}

func TestAnnouncementsAreBounded(t *testing.T) {
	b := newBench(t, false, "10.0.0.1", r1)
	for i := range 50 {
		b.view.Locals = append(b.view.Locals, pathmgr.Local{Addr: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})})
	}
	cmds := strings.Fields(b.established())
	require.Len(t, cmds, pathmgr.DefaultAccepted+1)
	require.Equal(t, "withhold:10.0.1.8", cmds[pathmgr.DefaultAccepted], "the first that the limit stops is told")
}

// A peer that announces, refuses and withdraws without end costs no more
// commands than the limits allow.
func TestCommandsAreBounded(t *testing.T) {
	b := newBench(t, true, "10.0.0.1 10.0.0.2", r1)
	b.established()
	for i := range 1000 {
		b.now += 10 * time.Millisecond
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 80)
		require.LessOrEqual(t, len(strings.Fields(b.announced(uint8(i), addr.String()))), pathmgr.DefaultSubflows+1)
		require.LessOrEqual(t, len(b.view.Subflows), pathmgr.DefaultSubflows)
		if len(b.view.Subflows) > 1 {
			how := pathmgr.Event{Close: reason.Close(i % int(reason.NumCloses))}
			b.lost(b.view.Subflows[1].ID, how)
		}
		if len(b.view.Remotes) > pathmgr.DefaultAccepted {
			b.view.Remotes = b.view.Remotes[1:]
		}
	}
}
