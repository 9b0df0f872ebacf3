package mpconn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

func TestTransferOneSubflow(t *testing.T) {
	l := newLab(t, 1, 1)
	l.connect()
	l.transfer(l.a, l.b, 2_000_000, time.Minute, nil)
	l.transfer(l.b, l.a, 2_000_000, time.Minute, nil)
}

// Both subflows carry data, and every byte is declared by one mapping only on
// each of them.
func TestTransferTwoSubflows(t *testing.T) {
	l := joined(t, 1)
	l.transfer(l.a, l.b, 4_000_000, time.Minute, nil)
	l.transfer(l.b, l.a, 4_000_000, time.Minute, nil)
	for _, e := range []*end{l.a, l.b} {
		for _, f := range e.conn.AppendSubflows(nil) {
			require.Greater(t, f.TCP.BytesSent, uint64(400_000), "%s subflow %d", e.name, f.ID)
		}
		wantFixedMappings(t, e)
	}
}

// wantFixedMappings checks RFC 8684, Section 3.3.1: a declared mapping never
// changes, also not by retransmission.
func wantFixedMappings(t *testing.T, e *end) {
	t.Helper()
	type place struct {
		port uint16
		ssn  uint32
	}
	declared := map[place]wire.DSS{}
	for _, s := range e.carrying(wire.OptDSS) {
		d := s.DSS
		if d.Flags&wire.DSSMap == 0 || d.SSN == 0 {
			continue
		}
		d.Ack = 0
		at := place{s.Src.Port()<<8 | uint16(s.Src.Addr().As4()[2]), d.SSN}
		if old, ok := declared[at]; ok {
			require.Equal(t, old, d)
		}
		declared[at] = d
	}
}

func TestTransferImpaired(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := joined(t, seed)
			l.a.cfg.Checksum = seed%3 == 0
			for i, p := range l.paths {
				p.loss, p.reorder, p.duplicate = 0.02, 0.03, 0.01
				p.delay = time.Duration(5+20*i) * time.Millisecond
			}
			l.transfer(l.a, l.b, 700_000, 10*time.Minute, nil)
			l.transfer(l.b, l.a, 700_000, 10*time.Minute, nil)
			wantFixedMappings(t, l.a)
		})
	}
}

// A path that dies in the middle costs time, not bytes.
func TestPathDies(t *testing.T) {
	for _, dead := range []int{0, 1} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			l := joined(t, 3)
			start := l.now
			l.transfer(l.a, l.b, 3_000_000, 30*time.Second, func() {
				if l.b.read > 1_000_000 {
					l.paths[dead].down = true
				}
			})
			require.Less(t, l.now.Sub(start), 10*time.Second)
			require.NotZero(t, l.a.conn.Info().Stats.BytesReinjected)
		})
	}
}

// A path that comes back is used again.
func TestPathReturns(t *testing.T) {
	l := joined(t, 3)
	l.transfer(l.a, l.b, 500_000, time.Minute, nil)
	l.paths[1].down = true
	l.transfer(l.a, l.b, 500_000, time.Minute, nil)
	l.idle(2 * time.Second)
	l.paths[1].down = false
	l.idle(10 * time.Second)
	before := l.a.conn.AppendSubflows(nil)[1].TCP.BytesSent
	l.transfer(l.a, l.b, 3_000_000, time.Minute, nil)
	require.Greater(t, l.a.conn.AppendSubflows(nil)[1].TCP.BytesSent, before+50_000)
}

// RFC 8684, Section 3.3.6: data acknowledged on the subflow but never
// DATA_ACKed is sent again, also where the first subflow looks as if the peer had
// fallen back, which it cannot have. Guard: added in dataTimeout.
func TestDataLevelRetransmission(t *testing.T) {
	for _, bare := range []bool{false, true} {
		dataLevelRetransmission(t, bare)
	}
}

