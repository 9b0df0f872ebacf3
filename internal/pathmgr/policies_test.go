package pathmgr_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

var (
	gone   = pathmgr.Event{Close: reason.CloseAddressGone}
	byPeer = pathmgr.Event{Close: reason.CloseRemoteReset, Reset: reason.ResetPerformance}
)

// Both sides announce what they have besides the first address; only the side
// that opened the connection opens, and only to what was announced, once each.
func TestSignal(t *testing.T) {
	b := newBenchOf(t, "signal", true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	require.Equal(t, "announce:10.0.0.2 announce:10.0.0.3", b.established())
	require.Equal(t, "open:10.0.0.1-"+r2, b.announced(1, r2))
	require.Equal(t, "open:10.0.0.1-"+r3, b.announced(2, r3))
	require.Empty(t, b.announced(2, r3), "announced again")
	require.Equal(t, "announce:10.0.0.4", b.localUp("10.0.0.4"), "a new address opens nothing")
	require.Empty(t, b.up(1))

	b = newBenchOf(t, "signal", false, "10.0.0.1 10.0.0.2", r1)
	require.Equal(t, "announce:10.0.0.2", b.established())
	require.Empty(t, b.announced(1, r2), "the passive side opens nothing")
}

func TestSignalChoosesALocalAddressThatCanReach(t *testing.T) {
	b := newBenchOf(t, "signal", true, "10.0.0.1 2001:db8::1 10.0.0.2", r1)
	b.view.Routable = func(l, r netip.Addr) bool {
		return r != netip.MustParseAddrPort(r2).Addr() || l == netip.MustParseAddr("10.0.0.2")
	}
	b.established()
	require.Equal(t, "open:10.0.0.2-"+r2, b.announced(1, r2))
	require.Equal(t, "open:2001:db8::1-[2001:db8::2]:80", b.announced(2, "[2001:db8::2]:80"))
	require.Equal(t, "open:10.0.0.1-"+r3, b.announced(3, r3))
}

func TestSignalKeepsTheLimit(t *testing.T) {
	b := newBenchOf(t, "signal", true, "10.0.0.1", r1)
	b.view.Limits.Subflows = 2
	b.established()
	require.Equal(t, "open:10.0.0.1-"+r2, b.announced(1, r2))
	require.Equal(t, "withhold:10.0.0.1-"+r3, b.announced(2, r3))
	require.Equal(t, "open:10.0.0.1-"+r3+" wake:1s", b.lost(1, timedOut), "in the place of the other")
}

// Break before make: with no subflow left, any address will do.
func TestSignalComesBackFromNothing(t *testing.T) {
	b := newBenchOf(t, "signal", true, "10.0.0.1", r1)
	require.Empty(t, b.established())
	require.Equal(t, "close:0 withdraw:10.0.0.1", b.localDown("10.0.0.1"))
	require.Empty(t, b.lost(0, gone))
	require.Equal(t, "announce:10.0.0.2 open:10.0.0.2-"+r1, b.localUp("10.0.0.2"))
}

func TestNDiffPorts(t *testing.T) {
	b := newBenchOf(t, "ndiffports", true, "10.0.0.1 10.0.0.2", r1+" "+r2)
	require.Equal(t, "open:10.0.0.1-"+r1, b.established(), "two in all")
	require.Empty(t, b.up(1))
	require.Empty(t, b.localUp("10.0.0.3"))
	require.Empty(t, b.announced(2, r3))

	open := "open:10.0.0.1-" + r1
	b = newBenchWith(t, pathmgr.NDiffPorts(4), true, "10.0.0.1", r1)
	require.Equal(t, strings.Join([]string{open, open, open}, " "), b.established())
	require.Equal(t, "wake:1s", b.lost(2, timedOut))
	require.Empty(t, b.lost(3, timedOut), "the same trouble: no longer wait")
	require.Equal(t, open+" "+open, b.tick())

	b = newBenchWith(t, pathmgr.NDiffPorts(100), true, "10.0.0.1", r1)
	require.True(t, strings.HasSuffix(b.established(), " withhold:10.0.0.1-"+r1))
	require.Len(t, b.view.Subflows, pathmgr.DefaultSubflows)

	b = newBenchOf(t, "ndiffports", false, "10.0.0.1 10.0.0.2", r1)
	require.Empty(t, b.established())
}

// What the peer does not want is not tried again and again.
func TestNDiffPortsGivesUp(t *testing.T) {
	b := newBenchOf(t, "ndiffports", true, "10.0.0.1", r1)
	b.established()
	require.Empty(t, b.lost(1, byPeer))
	require.Empty(t, b.handle(pathmgr.Event{Kind: pathmgr.Tick}))
}

// When the address of the pair goes away the subflows move to another, and
// stay there.
func TestNDiffPortsMoves(t *testing.T) {
	b := newBenchWith(t, pathmgr.NDiffPorts(3), true, "10.0.0.1 10.0.0.2", r1)
	b.established()
	require.Equal(t, "close:0 close:1 close:2 withdraw:10.0.0.1", b.localDown("10.0.0.1"))
	moved := "open:10.0.0.2-" + r1
	require.Equal(t, strings.Join([]string{moved, moved, moved}, " "), b.lost(0, gone)+b.lost(1, gone)+b.lost(2, gone))
	require.Empty(t, b.localUp("10.0.0.1"))
	require.Len(t, b.view.Subflows, 3)
}

func TestBackupOpensTheOthersAsBackup(t *testing.T) {
	b := newBenchOf(t, "backup", true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	require.Equal(t, "open:10.0.0.2-"+r1+"(backup) open:10.0.0.3-"+r1+"(backup)", b.established())
	require.Empty(t, b.up(1))
	require.Empty(t, b.up(2))
}

// The regular subflow is lost and comes back; a backup stands in meanwhile.
func TestBackupPromotesAndGivesBack(t *testing.T) {
	b := newBenchOf(t, "backup", true, "10.0.0.1 10.0.0.2 10.0.0.3", r1)
	b.established()
	b.up(1)
	b.up(2)
	require.Equal(t, "regular:1 wake:1s", b.lost(0, timedOut))
	require.Equal(t, "open:10.0.0.1-"+r1+"(backup)", b.tick())
	require.Equal(t, "regular:3 backup:1", b.up(3))
}

func TestBackupWhenAnAddressFlaps(t *testing.T) {
	b := newBenchOf(t, "backup", true, "10.0.0.1 10.0.0.2", r1)
	b.established()
	b.up(1)
	require.Equal(t, "close:0 withdraw:10.0.0.1 regular:1", b.localDown("10.0.0.1"))
	require.Empty(t, b.lost(0, gone))
	require.Equal(t, "open:10.0.0.1-"+r1+"(backup)", b.localUp("10.0.0.1"))
	require.Equal(t, "regular:2 backup:1", b.up(2), "the pair that the connection began with")
}

// A link that is meant for backup carries the connection only until another
// can, even if the connection began there.
func TestBackupLeavesABackupLink(t *testing.T) {
	b := newBenchOf(t, "backup", true, "10.0.0.1 10.0.0.2", r1)
	b.view.Locals[0].Backup = true
	require.Equal(t, "open:10.0.0.2-"+r1+"(backup)", b.established())
	require.Equal(t, "regular:1 backup:0", b.up(1))
}

// Break before make: the first to come is regular at once.
func TestBackupComesBackFromNothing(t *testing.T) {
	b := newBenchOf(t, "backup", true, "10.0.0.1", r1)
	b.established()
	require.Equal(t, "close:0 withdraw:10.0.0.1", b.localDown("10.0.0.1"))
	require.Empty(t, b.lost(0, gone))
	require.Equal(t, "open:10.0.0.2-"+r1, b.localUp("10.0.0.2"))
	require.Equal(t, "", b.up(1))
}

// The passive side asks by MP_PRIO, and announces like any other.
func TestBackupOnThePassiveSide(t *testing.T) {
	b := newBenchOf(t, "backup", false, "10.0.0.1 10.0.0.2", r1)
	require.Equal(t, "announce:10.0.0.2", b.established())
	b.view.Subflows = append(b.view.Subflows, pathmgr.Subflow{
		ID: 1, Local: netip.MustParseAddrPort("10.0.0.2:80"), Remote: netip.MustParseAddrPort(r2),
	})
	require.Equal(t, "backup:1", b.up(1))
	require.Equal(t, "regular:1", b.lost(0, timedOut))
}

// Every policy survives the loss of all its subflows: a new address brings
// the connection back, and an old one that failed is tried again in time.
func TestEveryPolicyMakesAfterABreak(t *testing.T) {
	for _, name := range pathmgr.Names() {
		b := newBenchOf(t, name, true, "10.0.0.1", r1)
		b.established()
		for len(b.view.Subflows) > 0 {
			b.lost(b.view.Subflows[0].ID, timedOut)
		}
		require.Contains(t, b.tick(), "open:10.0.0.1-"+r1, name)
		b.localDown("10.0.0.1")
		for len(b.view.Subflows) > 0 {
			b.lost(b.view.Subflows[0].ID, gone)
		}
		require.Contains(t, b.localUp("10.0.0.9"), "open:10.0.0.9-"+r1, name)
	}
}

// Behind a NAT the host's own addresses mean nothing to the peer: the list is
// announced in their place, each once.
func TestAnnouncing(t *testing.T) {
	f, err := pathmgr.ByName("fullmesh")
	require.NoError(t, err)
	list := []netip.AddrPort{
		netip.MustParseAddrPort("203.0.113.1:0"),
		netip.MustParseAddrPort("203.0.113.2:8443"),
		netip.MustParseAddrPort("127.0.0.1:80"),
	}
	f = pathmgr.Announcing(f, list)
	list[0] = netip.AddrPort{} // the policy has its own copy
	b := newBenchWith(t, f, false, "10.0.0.1 10.0.0.2", r1)
	require.Equal(t, "announce:203.0.113.1 announce:203.0.113.2:8443", b.established())
	require.Empty(t, b.localUp("10.0.0.3"))
	require.Empty(t, b.established(), "once")
	require.Equal(t, "close:0 withdraw:10.0.0.1", b.localDown("10.0.0.1"))

	b = newBenchWith(t, f, true, "10.0.0.1 10.0.0.2", r1)
	require.Equal(t, "open:10.0.0.2-"+r1+" announce:203.0.113.1 announce:203.0.113.2:8443", b.established(), "what it opens is the inner policy's business")

	b = newBenchWith(t, f, false, "10.0.0.1", r1)
	b.view.Limits.Accepted = 1
	require.Equal(t, "announce:203.0.113.1", b.established())
}
