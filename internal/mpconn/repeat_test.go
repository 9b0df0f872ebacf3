package mpconn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// signalCase is an option that has no answer, and what shows its effect.
type signalCase struct {
	name string
	opt  wire.OptionSet
	say  func(l *lab)
	done func(l *lab) bool
}

// signalCases has a say something about its second subflow, or address.
func signalCases() []signalCase {
	return []signalCase{
		{"prio", wire.OptMPPrio, func(l *lab) { l.a.conn.SetBackup(l.now, 1, true) }, func(l *lab) bool {
			return l.b.conn.AppendSubflows(nil)[1].PeerBackup
		}},
		{"remove", wire.OptRemoveAddr, func(l *lab) { l.a.conn.Withdraw(l.now, addr(2, 1)) }, func(l *lab) bool {
			return l.b.count(EventAddrWithdrawn) == 1
		}},
	}
}

// load is what else goes on when an option is said.
type load struct {
	name       string
	from, to   func(l *lab) *end // who sends data to whom; nil = nobody
	timestamps bool
}

func loads() []load {
	a, b := func(l *lab) *end { return l.a }, func(l *lab) *end { return l.b }
	return []load{{"idle", nil, nil, true}, {"sending", a, b, true}, {"receiving", b, a, true}, {"no timestamps", nil, nil, false}}
}

// playSignal says an option under a load and loses its first copies. It returns
// how often it was sent in all.
func playSignal(t *testing.T, s signalCase, w load, lose int) int {
	l := newLab(t, 1, 3)
	for _, e := range []*end{l.a, l.b} {
		e.cfg.Subflow.NoTimestamps = !w.timestamps
		e.cfg.WriteBuffer = 4 << 20
	}
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	l.a.conn.Announce(l.now, netip.AddrPortFrom(addr(2, 1), 0))
	l.a.pump()
	l.run("announcement", time.Second, func() bool { return l.b.count(EventAddrAnnounced) == 1 })
	l.idle(time.Second)
	for _, p := range l.paths {
		p.box = func(from *end, seg *wire.Segment) bool {
			if from == l.a && seg.Has&s.opt != 0 && lose > 0 {
				lose--
				return false
			}
			return true
		}
	}
	n := 0
	said := false
	each := func() {
		if n++; n == 200 || w.from == nil && !said {
			said = true
			s.say(l)
			l.a.pump()
		}
	}
	if w.from != nil {
		l.transfer(w.from(l), w.to(l), 2<<20, time.Minute, each)
	}
	each()
	require.True(t, said)
	l.run("effect", 20*time.Second, func() bool { l.a.readAll(); l.b.readAll(); return s.done(l) })
	l.idle(30 * time.Second)
	return len(l.a.carrying(s.opt))
}

// MP_PRIO and REMOVE_ADDR, which no option answers, arrive although segments
// are lost, and are not said again without need: once where nothing is lost,
// and a bounded number of times where nothing proves their arrival. Guards:
// repeatSignals and putRiders bring them again; stampHeard and riderAcked end
// that.
func TestSignalsArriveDespiteLoss(t *testing.T) {
	for _, s := range signalCases() {
		for _, w := range loads() {
			for lose := range 3 {
				t.Run(fmt.Sprintf("%s/%s/lose %d", s.name, w.name, lose), func(t *testing.T) {
					sent := playSignal(t, s, w, lose)
					if w.timestamps {
						require.Equal(t, lose+1, sent)
					} else {
						require.Equal(t, maxRepeats, sent)
					}
				})
			}
		}
	}
}

// On a path that is dead the repeats end, too.
func TestSignalRepeatsAreBounded(t *testing.T) {
	l := proven(t, 2)
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	l.idle(time.Second)
	l.paths[0].down, l.paths[1].down = true, true
	l.a.conn.SetBackup(l.now, 1, true)
	l.a.conn.Withdraw(l.now, addr(0, 1))
	l.a.pump()
	l.idle(time.Minute)
	require.Len(t, l.a.carrying(wire.OptMPPrio), maxRepeats)
	require.Len(t, l.a.carrying(wire.OptRemoveAddr), maxRepeats)
}

