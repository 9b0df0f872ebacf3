package mpconn

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func (e *end) closeWrite() { e.conn.CloseWrite(e.lab.now); e.pump() }
func (e *end) close()      { e.conn.Close(e.lab.now); e.pump() }

// RFC 8684, Section 3.3.3: DATA_FIN both ways, then FIN on every subflow.
func TestOrderlyClose(t *testing.T) {
	l := joined(t, 1)
	l.transfer(l.a, l.b, 100_000, time.Minute, nil)
	l.a.closeWrite()
	l.run("eof at b", time.Second, func() bool { l.b.readAll(); return l.b.conn.EOF() })
	require.Equal(t, StateCloseWait, l.b.conn.State())
	for _, s := range l.a.sent {
		require.Zero(t, s.Flags&wire.FIN, "no FIN while the peer may still send")
	}
	// The other half goes on.
	l.transfer(l.b, l.a, 100_000, time.Minute, nil)
	require.Equal(t, StateFinWait2, l.a.conn.State())
	l.b.closeWrite()
	l.run("eof at a", time.Second, func() bool { l.a.readAll(); return l.a.conn.EOF() })
	l.wantClosed(reason.CloseDone, reason.CloseDone)
	for _, e := range []*end{l.a, l.b} {
		fins := map[string]bool{}
		for _, s := range e.sent {
			if s.Flags&wire.FIN != 0 {
				fins[s.Src.String()] = true
			}
			require.Zero(t, s.Flags&wire.RST)
		}
		require.Len(t, fins, 2, "a FIN on every subflow of %s", e.name)
	}
}

// fins returns the FINs an end sent, and how many of them had a DATA_FIN with them.
func (e *end) fins() (all []wire.Segment, together int) {
	for _, s := range e.sent {
		if s.Flags&wire.FIN != 0 {
			all = append(all, s)
			if s.Has&wire.OptDSS != 0 && s.DSS.Flags&wire.DSSFin != 0 {
				together++
			}
		}
	}
	return all, together
}

// RFC 8684, Section 3.3.3: with nothing outstanding a FIN may take the DATA_FIN
// along, and three packets a subflow are all that the end takes.
func TestEndTogether(t *testing.T) {
	l := newLab(t, 1, 2)
	l.a.cfg.Subflow.PutOff, l.b.cfg.Subflow.PutOff = true, true
	l.connect()
	l.prove()
	l.join(1)
	l.transfer(l.a, l.b, 100_000, time.Minute, nil)
	l.idle(time.Second)
	l.a.sent, l.b.sent = nil, nil
	l.a.close()
	l.run("eof at b", time.Second, func() bool { return l.b.conn.EOF() })
	l.idle(time.Millisecond) // and the FINs
	l.b.close()
	l.wantClosed(reason.CloseDone, reason.CloseDone)
	all, together := l.a.fins()
	require.Len(t, all, 2)
	require.Equal(t, 2, together, "on every subflow")
	for _, s := range all {
		require.EqualValues(t, 0, s.DSS.SSN)
		require.EqualValues(t, 1, s.DSS.Len)
	}
	require.Len(t, l.a.sent, 4, "a FIN and the last ACK on every subflow")
	require.Len(t, l.b.sent, 2)
}

// While data is outstanding, or more may come, the DATA_FIN goes alone.
func TestEndNotTogether(t *testing.T) {
	for name, end := range map[string]func(l *lab){
		"data outstanding": func(l *lab) { l.a.write(1000); l.a.close() },
		"half":             func(l *lab) { l.a.closeWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			l := joined(t, 1)
			end(l)
			l.run("eof at b", time.Second, func() bool { l.b.readAll(); return l.b.conn.EOF() })
			l.b.close()
			l.run("eof at a", time.Second, func() bool { return l.a.conn.EOF() })
			l.a.close()
			l.wantClosed(reason.CloseDone, reason.CloseDone)
			_, together := l.a.fins()
			require.Zero(t, together)
		})
	}
}

// A subflow that is closed alone while data is outstanding elsewhere does not end the
// stream with it.
func TestFINAloneBesideDataFin(t *testing.T) {
	l := joined(t, 1)
	l.a.write(1000)
	l.a.close()
	l.a.conn.leave(l.now, l.a.conn.flows[1])
	l.a.pump()
	all, together := l.a.fins()
	require.Len(t, all, 1)
	require.Zero(t, together)
	l.run("eof at b", time.Second, func() bool { l.b.readAll(); return l.b.conn.EOF() })
	require.Equal(t, l.a.wrote, l.b.read)
}

