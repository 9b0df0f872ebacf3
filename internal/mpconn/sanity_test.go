package mpconn

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// twist lets a box change the n-th mapping that a sends on path 1, once.
func (l *lab) twist(n int, change func(d *wire.DSS)) *bool {
	done := new(bool)
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 0 && seg.Has&wire.OptDSS != 0 && seg.DSS.Flags&wire.DSSMap != 0 && !*done {
			if n--; n < 0 {
				*done = true
				change(&seg.DSS)
			}
		}
		return true
	}
	return done
}

// Mappings that contradict another, or say what cannot be, are dropped and
// counted; bytes they would have moved come again, and none is wrong. A sender
// that changes a mapping loses its subflow, with reason 1.
func TestMappingSanity(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *wire.DSS)
		drop   reason.Drop
		reset  bool
	}{
		{"longer", func(d *wire.DSS) { d.Len += 100 }, reason.DropMapping, true},
		{"moved", func(d *wire.DSS) { d.DSN += 10_000 }, reason.DropMapping, true},
		{"overlaps", func(d *wire.DSS) { d.SSN += 100 }, reason.DropMapping, true},
		{"far ssn", func(d *wire.DSS) { d.SSN += 1 << 28 }, reason.DropMapping, false},
		{"far dsn", func(d *wire.DSS) { d.DSN += 1 << 40 }, reason.DropDataWindow, false},
		{"dsn before the stream", func(d *wire.DSS) { d.DSN -= 1 << 40 }, reason.DropDataWindow, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := joined(t, 1)
			// The fourth segment of the first burst: three have told the mapping.
			done := l.twist(3, tt.change)
			l.transfer(l.a, l.b, 500_000, time.Minute, nil)
			require.True(t, *done)
			require.NotZero(t, l.b.conn.Info().Stats.Drops[tt.drop])
			require.Equal(t, tt.name == "far ssn", l.b.conn.Info().Stats.FarMappings > 0)
			rst := l.b.resets(1)
			if !tt.reset {
				require.Empty(t, rst)
				return
			}
			require.Len(t, rst, 1)
			require.Equal(t, reason.ResetMPTCP, rst[0].TCPRst.Reason)
		})
	}
}

// RFC 8684, Section 3.8: data right of the window is dropped without DATA_ACK,
// also a DATA_FIN; far left it is a duplicate. Guard: deliver's bound.
func TestOutsideDataWindow(t *testing.T) {
	l := newLab(t, 2, 2)
	l.b.cfg.ReadBuffer = 100_000
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	n := 0
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 0 && seg.Has&wire.OptDSS != 0 {
			n++
			seg.DSS.DSN += 120_000 // whole mappings: nothing contradicts
			if n%2 == 0 {
				seg.DSS.Flags |= wire.DSSFin
			}
		}
		return true
	}
	l.transfer(l.a, l.b, 300_000, 5*time.Minute, nil)
	require.NotZero(t, n)
	require.NotZero(t, l.b.conn.Info().Stats.Drops[reason.DropDataWindow])
	require.False(t, l.b.conn.EOF())
}

// The end of a stream, once told, does not move: who says so loses the subflow.
// Guard: handleDataFin.
func TestDataFinMoves(t *testing.T) {
	l := joined(t, 3)
	l.a.write(1000)
	l.a.closeWrite()
	l.run("eof", time.Second, func() bool { l.b.readAll(); return l.b.conn.EOF() })
	done := false
	for _, p := range l.paths {
		p.box = func(from *end, seg *wire.Segment) bool {
			if from == l.a && seg.Has&wire.OptDSS != 0 && !done {
				done = true
				seg.DSS.Flags |= wire.DSSMap | wire.DSSFin | wire.DSSDSN8
				seg.DSS.DSN, seg.DSS.SSN, seg.DSS.Len = l.a.conn.Info().NextDSN+500, 0, 1
			}
			return true
		}
	}
	l.b.write(2000)
	l.run("answer", time.Second, func() bool { l.a.readAll(); return l.a.read == l.b.wrote && done })
	l.idle(100 * time.Millisecond)
	require.True(t, l.b.conn.EOF())
	require.EqualValues(t, 1, l.b.conn.Info().Stats.Drops[reason.DropMapping])
	rst := append(l.b.resets(0), l.b.resets(1)...)
	require.Len(t, rst, 1)
	require.Equal(t, reason.ResetMPTCP, rst[0].TCPRst.Reason)
}