func dataLevelRetransmission(t *testing.T, bare bool) {
	l := joined(t, 4)
	l.a.conn.SetScheduler(scheduler.RoundRobin(1)) // which sends nothing again by itself
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.b && bare {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
	eaten := 0
	// A box that acknowledges a segment on b's behalf cannot be played here;
	// a mapping that is stripped has the same effect: b's subflow takes the
	// bytes, b's connection does not.
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 0 && eaten < 3 {
			eaten++
			seg.Has &^= wire.OptDSS
		}
		return true
	}
	l.transfer(l.a, l.b, 1_000_000, time.Minute, nil)
	require.Equal(t, 3, eaten)
}

// A reader that stops closes the window; one that resumes opens it, also when
// the window update is lost. Guard: setBlocked, without which nothing but a
// keepalive, off here, would ask.
func TestZeroWindow(t *testing.T) {
	for _, lose := range []bool{false, true} {
		l := newLab(t, 5, 2)
		l.b.cfg.ReadBuffer = 60_000
		l.a.cfg.Subflow.KeepAlive.Idle, l.b.cfg.Subflow.KeepAlive.Idle = -1, -1
		l.connect()
		l.prove()
		l.join(1)
		l.idle(100 * time.Millisecond)
		for l.a.write(50_000) > 0 {
		}
		l.idle(30 * time.Second)
		require.LessOrEqual(t, l.b.conn.Readable(), 60_000)
		require.Greater(t, l.b.conn.Readable(), 50_000)
		require.Zero(t, l.b.conn.Info().OutOfOrder)
		if lose {
			l.paths[0].down, l.paths[1].down = true, true
			l.b.readAll()
			l.idle(time.Second)
			l.paths[0].down, l.paths[1].down = false, false
		}
		l.run("resume", 5*time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	}
}

// RFC 8684, Section 3.7: data whose checksum fails is never delivered; the
// subflow is reset with MP_FAIL and the data comes by another.
func TestChecksumFailure(t *testing.T) {
	l := newLab(t, 6, 2)
	l.a.cfg.Checksum = true
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	hit := false
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 100 && !hit {
			hit = true
			seg.Payload[0][50] ^= 0x40
		}
		return true
	}
	l.transfer(l.a, l.b, 1_000_000, time.Minute, nil)
	require.True(t, hit)
	require.EqualValues(t, 1, l.b.conn.Info().Stats.ChecksumErrors)
	require.Len(t, l.b.carrying(wire.OptMPFail), 1)
	require.Equal(t, 1, l.a.count(EventSubflowLost))
}

// RFC 8684, Section 3.3.1: numbers of 4 bytes are promoted, also across the
// wrap. The box shortens what a sends; both directions must go on.
func TestShortNumbers(t *testing.T) {
	l := joined(t, 7)
	for _, p := range l.paths {
		p.box = func(_ *end, seg *wire.Segment) bool {
			if seg.Has&wire.OptDSS != 0 {
				seg.DSS.Flags &^= wire.DSSDSN8 | wire.DSSAck8
				seg.DSS.DSN, seg.DSS.Ack = seg.DSS.DSN&0xffffffff, seg.DSS.Ack&0xffffffff
			}
			return true
		}
	}
	l.transfer(l.a, l.b, 500_000, time.Minute, nil)
	l.transfer(l.b, l.a, 500_000, time.Minute, nil)
}

// Segments that a middlebox cut keep the mapping of the whole.
func TestUnmappedDataWaits(t *testing.T) {
	l := newLab(t, 8, 1)
	l.connect()
	l.prove()
	n := 0
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 0 {
			n++
			if n%2 == 0 {
				// The mapping spans several segments; one copy is enough.
				seg.Has &^= wire.OptDSS
			}
		}
		return true
	}
	l.transfer(l.a, l.b, 400_000, 5*time.Minute, nil)
	require.Equal(t, reason.FallbackNone, l.a.conn.Fallback())
}