// RFC 8684, Section 3.3.3: a DATA_FIN without payload has SSN 0 and length 1.
func TestDataFinForm(t *testing.T) {
	const idsnA = 0xf5a101d3d29d6f72
	l := newLab(t, 1, 1)
	l.a.cfg.Checksum = true
	l.connect()
	l.prove()
	for l.a.wrote < 5 {
		l.a.write(1)
	}
	l.idle(time.Second)
	l.b.readAll()
	l.a.closeWrite()
	var fin *wire.Segment
	for _, s := range l.a.carrying(wire.OptDSS) {
		if s.DSS.Flags&wire.DSSFin != 0 {
			fin = &s
		}
	}
	require.NotNil(t, fin)
	require.EqualValues(t, uint64(idsnA+6), fin.DSS.DSN)
	require.EqualValues(t, 0, fin.DSS.SSN)
	require.EqualValues(t, 1, fin.DSS.Len)
	require.EqualValues(t, 0xc673, fin.DSS.Checksum, "computed by hand from RFC 8684, Section 3.3.1")
}

// A lost DATA_FIN, or its lost DATA_ACK, is repeated.
func TestDataFinLost(t *testing.T) {
	for drop := range 4 {
		l := joined(t, 1)
		n := 0
		for _, p := range l.paths {
			p.box = func(_ *end, seg *wire.Segment) bool {
				n++
				return n-1 != drop
			}
		}
		l.a.close()
		l.run("eof", 10*time.Second, func() bool { return l.b.conn.EOF() })
		l.b.close()
		l.wantClosed(reason.CloseDone, reason.CloseDone)
	}
}

// Data written before Close arrives although one path is dead.
func TestCloseDelivers(t *testing.T) {
	l := joined(t, 2)
	l.transfer(l.a, l.b, 200_000, time.Minute, nil)
	l.a.write(300_000)
	l.paths[1].down = true
	l.a.close()
	l.run("all data", time.Minute, func() bool { l.b.readAll(); return l.b.conn.EOF() })
	require.Equal(t, l.a.wrote, l.b.read)
}

func TestSimultaneousClose(t *testing.T) {
	l := joined(t, 1)
	l.a.close()
	l.b.close()
	l.wantClosed(reason.CloseDone, reason.CloseDone)
}

// RFC 8684, Section 3.5: MP_FASTCLOSE carries the receiver's key and ends the
// whole connection.
func TestAbort(t *testing.T) {
	l := joined(t, 1)
	l.a.conn.Abort(l.now)
	l.a.pump()
	l.wantClosed(reason.CloseLocalReset, reason.CloseFastClose)
	rst := l.a.carrying(wire.OptFastClose)
	require.Len(t, rst, 2, "on every subflow")
	require.Equal(t, [8]byte(keyB), rst[0].FastClose)
	require.True(t, rst[0].Flags.Has(wire.RST))
}

// RFC 8684, Section 3.5: a wrong key has no effect on the connection.
func TestFastCloseForged(t *testing.T) {
	l := joined(t, 1)
	l.paths[1].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a {
			seg.Has |= wire.OptFastClose
			seg.Has &^= wire.OptDSS
			seg.FastClose = keyA
		}
		return true
	}
	l.transfer(l.b, l.a, 300_000, time.Minute, nil)
	require.False(t, l.b.conn.Closed())
	require.NotZero(t, l.b.conn.Info().Stats.Drops[reason.DropKey])
}

// RFC 9293, Section 3.6.1: closing with unread data resets.
func TestCloseWithUnreadData(t *testing.T) {
	l := joined(t, 1)
	l.a.write(1000)
	l.run("arrival", time.Second, func() bool { return l.b.conn.Readable() == 1000 })
	l.b.close()
	l.wantClosed(reason.CloseFastClose, reason.CloseLocalReset)
}

// Data that arrives after Close resets.
func TestDataAfterClose(t *testing.T) {
	l := joined(t, 1)
	l.b.close()
	l.idle(100 * time.Millisecond)
	l.a.write(1000)
	l.wantClosed(reason.CloseFastClose, reason.CloseLocalReset)
}

// RFC 8684, Section 4: a RST ends its subflow only. Without any subflow the
// connection waits for one.
func TestOrphanIsRescued(t *testing.T) {
	l := joined(t, 3)
	l.a.write(200_000)
	require.True(t, l.a.conn.CloseSubflow(l.now, 1, reason.ResetPerformance))
	l.a.pump()
	l.a.conn.FailSubflow(l.now, 0)
	l.a.pump()
	require.Zero(t, l.a.conn.Info().Subflows)
	l.idle(time.Second)
	require.False(t, l.a.conn.Closed())
	l.b.conn.FailSubflow(l.now, 0)
	l.b.pump()
	id, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(1)})
	require.True(t, ok)
	require.Equal(t, 2, id, "ids only grow")
	l.a.pump()
	l.run("rescue", 10*time.Second, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
}

