package mpconn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// inject puts options, in place of others, on the next segment without payload
// that b sends on path 0, and has it send one.
func (l *lab) inject(put func(seg *wire.Segment)) {
	l.t.Helper()
	done := false
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.b && seg.PayloadLen() == 0 && !done {
			done = true
			seg.Has &^= wire.OptMPTCP &^ wire.OptDSS
			put(seg)
		}
		return true
	}
	l.a.write(1)
	l.run("injection", 10*time.Second, func() bool { l.b.readAll(); return done })
	l.idle(100 * time.Millisecond)
	l.paths[0].box = nil
}

// addAddr has b say that it is reached at an address, with a valid HMAC.
func (l *lab) addAddr(id uint8, ap netip.AddrPort) {
	l.t.Helper()
	l.inject(func(seg *wire.Segment) {
		seg.Has |= wire.OptAddAddr
		seg.AddAddr = wire.AddAddr{
			ID: id, Addr: ap.Addr(), Port: ap.Port(), HMAC: key.AddAddrHMAC(keyB, keyA, id, ap.Addr(), ap.Port()),
		}
	})
}

func (l *lab) removeAddr(ids ...uint8) {
	l.t.Helper()
	l.inject(func(seg *wire.Segment) {
		seg.Has |= wire.OptRemoveAddr
		seg.RemoveAddr.N = uint8(copy(seg.RemoveAddr.IDs[:], ids))
	})
}

// announced returns the addresses of the events of a kind.
func (e *end) announced(k EventKind) []string {
	var out []string
	for _, ev := range e.events {
		if ev.Kind == k {
			out = append(out, ev.Remote.String())
		}
	}
	return out
}

func proven(t testing.TB, paths int) *lab {
	l := newLab(t, 1, paths)
	l.connect()
	l.prove()
	return l
}

// RFC 8684, Section 3.4.1: an advertisement is soft state: repeated, it is
// echoed again; with another port it names another place; another address under
// the id needs a REMOVE_ADDR first.
func TestAddAddrRepeatedAndChanged(t *testing.T) {
	l := proven(t, 2)
	first, port := netip.MustParseAddrPort("10.0.1.2:6000"), netip.MustParseAddrPort("10.0.1.2:6001")
	other := netip.MustParseAddrPort("10.0.3.2:6000")
	echoes := func() int { return len(l.a.carrying(wire.OptAddAddr)) }

	l.addAddr(2, first)
	l.addAddr(2, first)
	require.Equal(t, 2, echoes())
	require.Equal(t, []string{first.String()}, l.a.announced(EventAddrAnnounced))
	require.Equal(t, []string{first.String()}, l.a.announced(EventAddrRefreshed))

	l.addAddr(2, port)
	require.Equal(t, 3, echoes())
	require.Equal(t, []string{first.String(), port.String()}, l.a.announced(EventAddrAnnounced))

	l.addAddr(2, other)
	require.Equal(t, 3, echoes(), "the id belongs to another address")
	require.Len(t, l.a.announced(EventAddrAnnounced), 2)
	require.NotZero(t, l.a.conn.Info().Stats.Drops[reason.DropAddress])

	l.removeAddr(2)
	require.Equal(t, 1, l.a.count(EventAddrWithdrawn))
	l.addAddr(2, other)
	require.Equal(t, 4, echoes())
	require.Equal(t, other.String(), l.a.announced(EventAddrAnnounced)[2])
}

// Announced addresses that cannot be a peer's are refused and counted.
func TestAddAddrRefused(t *testing.T) {
	l := proven(t, 2)
	own := netip.MustParseAddr("10.9.9.9")
	l.a.conn.cfg.OwnAddr = func(a netip.Addr) bool { return a == own }
	bad := []string{"0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255", "10.0.0.1", "10.9.9.9", "::", "::1", "ff02::1", "::ffff:10.0.1.2"}
	for i, s := range bad {
		l.addAddr(uint8(i+1), netip.AddrPortFrom(netip.MustParseAddr(s), 0))
		require.EqualValues(t, i+1, l.a.conn.Info().Stats.Drops[reason.DropAddress], s)
	}
	require.Empty(t, l.a.announced(EventAddrAnnounced))
	require.Empty(t, l.a.carrying(wire.OptAddAddr))
}

