package mpconn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// forge has an end receive a segment that its peer could have sent next on path
// 0, with what put changes.
func (l *lab) forge(to *end, put func(seg *wire.Segment)) {
	l.t.Helper()
	from := l.a
	if to == l.a {
		from = l.b
	}
	last, told := from.lastOn(0), to.lastOn(0)
	seg := wire.Segment{Src: from.at(0), Dst: to.at(0), Header: wire.Header{Seq: told.Ack, Ack: last.Ack, Flags: wire.ACK, Wnd: last.Wnd}}
	seg.Has = wire.OptTimestamps
	seg.TSVal, seg.TSEcr = last.TSVal, last.TSEcr
	put(&seg)
	to.conn.HandleSegment(l.now, to.tuples[[2]netip.AddrPort{seg.Dst, seg.Src}], &seg)
	to.pump()
}

// lastOn returns what an end sent last on a path.
func (e *end) lastOn(path int) wire.Segment {
	i := len(e.sent) - 1
	for e.sent[i].Src != e.at(path) {
		i--
	}
	return e.sent[i]
}

// relSSN is the relative number of the next byte that an end sends on path 0.
func (e *end) relSSN() uint32 {
	f := e.conn.flows[0]
	return f.lead.ssn(f.tcp.Pushed())
}

// The end of a stream lies neither before what has arrived nor beyond the window,
// and nothing comes behind it. Guards: handleDataFin's bounds, one each, and
// deliver's look at the DATA_FIN.
func TestDataFinBounds(t *testing.T) {
	for name, off := range map[string]int64{"past": -100, "beyond the window": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			l := proven(t, 1)
			l.transfer(l.a, l.b, 1000, time.Second, nil)
			l.idle(time.Second)
			before := l.b.conn.Info()
			l.forge(l.b, func(seg *wire.Segment) {
				seg.Has |= wire.OptDSS
				seg.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8 | wire.DSSFin, DSN: before.NextAck + uint64(off), Len: 1}
			})
			after := l.b.conn.Info()
			require.Equal(t, before.Stats.Drops[reason.DropDataWindow]+1, after.Stats.Drops[reason.DropDataWindow])
			require.Equal(t, before.State, after.State)
			require.Equal(t, before.NextAck, after.NextAck)
			l.transfer(l.a, l.b, 1000, time.Second, nil)
		})
	}
	t.Run("data behind it", func(t *testing.T) {
		l := proven(t, 1)
		l.a.closeWrite()
		l.run("eof", time.Second, l.b.conn.EOF)
		l.idle(time.Second)
		before := l.b.conn.Info()
		l.forge(l.b, func(seg *wire.Segment) {
			seg.Has |= wire.OptDSS
			seg.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: before.NextAck, SSN: l.a.relSSN(), Len: 100}
			seg.Payload = [][]byte{make([]byte, 100)}
		})
		after := l.b.conn.Info()
		require.Zero(t, after.Readable+after.OutOfOrder)
		require.Equal(t, before.Stats.Drops[reason.DropDataWindow]+1, after.Stats.Drops[reason.DropDataWindow])
	})
}

// A mapping that begins before the stream does, if only by a byte, is none.
// Guard: handleMapping's lower bound.
func TestMappingBeforeTheStream(t *testing.T) {
	l := proven(t, 1)
	first := uint64(keyA.IDSN()) + 1
	l.forge(l.b, func(seg *wire.Segment) {
		seg.Has |= wire.OptDSS
		seg.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: first - 1, SSN: l.a.relSSN(), Len: 100}
	})
	require.EqualValues(t, 1, l.b.conn.Info().Stats.Drops[reason.DropDataWindow])
	require.Empty(t, l.b.conn.flows[0].in.all())
}

// An MP_FAIL about data that was never sent, or that the peer has DATA_ACKed, has
// no effect, on an ACK or on a RST. Guards: the bounds in handleFail and
// handleFailReset.
func TestMPFailBounds(t *testing.T) {
	for _, off := range []int{-1000, 1 << 20} {
		l := summed(t, 1, 1)
		l.transfer(l.a, l.b, 3000, time.Second, nil)
		l.idle(time.Second)
		put := func(seg *wire.Segment) {
			seg.Has |= wire.OptMPFail
			seg.FailDSN = seq.DSN(l.a.conn.Info().NextDSN).Add(off)
		}
		l.forge(l.a, put)
		require.Equal(t, reason.FallbackNone, l.a.conn.Fallback())
		require.Empty(t, l.a.carrying(wire.OptMPFail))
		require.EqualValues(t, 1, l.a.conn.Info().Stats.Drops[reason.DropBadAck])
		l.forge(l.a, func(seg *wire.Segment) {
			put(seg)
			seg.Flags |= wire.RST
		})
		require.EqualValues(t, 2, l.a.conn.Info().Stats.Drops[reason.DropBadAck])
	}
}

