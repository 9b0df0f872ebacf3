package mpconn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// joined returns a lab whose connection has a second subflow.
func joined(t testing.TB, seed uint64) *lab {
	l := newLab(t, seed, 2)
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", 10*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	return l
}

// RFC 8684, Section 3.2: the four steps, with the HMACs of package key.
func TestJoinSteps(t *testing.T) {
	l := joined(t, 1)
	a, b := l.a.carrying(wire.OptMPJoin), l.b.carrying(wire.OptMPJoin)
	require.Len(t, a, 2)
	require.Len(t, b, 1)
	syn, synack, ack := a[0].Join, b[0].Join, a[1].Join
	require.Equal(t, wire.JoinSYN, syn.Form)
	require.EqualValues(t, 0xccad45ac, syn.Token, "b's token")
	require.EqualValues(t, 1, syn.AddrID)
	mac := key.JoinHMAC(keyB, keyA, synack.Nonce, syn.Nonce)
	require.Equal(t, mac[:8], synack.HMAC[:8])
	mac = key.JoinHMAC(keyA, keyB, syn.Nonce, synack.Nonce)
	require.Equal(t, mac[:20], ack.HMAC[:])
}

// A lost segment of the handshake is repeated, whichever it is.
func TestJoinSurvivesLoss(t *testing.T) {
	for drop := range 4 {
		l := newLab(t, 1, 2)
		l.connect()
		l.prove()
		n := 0
		l.paths[1].box = func(*end, *wire.Segment) bool {
			n++
			return n-1 != drop
		}
		l.join(1)
		l.run("join", 20*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		l.transfer(l.a, l.b, 500_000, time.Minute, nil)
		l.transfer(l.b, l.a, 500_000, time.Minute, nil)
	}
}

// RFC 8684, Section 3.2: no data before the fourth ACK.
func TestNoDataBeforeFourthACK(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.prove()
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		return from == l.a || seg.Flags&wire.SYN != 0 // b's fourth ACK never arrives
	}
	l.join(1)
	l.transfer(l.a, l.b, 200_000, time.Minute, nil)
	l.idle(5 * time.Second)
	require.Equal(t, 1, l.a.count(EventSubflowUp))
	for _, s := range l.a.sent {
		if s.Src == l.a.at(1) {
			require.Zero(t, s.Has&wire.OptDSS)
		}
	}
	require.Greater(t, len(l.a.carrying(wire.OptMPJoin)), 2, "the third ACK is repeated")
}

// RFC 8684, Section 3.2: a wrong HMAC, or none, resets the subflow and only
// that, with reason code 1.
func TestJoinRejected(t *testing.T) {
	cases := map[string]func(l *lab, from *end, seg *wire.Segment){
		"hmac of syn/ack": func(l *lab, from *end, seg *wire.Segment) {
			if from == l.b {
				seg.Join.HMAC[0] ^= 1
			}
		},
		"syn/ack without option": func(l *lab, from *end, seg *wire.Segment) {
			if from == l.b && seg.Flags&wire.SYN != 0 {
				seg.Has &^= wire.OptMPTCP
			}
		},
		"hmac of third ack": func(l *lab, from *end, seg *wire.Segment) {
			if from == l.a && seg.Flags&wire.SYN == 0 {
				seg.Join.HMAC[19] ^= 1
			}
		},
		"third ack without option": func(l *lab, from *end, seg *wire.Segment) {
			if from == l.a && seg.Flags&wire.SYN == 0 {
				seg.Has &^= wire.OptMPTCP
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 2)
			l.connect()
			l.prove()
			l.paths[1].box = func(from *end, seg *wire.Segment) bool { change(l, from, seg); return true }
			l.join(1)
			l.run("rejection", 10*time.Second, func() bool { return l.a.count(EventSubflowLost) == 1 && l.b.count(EventSubflowLost) == 1 })
			resets := append(l.a.carrying(wire.OptMPTCPRst), l.b.carrying(wire.OptMPTCPRst)...)
			require.NotEmpty(t, resets)
			require.Equal(t, reason.ResetMPTCP, resets[0].TCPRst.Reason)
			l.transfer(l.a, l.b, 10_000, time.Minute, nil)
			require.Equal(t, 1, l.a.conn.Info().Subflows)
		})
	}
}

