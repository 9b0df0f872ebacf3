package mpconn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// orders are what a peer may say by options, all of which would do harm.
func orders(next Info) map[string]func(*wire.Segment) {
	dss := func(flags wire.DSSFlags, change func(*wire.DSS)) func(*wire.Segment) {
		return func(s *wire.Segment) {
			s.Has |= wire.OptDSS
			s.DSS = wire.DSS{Flags: flags, Ack: next.NextDSN, DSN: next.NextAck}
			change(&s.DSS)
		}
	}
	return map[string]func(*wire.Segment){
		"remove_addr": func(s *wire.Segment) {
			s.Has |= wire.OptRemoveAddr
			s.RemoveAddr.N = uint8(copy(s.RemoveAddr.IDs[:], []uint8{0, 1}))
		},
		"mp_fail": func(s *wire.Segment) {
			s.Has |= wire.OptMPFail
			s.FailDSN = seq.DSN(next.NextDSN)
		},
		"data_ack":  dss(wire.DSSAck|wire.DSSAck8, func(*wire.DSS) {}),
		"data_fin":  dss(wire.DSSMap|wire.DSSDSN8|wire.DSSFin, func(d *wire.DSS) { d.Len = 1 }),
		"infinite":  dss(wire.DSSMap|wire.DSSDSN8, func(d *wire.DSS) { d.SSN = 1 }),
		"a mapping": dss(wire.DSSMap|wire.DSSDSN8, func(d *wire.DSS) { d.SSN, d.Len = 1, 100 }),
	}
}

// Who knows a token, which crosses the network in the clear, but no key can
// begin a subflow, and say whatever it likes beside a third ACK, or a SYN/ACK,
// whose HMAC is wrong. Nothing of that counts.
//
// RFC 8684, Section 3.2: a wrong HMAC closes the subflow. Guard: handleOptions
// looks at nothing else before a join is verified.
func TestStrangersSayNothing(t *testing.T) {
	for name := range orders(Info{}) {
		for _, active := range []bool{false, true} {
			for _, bare := range []bool{false, true} {
				t.Run(fmt.Sprint(name, active, bare), func(t *testing.T) { strangerSays(t, name, active, bare) })
			}
		}
	}
}

// strangerSays has somebody who is joined, or joins, say something; bare without
// MP_JOIN.
func strangerSays(t *testing.T, what string, active, bare bool) {
	l := newLab(t, 1, 3)
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	// What is on its way can be acknowledged.
	for _, p := range l.paths {
		p.down = true
	}
	victim, stranger := l.b, netip.AddrPortFrom(addr(2, 9), 4711)
	if active {
		victim = l.a
	}
	victim.write(500)
	before := victim.conn.Info()
	reply := wire.Segment{Src: stranger, Dst: victim.at(2), Header: wire.Header{Flags: wire.ACK, Wnd: 1000}}
	if active {
		_, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(2), Remote: stranger})
		require.True(t, ok)
		reply.Flags |= wire.SYN
		reply.Join.Form = wire.JoinSYNACK
	} else {
		syn := joinSYN(victim, 9)
		_, ok := victim.conn.HandleJoin(l.now, &syn)
		require.True(t, ok)
		reply.Join.Form = wire.JoinACK
	}
	victim.pump()
	last := victim.sent[len(victim.sent)-1]
	require.Equal(t, stranger, last.Dst)
	reply.Seq, reply.Ack = 100, last.Seq.Add(1)
	orders(before)[what](&reply)
	if !bare {
		reply.Has |= wire.OptMPJoin
	}
	withdrawn, gone := victim.count(EventAddrWithdrawn), len(victim.resets(0))
	victim.conn.HandleSegment(l.now, victim.tuples[[2]netip.AddrPort{reply.Dst, reply.Src}], &reply)
	victim.pump()

	after := victim.conn.Info()
	require.Equal(t, withdrawn, victim.count(EventAddrWithdrawn))
	require.Len(t, victim.resets(0), gone)
	require.Equal(t, before.Unacked, after.Unacked, "no DATA_ACK")
	require.Equal(t, before.NextAck, after.NextAck)
	require.Equal(t, before.State, after.State)
	require.EqualValues(t, before.Stats.Drops[reason.DropHMAC]+1, after.Stats.Drops[reason.DropHMAC])
	require.Len(t, victim.resets(2), 1)
	require.Equal(t, reason.ResetMPTCP, victim.resets(2)[0].TCPRst.Reason)
	require.Equal(t, 2, after.Subflows)
	for _, p := range l.paths {
		p.down = false
	}
	other := l.a
	if active {
		other = l.b
	}
	l.run("data", time.Minute, func() bool { other.readAll(); return other.read == victim.wrote })
	l.transfer(other, victim, 10_000, time.Minute, nil)
	require.Empty(t, l.a.announced(EventAddrWithdrawn))
}