// A path on which handshakes pass, but no data, does not keep a connection
// alive for longer than none.
func TestOrphanOnPathWithoutData(t *testing.T) {
	l := newLab(t, 3, 2)
	l.a.cfg.OrphanTimeout = 5 * time.Second
	l.connect()
	l.prove()
	l.idle(200 * time.Millisecond) // the DATA_ACK is in
	l.paths[1].box = func(_ *end, seg *wire.Segment) bool { return seg.PayloadLen() == 0 }
	l.paths[0].down = true
	l.a.write(10_000)
	l.a.conn.FailSubflow(l.now, 0)
	l.a.pump()
	start := l.now
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 })
	l.run("end", time.Minute, func() bool { return l.a.conn.Closed() })
	require.Equal(t, reason.CloseAddressGone, l.a.conn.Err())
	require.Equal(t, 5*time.Second, l.now.Sub(start))
}

// lost returns the n-th event of a lost subflow.
func (e *end) lost(n int) Event {
	for _, ev := range e.events {
		if ev.Kind == EventSubflowLost {
			if n == 0 {
				return ev
			}
			n--
		}
	}
	return Event{}
}

// Two such paths, of which one is always up while the other is being replaced,
// do not keep it alive either. Guard: removeFlow starts the orphan timer when a
// subflow goes that has brought nothing across.
func TestOrphanOnPathsWithoutData(t *testing.T) {
	l := newLab(t, 3, 3)
	l.paths[1].delay = 400 * time.Millisecond // its subflow outlives others
	l.a.cfg.OrphanTimeout = 20 * time.Second
	l.a.cfg.Subflow.Retries = 3
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", 3*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 })
	l.idle(time.Second)
	for _, p := range l.paths {
		p.box = func(_ *end, seg *wire.Segment) bool { return seg.PayloadLen() == 0 }
	}
	l.a.write(100_000)
	free, lost := 2, 0
	var first mono.Time
	l.run("end", 10*time.Minute, func() bool {
		for ; lost < l.a.count(EventSubflowLost) && !l.a.conn.Closed(); lost++ {
			gone := l.a.lost(lost)
			first = cmp.Or(first, l.now)
			l.join(free)
			free = int(gone.Local.Addr().As4()[2])
		}
		return l.a.conn.Closed()
	})
	require.Greater(t, lost, 1, "subflows came and went")
	require.Less(t, l.now.Sub(first), 25*time.Second)
	require.Equal(t, reason.CloseTimeout, l.a.conn.Err())
}

// A connection without a subflow whose peer's window is closed has nothing to
// get acknowledged: a new subflow is all it needs to live on. Guard: what waits
// behind the window does not count in awaitsDataAck.
func TestOrphanRescuedBehindClosedWindow(t *testing.T) {
	l := newLab(t, 3, 2)
	l.a.cfg.OrphanTimeout, l.b.cfg.OrphanTimeout = 5*time.Second, 5*time.Second
	l.b.cfg.ReadBuffer = 64 << 10
	l.connect()
	l.prove()
	for range 4 {
		l.a.write(64 << 10)
		l.idle(5 * time.Second)
	}
	l.a.conn.FailSubflow(l.now, 0)
	l.b.conn.FailSubflow(l.now, 0)
	l.a.pump()
	l.b.pump()
	l.join(1)
	l.idle(time.Minute)
	require.False(t, l.a.conn.Closed())
	l.run("rest", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
}

func TestOrphanTimeout(t *testing.T) {
	l := newLab(t, 3, 2)
	l.a.cfg.OrphanTimeout, l.b.cfg.OrphanTimeout = 5*time.Second, 5*time.Second
	l.connect()
	l.prove()
	l.join(1)
	l.idle(time.Second)
	for id := range 2 {
		l.a.conn.FailSubflow(l.now, id)
		l.b.conn.FailSubflow(l.now, id)
	}
	l.a.pump()
	l.b.pump()
	start := l.now
	l.wantClosed(reason.CloseAddressGone, reason.CloseAddressGone)
	require.Equal(t, 5*time.Second, l.now.Sub(start))
}

// A half-closed plain connection waits for the other half as long as it takes.
func TestHalfClosePlain(t *testing.T) {
	l := newLab(t, 1, 1)
	l.b.cfg.Plain = true
	l.connect()
	l.a.closeWrite()
	l.run("eof", time.Second, func() bool { return l.b.conn.EOF() })
	l.idle(10 * time.Minute)
	l.transfer(l.b, l.a, 10_000, time.Minute, nil)
	l.b.close()
	l.wantClosed(reason.CloseDone, reason.CloseDone)
}

// A SYN that meets nobody times out; the connection never was.
func TestDialTimeout(t *testing.T) {
	l := newLab(t, 1, 1)
	l.paths[0].down = true
	l.dial()
	l.run("timeout", 10*time.Minute, func() bool { return l.a.conn.Closed() })
	require.Equal(t, reason.CloseTimeout, l.a.conn.Err())
	require.Zero(t, l.a.count(EventConnected))
}