// A peer that goes on without end while it owes the answer to an MP_FAIL cannot
// have us keep more than a window and a mapping. Guard: boundHeld.
func TestHeldWhileFailingIsBounded(t *testing.T) {
	l := newLab(t, 1, 1)
	l.a.cfg.Checksum, l.b.cfg.ReadBuffer = true, 60_000
	l.connect()
	l.prove()
	l.idle(time.Second)
	dsn, ssn := l.b.conn.Info().NextAck, l.a.relSSN()
	l.paths[0].box = func(*end, *wire.Segment) bool { return false }
	next := l.b.lastOn(0).Ack
	for i := range 200 {
		if len(l.b.resets(0)) > 0 {
			break
		}
		require.Less(t, i, 150, "held without end")
		l.forge(l.b, func(seg *wire.Segment) {
			seg.Seq = next.Add(1000 * i)
			seg.Has |= wire.OptDSS
			seg.DSS = wire.DSS{
				Flags: wire.DSSMap | wire.DSSDSN8, DSN: dsn + uint64(1000*i), SSN: ssn + uint32(1000*i), Len: 1000,
				HasChecksum: true, Checksum: 1,
			}
			seg.Payload = [][]byte{make([]byte, 1000)}
		})
	}
	require.NotZero(t, l.b.resets(0)[0].Has&wire.OptMPFail)
	require.Zero(t, l.b.conn.Readable())
}

// RFC 8684, Section 3.3: a checksum where none was agreed, or none where one was,
// resets the subflow also on the MP_CAPABLE that brings the first data. Guard:
// handleCapableData.
func TestChecksumPresenceOnFirstData(t *testing.T) {
	for _, agreed := range []bool{true, false} {
		l := newLab(t, 1, 1)
		l.a.cfg.Checksum = agreed
		l.connect()
		l.paths[0].box = func(_ *end, seg *wire.Segment) bool {
			if seg.Has&wire.OptMPCapable != 0 && seg.Capable.HasData {
				seg.Capable.HasChecksum = !agreed
			}
			return true
		}
		l.a.write(100)
		l.run("reset", time.Second, func() bool { return len(l.b.resets(0)) > 0 })
		require.Equal(t, reason.ResetMPTCP, l.b.resets(0)[0].TCPRst.Reason)
		require.EqualValues(t, 1, l.b.conn.Info().Stats.Drops[reason.DropMapping])
		require.Zero(t, l.b.conn.Readable())
	}
}

// MP_TCPRST says why there is a RST; without one it does nothing, and is counted.
func TestMPTCPRstWithoutRST(t *testing.T) {
	l := proven(t, 1)
	l.forge(l.a, func(seg *wire.Segment) {
		seg.Has |= wire.OptMPTCPRst
		seg.TCPRst.Reason = reason.ResetProhibited
	})
	require.EqualValues(t, 1, l.a.conn.Info().Stats.Drops[reason.DropState])
	l.transfer(l.a, l.b, 1000, time.Second, nil)
	require.Zero(t, l.a.count(EventSubflowLost)+l.b.count(EventSubflowLost))
}

// RFC 8684, Section 3.3.5: the right edge of the peer's window does not move left,
// and no DATA_ACK moves it that is of what was never sent. Guards: handleDataAck.
func TestForgedWindow(t *testing.T) {
	l := proven(t, 1)
	before := l.a.conn.Info()
	for i, ack := range []uint64{before.NextDSN, before.NextDSN + 1, before.NextDSN - 100} {
		l.forge(l.a, func(seg *wire.Segment) {
			seg.Has |= wire.OptDSS
			seg.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: ack}
			if i == 0 {
				seg.Wnd = 1
			}
		})
		after := l.a.conn.Info()
		require.Equal(t, before.SendWindow, after.SendWindow)
		require.EqualValues(t, i, after.Stats.Drops[reason.DropBadAck])
	}
}

// A peer that declares ever more mappings for bytes that do not come is bounded
// in what it has us remember. Guard: the bound in addMapping.
func TestMappingsAreBounded(t *testing.T) {
	l := proven(t, 1)
	dsn, ssn := l.b.conn.Info().NextAck, l.a.relSSN()
	l.paths[0].box = func(*end, *wire.Segment) bool { return false }
	for i := range minMappings + 100 {
		l.forge(l.b, func(seg *wire.Segment) {
			seg.Has |= wire.OptDSS
			seg.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: dsn + uint64(i), SSN: ssn + uint32(i), Len: 1}
		})
	}
	require.Len(t, l.b.conn.flows[0].in.all(), minMappings)
	require.EqualValues(t, 100, l.b.conn.Info().Stats.Drops[reason.DropMemory])
}

// So are the addresses that the peer withdrew. Guard: remove.
func TestWithdrawnAddressesAreBounded(t *testing.T) {
	l := proven(t, 1)
	for i := range 2 * maxRemoved {
		l.a.conn.addrs.remove(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	require.Len(t, l.a.conn.addrs.removed, maxRemoved)
	require.Contains(t, l.a.conn.addrs.removed, netip.AddrFrom4([4]byte{192, 0, 2, 2*maxRemoved - 1}))
}