// RFC 8684, Section 3.3.1: numbers of 4 bytes across the wrap of the low half,
// with late segments of before the wrap after it. Guard: seq.Expand, which takes
// the nearest of the candidates.
func TestShortNumbersWrap(t *testing.T) {
	for _, loss := range []float64{0, 0.03} {
		l := newLab(t, 7, 2)
		for i := uint64(1); uint32(l.a.cfg.Key.IDSN()) < 1<<32-1<<17; i++ {
			binary.BigEndian.PutUint64(l.a.cfg.Key[:], i)
		}
		l.connect()
		l.prove()
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		for _, p := range l.paths {
			p.loss, p.reorder, p.duplicate = loss, loss, loss
			p.box = func(_ *end, seg *wire.Segment) bool {
				if seg.Has&wire.OptDSS != 0 {
					seg.DSS.Flags &^= wire.DSSDSN8 | wire.DSSAck8
					seg.DSS.DSN, seg.DSS.Ack = seg.DSS.DSN&0xffffffff, seg.DSS.Ack&0xffffffff
				}
				return true
			}
		}
		before := l.a.conn.Info().NextDSN
		l.transfer(l.a, l.b, 500_000, time.Minute, nil)
		require.NotEqual(t, before>>32, l.a.conn.Info().NextDSN>>32, "it wrapped")
	}
}

// The answers of a join must be MP_JOIN options of the right form: with any
// other, and whatever its fields say, the subflow does not come up on either
// side. Guards: joinSYNACK and joinThirdACK ask for the option and its form.
func TestJoinAnsweredByOtherOptions(t *testing.T) {
	for _, opt := range []wire.OptionSet{
		wire.OptMPCapable, wire.OptDSS, wire.OptAddAddr, wire.OptRemoveAddr, wire.OptMPPrio, wire.OptMPFail, wire.OptFastClose, wire.OptMPTCPRst,
	} {
		for _, third := range []bool{false, true} {
			t.Run(fmt.Sprint(opt, third), func(t *testing.T) {
				l := proven(t, 2)
				l.paths[1].box = func(from *end, seg *wire.Segment) bool {
					mine := from == l.b && seg.Flags.Has(wire.SYN) || third && from == l.a && !seg.Flags.Has(wire.SYN)
					if third && from == l.b {
						mine = false
					}
					if mine && seg.Flags&wire.RST == 0 {
						seg.Has = seg.Has&^wire.OptMPTCP | opt
						seg.Capable = wire.MPCapable{Version: 1, Flags: wire.CapHMACSHA256, Keys: 1, SenderKey: keyB}
						seg.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: 1}
						seg.AddAddr = wire.AddAddr{Echo: true, ID: 3, Addr: addr(1, 2)}
						seg.RemoveAddr.N = 1
					}
					return true
				}
				l.join(1)
				l.run("refusal", 20*time.Second, func() bool { return l.a.count(EventSubflowLost) == 1 })
				require.Equal(t, 1, l.a.count(EventSubflowUp))
				require.Equal(t, 1, l.b.count(EventSubflowUp))
				l.transfer(l.a, l.b, 10_000, time.Minute, nil)
			})
		}
	}
}

// A SYN/ACK whose MP_JOIN has the form of a third ACK is refused, though its
// HMAC is that of the keys and of a nonce of 0, which that form lacks. Guard:
// joinSYNACK asks for the form; a missing option is caught by the HMAC too.
func TestJoinSYNACKOfAnotherForm(t *testing.T) {
	l := proven(t, 2)
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.b && seg.Flags&(wire.SYN|wire.RST) == wire.SYN {
			syn := l.a.carrying(wire.OptMPJoin)[0]
			seg.Has = seg.Has&^(wire.OptTimestamps|wire.OptSACKPermitted|wire.OptWScale) | wire.OptMPJoin
			seg.Join = wire.MPJoin{Form: wire.JoinACK}
			mac := key.JoinHMAC(keyB, keyA, 0, syn.Join.Nonce)
			copy(seg.Join.HMAC[:], mac[:])
		}
		return true
	}
	l.join(1)
	l.run("refusal", 20*time.Second, func() bool { return l.a.count(EventSubflowLost) == 1 })
	require.Empty(t, l.a.carrying(wire.OptMPJoin)[1:], "no third ACK")
	require.Equal(t, 1, l.a.count(EventSubflowUp))
	require.Equal(t, reason.ResetMPTCP, l.a.resets(1)[0].TCPRst.Reason)
	l.transfer(l.a, l.b, 10_000, time.Minute, nil)
}