// RFC 8684, Section 3.1, flag C: no join to the initial address.
func TestDenyJoinInitial(t *testing.T) {
	l := newLab(t, 1, 2)
	l.b.cfg.DenyJoinInitial = true
	l.connect()
	l.prove()
	_, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(0)})
	require.False(t, ok)
	l.join(1)
}

func TestSubflowLimit(t *testing.T) {
	l := newLab(t, 1, 4)
	l.a.cfg.MaxSubflows, l.b.cfg.MaxSubflows = 8, 2
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	l.join(2)
	l.idle(300 * time.Millisecond)
	require.Equal(t, 2, l.b.conn.Info().Subflows)
	require.NotZero(t, l.b.conn.Info().Stats.Drops[reason.DropLimit])
	_, ok := l.b.conn.Open(l.now, OpenArgs{Local: l.b.at(3), Remote: l.a.at(3)})
	require.False(t, ok, "nor does it begin more than it takes")
}

// RFC 8684, Section 3.4.1: ADD_ADDR carries an HMAC, is echoed, and is
// repeated until it is.
func TestAddAddr(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.prove()
	lost := 0
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if seg.Has&wire.OptAddAddr != 0 && lost < 2 {
			lost++
			return false
		}
		return true
	}
	require.True(t, l.b.conn.Announce(l.now, l.b.at(1)))
	l.b.pump()
	l.run("announcement", 10*time.Second, func() bool { return l.a.count(EventAddrAnnounced) == 1 })
	var got Event
	for _, e := range l.a.events {
		if e.Kind == EventAddrAnnounced {
			got = e
		}
	}
	require.Equal(t, l.b.at(1), got.Remote, "without a port: that of the connection")
	require.EqualValues(t, 1, got.RemoteID)
	l.idle(30 * time.Second)
	sent := l.b.carrying(wire.OptAddAddr)
	require.Len(t, sent, 3, "two lost, one echoed")
	echo := l.a.carrying(wire.OptAddAddr)
	require.Len(t, echo, 1)
	require.True(t, echo[0].AddAddr.Echo)
	require.Equal(t, sent[0].AddAddr.Addr, echo[0].AddAddr.Addr)
	require.Equal(t, 1, l.a.count(EventAddrAnnounced))

	require.True(t, l.b.conn.Withdraw(l.now, l.b.at(1).Addr()))
	l.b.pump()
	l.run("withdrawal", time.Second, func() bool { return l.a.count(EventAddrWithdrawn) == 1 })
}

// RFC 8684, Section 3.4.1: an ADD_ADDR whose HMAC does not verify is ignored.
func TestAddAddrForged(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.prove()
	l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
		if seg.Has&wire.OptAddAddr != 0 {
			seg.AddAddr.HMAC[7] ^= 1
		}
		return true
	}
	l.b.conn.Announce(l.now, l.b.at(1))
	l.b.pump()
	l.idle(time.Minute)
	require.Zero(t, l.a.count(EventAddrAnnounced))
	require.Empty(t, l.a.carrying(wire.OptAddAddr), "no echo")
	require.NotZero(t, l.a.conn.Info().Stats.Drops[reason.DropHMAC])
}

// RFC 8684, Section 3.3.8: MP_PRIO moves the peer's data off the subflow; ours
// keeps off as well, as Linux does.
func TestBackup(t *testing.T) {
	l := joined(t, 1)
	require.True(t, l.a.conn.SetBackup(l.now, 1, true))
	l.a.pump()
	l.idle(50 * time.Millisecond)
	require.Equal(t, 1, l.b.count(EventPriority))
	for _, from := range []*end{l.a, l.b} {
		to := map[*end]*end{l.a: l.b, l.b: l.a}[from]
		before := len(from.sent)
		l.transfer(from, to, 500_000, time.Minute, nil)
		for _, s := range from.sent[before:] {
			if s.Src == from.at(1) {
				require.False(t, s.Has&wire.OptDSS != 0 && s.DSS.Flags&wire.DSSMap != 0, "data of %s on the backup", from.name)
			}
		}
	}
	// The backup carries data once the other is gone.
	l.paths[0].down = true
	l.transfer(l.b, l.a, 100_000, time.Minute, nil)
}