// RFC 8684, Section 5: an announcer cannot have us send SYNs to many third
// parties: new addresses are bounded in number, and in rate though old ones are
// removed.
func TestAddAddrBounded(t *testing.T) {
	l := proven(t, 1)
	l.a.conn.cfg.MaxRemotes = 8
	for i := range 20 {
		l.addAddr(uint8(i+1), netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 0))
	}
	require.Len(t, l.a.announced(EventAddrAnnounced), 8)

	l = proven(t, 1)
	start := l.now
	for i := range 60 {
		l.addAddr(1, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 0))
		l.removeAddr(1)
	}
	n := len(l.a.announced(EventAddrAnnounced))
	require.LessOrEqual(t, n, newAddrBurst+1+int(l.now.Sub(start)/newAddrInterval))
	require.GreaterOrEqual(t, n, newAddrBurst)
}

// RFC 8684, Section 3.4: the peer's join and its ADD_ADDR of the same id are one
// address.
func TestAddAddrAfterJoin(t *testing.T) {
	l := proven(t, 2)
	id, ok := l.b.conn.Open(l.now, OpenArgs{Local: l.b.at(1), Remote: l.a.at(1)})
	require.True(t, ok)
	l.b.pump()
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	require.Equal(t, 1, id)
	l.b.conn.Announce(l.now, l.b.at(1))
	l.b.pump()
	l.idle(5 * time.Second)
	require.Len(t, l.a.carrying(wire.OptAddAddr), 1, "echoed")
	require.Zero(t, l.a.count(EventAddrAnnounced))
}

// RFC 8684, Section 3.4.2: several ids at once, unknown ones ignored; a path
// that answers the keepalive stays but serves no new subflow; one that does not
// is reset, so is one whose id is 0.
func TestRemoveAddr(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []uint8
		dead int // path that is down; -1 = none
		want int // subflow lost
	}{
		{"alive", []uint8{9, 1}, -1, -1},
		{"dead", []uint8{9, 1, 7}, 1, 1},
		{"unknown", []uint8{9, 8}, 1, -1},
		{"alive zero", []uint8{0}, -1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := joined(t, 1)
			if tt.dead >= 0 {
				l.paths[tt.dead].down = true
			}
			known := tt.ids[len(tt.ids)-1] == 0 || len(tt.ids) > 1 && tt.ids[1] == 1
			before := len(l.a.sent)
			l.removeAddr(tt.ids...)
			l.idle(3 * time.Second)
			lost := -1
			for _, f := range l.a.conn.AppendSubflows(nil) {
				if f.Close != reason.CloseNone {
					lost = f.ID
					require.Equal(t, reason.CloseAddressGone, f.Close)
				}
			}
			require.Equal(t, tt.want, lost)
			events := 0
			if known {
				events = 1
			}
			require.Equal(t, events, l.a.count(EventAddrWithdrawn))
			require.EqualValues(t, len(tt.ids)-events, l.a.conn.Info().Stats.Drops[reason.DropAddress], "the others are counted")
			probes := 0
			for _, s := range l.a.sent[before:] {
				if s.Src == l.a.at(1) && s.Flags&wire.RST == 0 {
					probes++
				}
			}
			if tt.want == 1 {
				require.Equal(t, maxProbes, probes)
				require.Len(t, l.a.resets(1), 1)
			}
			path := 1
			if tt.ids[0] == 0 {
				path = 0
			}
			_, ok := l.a.conn.Open(l.now, OpenArgs{
				Local: netip.AddrPortFrom(addr(path, 1), 50000), Remote: l.b.at(path), RemoteID: uint8(path),
			})
			require.Equal(t, !known, ok, "the address is not used again")
			l.transfer(l.a, l.b, 200_000, time.Minute, nil)
		})
	}
}

// The first subflow, whose id 0 is withdrawn on a path that is dead, is reset;
// the option comes by the other.
func TestRemoveAddrZeroDead(t *testing.T) {
	l := joined(t, 1)
	require.True(t, l.b.conn.Withdraw(l.now, addr(0, 2)))
	l.paths[0].down = true
	l.b.pump()
	// What was sent on the dead path is lost; the next goes on the living one.
	l.idle(time.Second)
	done := false
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.b && seg.PayloadLen() == 0 && !done {
			done = true
			seg.Has |= wire.OptRemoveAddr
			seg.RemoveAddr.N, seg.RemoveAddr.IDs[0] = 1, 0
		}
		return true
	}
	l.transfer(l.a, l.b, 100_000, time.Minute, nil)
	l.run("reset", 10*time.Second, func() bool { return l.a.count(EventSubflowLost) == 1 })
	require.Equal(t, 0, l.a.conn.AppendSubflows(nil)[0].ID)
	require.Equal(t, reason.CloseAddressGone, l.a.conn.AppendSubflows(nil)[0].Close)
}