// A REMOVE_ADDR that may not have arrived is not said again once the address is
// in use anew. Guard: cancelWithdrawal.
func TestWithdrawalEndsWithNewUse(t *testing.T) {
	l := proven(t, 2)
	l.idle(time.Second)
	l.a.conn.Withdraw(l.now, addr(1, 1))
	l.a.conn.Announce(l.now, netip.AddrPortFrom(addr(1, 1), 0))
	l.a.pump()
	l.idle(time.Second)
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		return from == l.b || seg.Has&wire.OptRemoveAddr == 0
	}
	l.a.conn.Withdraw(l.now, addr(1, 1))
	l.a.pump()
	l.idle(20 * time.Millisecond)
	require.Len(t, l.a.carrying(wire.OptRemoveAddr), 1)
	l.join(1)
	l.idle(time.Minute)
	require.Len(t, l.a.carrying(wire.OptRemoveAddr), 1)
}

// An ADD_ADDR that nobody echoes is given up; an echo of something else ends
// nothing. Guards: the bound in retryAnnounce, and that echoed compares address
// and port.
func TestAnnouncementIsGivenUp(t *testing.T) {
	for _, change := range []func(*wire.AddAddr) bool{
		func(*wire.AddAddr) bool { return false },
		func(o *wire.AddAddr) bool { o.Addr = addr(7, 2); return true },
		func(o *wire.AddAddr) bool { o.Port = 1; return true },
		func(o *wire.AddAddr) bool { o.ID++; return true },
	} {
		l := proven(t, 1)
		l.paths[0].box = func(from *end, seg *wire.Segment) bool {
			return from == l.b || seg.Has&wire.OptAddAddr == 0 || change(&seg.AddAddr)
		}
		l.b.conn.Announce(l.now, netip.AddrPortFrom(addr(5, 2), 0))
		l.b.pump()
		l.idle(10 * time.Minute)
		require.Len(t, l.b.carrying(wire.OptAddAddr), maxAnnounceTry)
		require.Empty(t, l.b.conn.addrs.announce)
	}
}

// Echoes that wait for a subflow that is gone make room for others. Guard:
// pollEcho drops them.
func TestEchoesEndWithTheirSubflow(t *testing.T) {
	l := joined(t, 1)
	for range maxEchoes {
		l.a.conn.addrs.echoes = append(l.a.conn.addrs.echoes, echo{on: l.a.conn.flows[1], opt: wire.AddAddr{Echo: true, ID: 4, Addr: addr(4, 2)}})
	}
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
		e.pump()
	}
	l.addAddr(5, netip.AddrPortFrom(addr(5, 2), 0))
	echo := l.a.carrying(wire.OptAddAddr)
	require.Len(t, echo, 1)
	require.EqualValues(t, 5, echo[0].AddAddr.ID)
	require.Zero(t, l.a.conn.Info().Stats.EchoesDropped)
}

// CVE-2024-57882: an IPv6 address with a port has no room beside timestamps, and
// is announced without it. Guard: Announce.
func TestAnnouncementLeavesRoomForTimestamps(t *testing.T) {
	for _, timestamps := range []bool{true, false} {
		l := newLab(t, 1, 1)
		l.b.cfg.Subflow.NoTimestamps = !timestamps
		l.connect()
		l.prove()
		l.b.conn.Announce(l.now, netip.MustParseAddrPort("[2001:db8::1]:4711"))
		l.b.pump()
		l.run("echo", time.Second, func() bool { return len(l.a.carrying(wire.OptAddAddr)) > 0 })
		require.Equal(t, timestamps, l.b.carrying(wire.OptAddAddr)[0].AddAddr.Port == 0)
	}
}