// A subflow takes the place of another: it has both windows, and the other one a
// segment. Where the congestion control knows nothing of places
// nothing happens.
func TestBequeath(t *testing.T) {
	for _, name := range []string{"mptcpd", "reno"} {
		l := newLab(t, 1, 2)
		control, err := cc.ByName(name)
		require.NoError(t, err)
		l.a.cfg.Congestion = cc.Factory(control)
		l.connect()
		l.prove()
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 })
		before := l.a.conn.AppendSubflows(nil)
		require.True(t, l.a.conn.Bequeath(1, 0))
		after := l.a.conn.AppendSubflows(nil)
		if name == "reno" {
			require.Equal(t, before[0].TCP.Cwnd, after[0].TCP.Cwnd)
			continue
		}
		require.Equal(t, after[1].TCP.MSS, after[1].TCP.Cwnd)
		require.Equal(t, before[0].TCP.Cwnd+before[1].TCP.Cwnd, after[0].TCP.Cwnd)
		require.False(t, l.a.conn.Bequeath(1, 7), "nobody")
		l.transfer(l.a, l.b, 500_000, time.Minute, nil)
	}
}

// When each side asks for another subflow to be spared, by policies of its own,
// every subflow is one. RFC 8684, Section 3.3.8, has a backup used when no
// regular one can be: then all are used alike, both ways, and nothing waits.
func TestAllSubflowsAreBackups(t *testing.T) {
	l := joined(t, 1)
	require.True(t, l.a.conn.SetBackup(l.now, 0, true))
	require.True(t, l.b.conn.SetBackup(l.now, 1, true))
	l.a.pump()
	l.b.pump()
	l.idle(50 * time.Millisecond)
	require.Equal(t, 1, l.a.count(EventPriority))
	require.Equal(t, 1, l.b.count(EventPriority))
	for _, from := range []*end{l.a, l.b} {
		to := map[*end]*end{l.a: l.b, l.b: l.a}[from]
		before := from.conn.AppendSubflows(nil)
		l.transfer(from, to, 1_000_000, time.Minute, nil)
		for i, f := range from.conn.AppendSubflows(nil) {
			require.Greater(t, f.TCP.BytesSent-before[i].TCP.BytesSent, uint64(100_000), "%s on subflow %d", from.name, i)
		}
	}
}

// An address of a link for backup makes its subflow one whichever side opens
// it: by the B flag of a SYN or SYN/ACK with MP_JOIN, and on the first subflow
// by MP_PRIO.
func TestLastResort(t *testing.T) {
	for _, tt := range []struct {
		name string
		path int
		ends func(l *lab) []*end // that have it so
	}{
		{"joining", 1, func(l *lab) []*end { return []*end{l.a} }},
		{"joined", 1, func(l *lab) []*end { return []*end{l.b} }},
		{"first, opening", 0, func(l *lab) []*end { return []*end{l.a} }},
		{"first, accepting", 0, func(l *lab) []*end { return []*end{l.b} }},
		{"first, both", 0, func(l *lab) []*end { return []*end{l.a, l.b} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, 1, 2)
			asking := tt.ends(l)
			for _, e := range asking {
				e.cfg.LastResort = func(a netip.Addr) bool { return a == addr(tt.path, e.host) }
			}
			l.connect()
			l.prove()
			l.join(1)
			l.run("join", 10*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
			l.idle(100 * time.Millisecond)
			for _, e := range asking {
				require.Equal(t, tt.path == 0, len(e.carrying(wire.OptMPPrio)) > 0)
			}
			require.Equal(t, tt.name == "joining", l.a.carrying(wire.OptMPJoin)[0].Join.Backup)
			require.Equal(t, tt.name == "joined", l.b.carrying(wire.OptMPJoin)[0].Join.Backup)
			for _, from := range []*end{l.a, l.b} {
				to := map[*end]*end{l.a: l.b, l.b: l.a}[from]
				before := len(from.sent)
				l.transfer(from, to, 200_000, time.Minute, nil)
				for _, s := range from.sent[before:] {
					if s.Src == from.at(tt.path) {
						require.False(t, s.Has&wire.OptDSS != 0 && s.DSS.Flags&wire.DSSMap != 0, "data of %s", from.name)
					}
				}
			}
		})
	}
}