// A REMOVE_ADDR, an echo or another ADD_ADDR at any time while an ADD_ADDR is
// being repeated: it is sent no more after it was withdrawn or echoed, never
// more often than the bound, and ids stay with their addresses. The guards are
// Withdraw's deletion of the announcement and echoed's.
func TestAnnounceMeetsWithdraw(t *testing.T) {
	for at := range 70 {
		l := proven(t, 1)
		l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
			return seg.Has&wire.OptAddAddr == 0 || at%2 == 0
		}
		target := addr(5, 2)
		l.b.conn.Announce(l.now, netip.AddrPortFrom(target, 0))
		l.b.pump()
		l.idle(time.Duration(at) * 100 * time.Millisecond)
		l.b.conn.Withdraw(l.now, target)
		sent := len(l.b.carrying(wire.OptAddAddr))
		require.LessOrEqual(t, sent, maxAnnounceTry)
		if at%2 == 0 {
			require.Equal(t, 1, sent, "it was echoed")
		}
		l.b.pump()
		l.idle(30 * time.Second)
		require.Len(t, l.b.carrying(wire.OptAddAddr), sent, "after %d ms", at*100)
		require.Len(t, l.b.carrying(wire.OptRemoveAddr), 1)
		l.b.conn.Announce(l.now, netip.AddrPortFrom(target, 0))
		l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(6, 2), 0))
		l.b.pump()
		l.idle(200 * time.Millisecond)
		ids := map[netip.Addr]uint8{}
		for _, s := range l.b.carrying(wire.OptAddAddr) {
			id, known := ids[s.AddAddr.Addr]
			require.True(t, !known || id == s.AddAddr.ID)
			ids[s.AddAddr.Addr] = s.AddAddr.ID
		}
		require.NotEqual(t, ids[target], ids[addr(6, 2)])
	}
}

// Of addresses that go away one after the other the first is withdrawn at once,
// the others together, and none is announced again before: Linux loses a
// REMOVE_ADDR that comes on the heels of another.
func TestWithdrawalsAreGathered(t *testing.T) {
	l := proven(t, 1)
	for i := range 3 {
		l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(i+2, 2), 0))
		l.b.pump()
		l.idle(time.Second)
	}
	for i := range 3 {
		require.True(t, l.b.conn.Withdraw(l.now, addr(i+2, 2)))
		l.b.pump()
	}
	l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(4, 2), 0))
	l.b.pump()
	l.idle(100 * time.Millisecond)
	require.Len(t, l.b.carrying(wire.OptRemoveAddr), 1)
	require.Len(t, l.b.carrying(wire.OptAddAddr), 3)
	l.idle(time.Second)
	sent := l.b.carrying(wire.OptRemoveAddr)
	require.Equal(t, []uint8{1}, sent[0].RemoveAddr.IDs[:sent[0].RemoveAddr.N])
	require.Equal(t, []uint8{2, 3}, sent[1].RemoveAddr.IDs[:sent[1].RemoveAddr.N])
	require.Len(t, l.b.carrying(wire.OptAddAddr), 4)
	require.Equal(t, 3, l.a.count(EventAddrWithdrawn))
	require.Equal(t, 4, l.a.count(EventAddrAnnounced))
}

// RFC 8684, Section 3.4.1: no more than two duplicate ACKs in a row for
// signaling.
func TestSignalsArePaced(t *testing.T) {
	l := proven(t, 1)
	l.idle(time.Second)
	l.paths[0].box = func(from *end, _ *wire.Segment) bool { return from == l.b }
	before, start := len(l.b.sent), l.now
	signals := func() (sent []wire.Segment) {
		for _, s := range l.b.sent[before:] {
			if s.Has&(wire.OptAddAddr|wire.OptRemoveAddr|wire.OptMPPrio) != 0 {
				sent = append(sent, s)
			}
		}
		return sent
	}
	l.b.conn.Withdraw(l.now, l.b.at(0).Addr())
	l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(2, 2), 0))
	l.b.conn.SetBackup(l.now, 0, true)
	l.b.pump()
	require.Len(t, signals(), maxSignals)
	l.idle(150 * time.Millisecond)
	require.Len(t, signals(), maxSignals, "none within a retransmission timeout of %v", l.now.Sub(start))
	l.run("all", time.Second, func() bool { return len(l.b.carrying(wire.OptMPPrio)) > 0 })
}