// A connection that ends at any step of a join, on either side: no segment of
// the join may meet what is no more. The guard is Joinable, which HandleJoin and
// Open ask.
func TestCloseMeetsJoin(t *testing.T) {
	for step := range 30 {
		for _, abort := range []bool{true, false} {
			for _, who := range []int{0, 1} {
				l := proven(t, 2)
				l.join(1)
				l.idle(time.Duration(step) * 2 * time.Millisecond)
				e, other := l.a, l.b
				if who == 1 {
					e, other = l.b, l.a
				}
				if abort {
					e.conn.Abort(l.now)
				} else {
					e.conn.Close(l.now)
				}
				e.pump()
				l.idle(50 * time.Millisecond)
				other.close()
				l.run("end", 5*time.Minute, func() bool { return l.a.conn.Closed() && l.b.conn.Closed() })
				syn := l.a.carrying(wire.OptMPJoin)[0]
				_, ok := l.b.conn.HandleJoin(l.now, &syn)
				require.False(t, ok)
			}
		}
	}
}

// Falling back on connect, while at once timers fire: offsets are counted from
// the start, so that there is none that could still be unset. That is the
// guard: what Linux learns at the handshake is 0 here from the beginning.
func TestEarlyFallbackAndTimers(t *testing.T) {
	for n := range 8 {
		l := newLab(t, 5, 1)
		i := 0
		l.paths[0].box = func(from *end, seg *wire.Segment) bool {
			if i++; i > n+1 {
				seg.Has &^= wire.OptMPTCP
			}
			return true
		}
		l.dial()
		l.a.write(30_000)
		l.a.conn.HandleTimeout(l.now)
		l.run("data", 2*time.Minute, func() bool {
			l.a.write(30_000 - l.a.wrote)
			l.b.readAll()
			l.a.conn.HandleTimeout(l.now)
			l.a.pump()
			return l.b.read == 30_000 || l.a.conn.Closed()
		})
	}
}

// RFC 8684, Section 3.3: a checksum where none was agreed, or none where one
// was, resets the subflow with reason 1.
func TestChecksumPresence(t *testing.T) {
	for _, agreed := range []bool{true, false} {
		l := newLab(t, 1, 2)
		l.a.cfg.Checksum = agreed
		l.connect()
		l.prove()
		l.join(1)
		l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
		l.twist(0, func(d *wire.DSS) { d.HasChecksum = !agreed })
		l.transfer(l.a, l.b, 200_000, time.Minute, nil)
		rst := l.b.resets(1)
		require.Len(t, rst, 1)
		require.Equal(t, reason.ResetMPTCP, rst[0].TCPRst.Reason)
	}
}

// A path MTU that changes cuts what is sent again differently; the mappings
// stay. The guard, that no segment crosses the border of a Push, has its test in
// package subflow.
func TestMappingsSurviveSmallerMTU(t *testing.T) {
	l := joined(t, 4)
	for _, p := range l.paths {
		p.loss = 0.03
	}
	mtu := 1480
	l.transfer(l.a, l.b, 1_000_000, 5*time.Minute, func() {
		if l.b.read > (1500-mtu)*1500 && mtu > 700 {
			mtu -= 100
			for id := range 2 {
				for _, s := range l.a.sent[max(len(l.a.sent)-40, 0):] {
					if s.Src == l.a.at(id) {
						l.a.conn.HandlePacketTooBig(l.now, id, s.Seq, mtu)
					}
				}
			}
		}
	})
	require.Less(t, l.a.conn.AppendSubflows(nil)[0].TCP.MSS, 1300)
	wantFixedMappings(t, l.a)
}

// Simultaneous open: neither side would know whose key comes first, so both are
// plain TCP. The guard is handshake's case for a SYN in answer to a SYN.
func TestSimultaneousOpen(t *testing.T) {
	l := newLab(t, 1, 1)
	l.b.cfg.Local, l.b.cfg.Remote = l.b.at(0), l.a.at(0)
	l.b.conn = Dial(l.now, &l.b.cfg)
	l.dial()
	l.b.pump()
	l.run("connect", 10*time.Second, func() bool { return l.a.conn.Connected() && l.b.conn.Connected() })
	l.transfer(l.a, l.b, 50_000, time.Minute, nil)
	l.transfer(l.b, l.a, 50_000, time.Minute, nil)
	require.Equal(t, reason.FallbackPeerSYN, l.a.conn.Fallback())
	require.Equal(t, reason.FallbackPeerSYN, l.b.conn.Fallback())
	l.a.closeWrite()
	l.b.closeWrite()
	l.run("end", 5*time.Minute, func() bool { return l.a.conn.Closed() && l.b.conn.Closed() })
}