// Nor does a stranger's SYN keep the peer from hearing that the address is gone
// which it asks for; a join that is verified does. Guard: HandleJoin leaves
// withdrawals alone.
func TestStrangersKeepNoAddress(t *testing.T) {
	for _, verified := range []bool{false, true} {
		l := proven(t, 3)
		l.b.conn.Announce(l.now, l.b.at(2))
		l.b.pump()
		l.idle(time.Second)
		l.paths[0].box = func(from *end, seg *wire.Segment) bool { return from == l.a || seg.Has&wire.OptRemoveAddr == 0 }
		l.b.conn.Withdraw(l.now, addr(2, 2))
		l.b.pump()
		if verified {
			l.join(2)
		} else {
			syn := joinSYN(l.b, 9)
			_, ok := l.b.conn.HandleJoin(l.now, &syn)
			require.True(t, ok)
		}
		l.idle(time.Minute)
		if verified {
			require.Len(t, l.b.carrying(wire.OptRemoveAddr), 1)
		} else {
			require.Len(t, l.b.carrying(wire.OptRemoveAddr), maxRepeats)
		}
	}
}

// joinSYN is a SYN that joins an end on path 2, from an address of a host.
func joinSYN(to *end, host byte) wire.Segment {
	syn := wire.Segment{Src: netip.AddrPortFrom(addr(2, host), 4711), Dst: to.at(2), Header: wire.Header{Seq: 99, Flags: wire.SYN, Wnd: 1000}}
	syn.Has = wire.OptMPJoin
	syn.Join = wire.MPJoin{Form: wire.JoinSYN, Token: uint32(to.conn.Token()), AddrID: 9}
	return syn
}

// What is left in a segment of an earlier one is no option, and an MP_JOIN of
// another form none that ends a handshake, whatever their fields say; nor does a
// SYN answer a SYN. Guards: what joinSYNACK and joinThirdACK ask for beside the
// HMAC, one each, and joinHandshake's case for a SYN.
func TestJoinNeedsItsOptions(t *testing.T) {
	for name, change := range map[string]func(*wire.Segment){
		"no option on the syn/ack": func(s *wire.Segment) {
			if s.Flags.Has(wire.SYN | wire.ACK) {
				s.Has &^= wire.OptMPJoin
			}
		},
		"no option on the third ack": func(s *wire.Segment) {
			if !s.Flags.Has(wire.SYN) && s.Join.Form == wire.JoinACK {
				s.Has &^= wire.OptMPJoin
			}
		},
		"another form of the third ack": func(s *wire.Segment) {
			if !s.Flags.Has(wire.SYN) && s.Join.Form == wire.JoinACK {
				s.Join.Form = wire.JoinSYNACK
			}
		},
		"a syn for a syn/ack": func(s *wire.Segment) {
			if s.Flags.Has(wire.SYN | wire.ACK) {
				s.Flags &^= wire.ACK
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := proven(t, 3)
			l.paths[2].box = func(*end, *wire.Segment) bool { return false }
			l.join(2)
			hand := func(from, to *end) {
				s := from.sent[len(from.sent)-1]
				change(&s)
				if id, known := to.tuples[[2]netip.AddrPort{s.Dst, s.Src}]; known {
					to.conn.HandleSegment(l.now, id, &s)
				} else {
					to.conn.HandleJoin(l.now, &s)
				}
				to.pump()
			}
			hand(l.a, l.b)
			hand(l.b, l.a)
			if l.a.count(EventSubflowLost) == 0 {
				hand(l.a, l.b)
			}
			require.Equal(t, 1, l.a.count(EventSubflowUp))
			require.Equal(t, 1, l.b.count(EventSubflowUp))
			rst := append(l.a.resets(2), l.b.resets(2)...)
			require.Len(t, rst, 1)
			require.Equal(t, reason.ResetMPTCP, rst[0].TCPRst.Reason)
		})
	}
}