// Linux, which can keep one announcement in mind until it looks at it, loses the
// second of two that come at once, without an echo.
func TestAnnouncementsWaitForTheEcho(t *testing.T) {
	for _, echoed := range []bool{true, false} {
		t.Run(fmt.Sprintf("echoed %v", echoed), func(t *testing.T) {
			l := proven(t, 1)
			l.idle(time.Second)
			if !echoed {
				l.paths[0].box = func(from *end, _ *wire.Segment) bool { return from == l.a }
			}
			start := l.now
			for i := range 3 {
				l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(i+2, 2), 0))
			}
			l.b.pump()
			for n := 1; n <= 3; n++ {
				require.Len(t, l.b.carrying(wire.OptAddAddr), n)
				l.run("next", time.Second, func() bool {
					return n == 3 || len(l.b.carrying(wire.OptAddAddr)) > n
				})
			}
			// A round trip each, or the gap.
			if took := l.now.Sub(start); echoed {
				require.Less(t, took, 200*time.Millisecond)
			} else {
				require.GreaterOrEqual(t, took, 2*announceGap)
			}
		})
	}
}

// translate leads what a sends to outer to inner, and back.
func (l *lab) translate(outer, inner netip.AddrPort) {
	box := func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.Dst == outer {
			seg.Dst = inner
		} else if from == l.b && seg.Src == inner {
			seg.Src = outer
		}
		return true
	}
	l.paths[0].box, l.paths[1].box = box, box
}

// An announced address that someone on the way leads to another: the SYN/ACK of
// a join to it bears the id of the announcement, so that REMOVE_ADDR of that is
// about the subflow. Which leads where is told, or shows: by elimination, or by
// the port if the address is one that the peer knows already. Guard: HandleJoin
// asks joinedAt, not localID.
func TestTranslatedAddressKeepsItsID(t *testing.T) {
	outer := netip.MustParseAddrPort("10.0.1.99:80")
	unused := netip.MustParseAddrPort("10.0.7.99:80")
	inner := netip.MustParseAddrPort("10.0.1.2:80")
	port := netip.MustParseAddrPort("10.0.1.99:8443")
	first := netip.MustParseAddrPort("10.0.0.2:8443")
	for name, tt := range map[string]struct {
		announce map[netip.AddrPort]netip.AddrPort
		to, at   netip.AddrPort
		known    bool
	}{
		"told":        {map[netip.AddrPort]netip.AddrPort{outer: inner, unused: {}}, outer, inner, true},
		"elimination": {map[netip.AddrPort]netip.AddrPort{outer: {}}, outer, inner, true},
		"port":        {map[netip.AddrPort]netip.AddrPort{port: {}, unused: {}}, port, first, true},
		"doubt":       {map[netip.AddrPort]netip.AddrPort{outer: {}, unused: {}}, outer, inner, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := proven(t, 2)
			l.b.conn.cfg.OwnAddr = func(a netip.Addr) bool { return a == inner.Addr() || a == first.Addr() }
			for o, i := range tt.announce {
				require.True(t, l.b.conn.AnnounceAs(l.now, o, i))
			}
			l.b.pump()
			l.idle(time.Second)
			var id uint8
			for _, s := range l.b.carrying(wire.OptAddAddr) {
				if s.AddAddr.Addr == tt.to.Addr() {
					id = s.AddAddr.ID
				}
			}
			require.NotZero(t, id)
			l.translate(tt.to, tt.at)
			sub, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: tt.to, RemoteID: id})
			require.True(t, ok)
			l.a.pump()
			l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 })
			if !tt.known {
				require.NotEqual(t, id, l.a.conn.AppendSubflows(nil)[sub].RemoteID)
				return
			}
			require.Equal(t, id, l.a.conn.AppendSubflows(nil)[sub].RemoteID)
			l.idle(time.Second)
			require.True(t, l.b.conn.Withdraw(l.now, tt.to.Addr()))
			l.b.pump()
			before := len(l.a.sent)
			l.run("withdrawal", time.Second, func() bool { return l.a.count(EventAddrWithdrawn) == 1 })
			probe := l.a.sent[before]
			require.Equal(t, tt.to, probe.Dst, "the path of that address is probed")
		})
	}
}
