package mpconn

import (
	"cmp"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// purse is a Budget that counts.
type purse struct{ left, least int }

func (p *purse) Reserve(n int) bool {
	if n > p.left {
		return false
	}
	p.left -= n
	p.least = min(p.least, p.left)
	return true
}

func (p *purse) Release(n int) { p.left += n }

// Buffers begin with 256 KiB and follow the product of rate and round trip, up
// to their ceiling, at both ends.
func TestBuffersGrow(t *testing.T) {
	l := newLab(t, 1, 1)
	l.paths[0].delay = 100 * time.Millisecond
	l.a.cfg.MaxBuffer, l.b.cfg.MaxBuffer = 4<<20, 4<<20
	l.connect()
	l.prove()
	require.Equal(t, 256<<10, l.a.conn.Info().WriteBuffer)
	require.Equal(t, 256<<10, l.b.conn.Info().ReadBuffer)
	start := l.now
	l.transfer(l.a, l.b, 15_000_000, time.Minute, nil)
	// 1.3 MB a second is all that 256 KiB allow.
	require.Less(t, l.now.Sub(start), 5*time.Second)
	require.Greater(t, l.a.conn.Info().WriteBuffer, 2<<20)
	require.Greater(t, l.b.conn.Info().ReadBuffer, 2<<20)
	require.LessOrEqual(t, l.a.conn.Info().WriteBuffer, 4<<20)
	require.LessOrEqual(t, l.b.conn.Info().ReadBuffer, 4<<20)
	require.Equal(t, 256<<10, l.b.conn.Info().WriteBuffer, "nothing went that way")
	require.Equal(t, 256<<10, l.a.conn.Info().ReadBuffer)
}

// After 10 s without use a send buffer is as it began and the budget has its
// memory back; a receive buffer keeps what the peer was promised. Both grow
// again.
func TestIdleBuffersShrink(t *testing.T) {
	for _, plain := range []bool{false, true} {
		p := &purse{left: 32 << 20}
		l := newLab(t, 6, 1)
		l.paths[0].delay = 100 * time.Millisecond
		l.a.cfg.Budget, l.b.cfg.Budget = p, p
		l.a.cfg.Plain, l.b.cfg.Plain = plain, plain
		l.connect()
		if !plain {
			l.prove()
		}
		for range 2 {
			l.transfer(l.a, l.b, 15_000_000, time.Minute, nil)
			require.Greater(t, l.a.conn.Info().WriteBuffer, 2<<20)
			l.idle(25 * time.Second)
			require.Equal(t, 256<<10, l.a.conn.Info().WriteBuffer)
			got := l.b.conn.Info()
			require.GreaterOrEqual(t, got.ReadBuffer, got.Window)
			require.Equal(t, 32<<20, p.left+got.ReadBuffer-256<<10, "the budget lends what buffers have beyond their beginning")
		}
	}
}

// A reader that is slow, or pauses, is not given more; a size that was asked for
// stays.
func TestBuffersStay(t *testing.T) {
	l := newLab(t, 2, 1)
	l.connect()
	l.prove()
	buf := make([]byte, 20_000)
	for range 100 {
		l.a.write(100_000)
		l.idle(100 * time.Millisecond) // ten round trips
		l.b.read += l.b.conn.Read(l.now, buf)
		l.b.pump()
	}
	require.Equal(t, 256<<10, l.b.conn.Info().ReadBuffer)

	l = newLab(t, 2, 1)
	l.a.cfg.WriteBuffer, l.b.cfg.ReadBuffer = 300_000, 200_000
	l.connect()
	l.prove()
	l.transfer(l.a, l.b, 5_000_000, time.Minute, nil)
	require.Equal(t, 300_000, l.a.conn.Info().WriteBuffer)
	require.Equal(t, 200_000, l.b.conn.Info().ReadBuffer)
}

// A small send buffer is in use all the time, wherever its bytes lie in the
// blocks of memory, and so is a small window, whatever remains of it beside
// full segments: what is sent are full segments, and a window in each round
// trip. One that was counted in whole blocks held the writer back until all it
// had written was acknowledged.
func TestSmallBuffersAreUsed(t *testing.T) {
	const rtt, total = 100 * time.Millisecond, 2_000_000
	for _, tt := range []struct {
		plain       bool
		subflows    int
		write, read int
	}{
		{plain: true, subflows: 1, write: 25_000},
		{plain: true, subflows: 1, read: 25_000},
		{subflows: 1, write: 25_000},
		{subflows: 1, write: 50_000},
		{subflows: 1, read: 50_000},
		{subflows: 1, write: 40_000, read: 30_000},
		{subflows: 2, write: 50_000},
		{subflows: 2, read: 50_000},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			l := newLab(t, 7, tt.subflows)
			for _, p := range l.paths {
				p.delay = rtt / 2
			}
			l.a.cfg.Plain, l.b.cfg.Plain = tt.plain, tt.plain
			l.a.cfg.WriteBuffer, l.b.cfg.ReadBuffer = tt.write, tt.read
			l.connect()
			l.prove()
			if tt.subflows > 1 {
				l.join(1)
				l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
			}
			l.transfer(l.a, l.b, 100_000, time.Minute, nil) // slow start
			before, begin := len(l.a.sent), l.now
			l.transfer(l.a, l.b, total, time.Minute, nil)
			window := min(cmp.Or(tt.write, tt.read), cmp.Or(tt.read, tt.write))
			require.Less(t, l.now.Sub(begin).Seconds(), 1.25*rtt.Seconds()*total/float64(window))
			mss := l.a.conn.flows[0].tcp.MSS()
			// Some end with what was written at once, and the last.
			require.Less(t, len(l.a.sent)-before, total/mss*21/20)
		})
	}
}

// What was promised is kept: the right edge of the window never moves left,
// while buffers grow and a reader comes and goes.
func TestWindowNeverShrinks(t *testing.T) {
	l := joined(t, 3)
	l.paths[1].delay = 40 * time.Millisecond
	l.transfer(l.a, l.b, 3_000_000, time.Minute, nil)
	for range 20 {
		l.a.write(400_000)
		l.idle(30 * time.Millisecond)
	}
	l.run("rest", time.Minute, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	edge := uint64(0)
	shift := uint8(0)
	for _, s := range l.b.sent {
		if s.Has&wire.OptWScale != 0 {
			shift = s.WScale
			continue
		}
		if s.Has&wire.OptDSS != 0 && s.DSS.Ack != 0 {
			// Rounding to the scale may take off less than one unit.
			got := s.DSS.Ack + uint64(s.Wnd)<<shift
			require.GreaterOrEqual(t, got+1<<shift, edge)
			edge = max(edge, got)
		}
	}
}

// Connections share a budget: none goes beyond it, and all of it comes back
// when they end, however they end.
func TestBudget(t *testing.T) {
	for _, abort := range []bool{false, true} {
		p := &purse{left: 1 << 20, least: 1 << 20}
		l := newLab(t, 4, 1)
		l.paths[0].delay = 100 * time.Millisecond
		l.a.cfg.Budget, l.b.cfg.Budget = p, p
		l.connect()
		l.prove()
		l.transfer(l.a, l.b, 10_000_000, time.Minute, nil)
		require.Less(t, p.least, 512<<10, "it was used")
		require.GreaterOrEqual(t, p.least, 0)
		if abort {
			l.a.conn.Abort(l.now)
			l.a.pump()
		}
		l.a.close()
		l.b.readAll()
		l.b.close()
		l.run("end", time.Minute, func() bool { return l.a.conn.Closed() && l.b.conn.Closed() })
		l.a.close()
		l.b.close()
		require.Equal(t, 1<<20, p.left)
	}
	// A size that was asked for is taken from the budget, as far as it goes.
	p := &purse{left: 1 << 20}
	l := newLab(t, 4, 1)
	l.b.cfg.Budget, l.b.cfg.ReadBuffer, l.b.cfg.WriteBuffer = p, 1<<20, 1<<20
	l.connect()
	require.Equal(t, 1<<20, l.b.conn.Info().ReadBuffer+l.b.conn.Info().WriteBuffer-256<<10)
}

// What the peer has, but a slow subflow has yet to get acknowledged, is kept.
// That is as much as the send buffer again at most, and comes out of the budget;
// where that is empty, the beginning of a buffer is still granted twice, and a
// subflow that gets no answer stops nobody. Guards: coverPinned, and that
// WriteRoom counts memory.
func TestPinnedMemoryIsBounded(t *testing.T) {
	const slack = 3 * stream.DefaultBlock // what a Write takes may begin one more
	for _, budget := range []int{0, 1 << 20, 64 << 20} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			p := &purse{left: budget}
			l := newLab(t, 8, 2)
			l.a.cfg.Budget, l.a.cfg.MaxBuffer = p, 2<<20
			l.a.schedule("roundrobin")
			l.connect()
			l.prove()
			l.join(1)
			l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
			l.transfer(l.a, l.b, 3_000_000, time.Minute, nil)
			// What comes on path 1 is taken and DATA_ACKed on the other, but the
			// subflow does not hear of it.
			l.paths[1].box = func(from *end, seg *wire.Segment) bool { return from == l.a || seg.PayloadLen() > 0 }
			most, start := 0, l.now
			l.transfer(l.a, l.b, 20_000_000, time.Minute, func() {
				i := l.a.conn.Info()
				taken := budget - p.left
				require.LessOrEqual(t, i.SendMemory, 2*i.WriteBuffer+slack)
				require.LessOrEqual(t, i.SendMemory, 2*startBuffer+taken+slack, "beyond what is granted it is paid for")
				most = max(most, i.SendMemory-i.Unsent-i.Unacked)
			})
			require.Greater(t, most, 200_000, "much was pinned")
			require.Less(t, l.now.Sub(start), 30*time.Second)
			l.paths[1].box = nil
			l.run("subflow", time.Minute, func() bool { return l.a.conn.Info().SendMemory == 0 })
			grown := l.a.conn.Info().WriteBuffer + l.a.conn.Info().ReadBuffer - 2*startBuffer
			require.Equal(t, budget, p.left+grown, "what was pinned is given back")
			l.a.write(1000)
			l.a.conn.Abort(l.now)
			l.a.pump()
			require.Equal(t, budget, p.left)
		})
	}
}

// Subflows that die one after the other may keep more than the send buffer twice.
// RFC 8684, Section 3.6, code 4: they are reset before they stop the writer.
// Guard: unpin.
func TestPinnedMemoryStopsNobody(t *testing.T) {
	l := newLab(t, 9, 4)
	l.a.cfg.WriteBuffer = 300_000
	l.a.schedule("roundrobin")
	l.connect()
	l.prove()
	for i := range 3 {
		l.join(i + 1)
	}
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 4 && l.b.count(EventSubflowUp) == 4 })
	l.transfer(l.a, l.b, 3_000_000, time.Minute, nil)
	start := l.now
	for i := range 3 {
		l.paths[i+1].box = func(from *end, seg *wire.Segment) bool { return from == l.a || seg.PayloadLen() > 0 }
		l.transfer(l.a, l.b, 3_000_000, time.Minute, func() {
			require.LessOrEqual(t, l.a.conn.Info().SendMemory, 2*300_000+3*stream.DefaultBlock)
		})
	}
	require.Less(t, l.now.Sub(start), 20*time.Second)
	rst := append(l.a.resets(1), l.a.resets(2)...)
	require.NotEmpty(t, rst)
	require.Equal(t, wire.TCPRst{Reason: reason.ResetOutstanding, Transient: true}, rst[0].TCPRst)
	for _, f := range l.a.conn.AppendSubflows(nil) {
		if f.Close == reason.CloseLocalReset {
			require.Greater(t, f.TCP.Backoff, 1, "one timeout alone may be a queue")
		}
	}
}

// Bytes received beyond a hole do not make the buffer grow: two paths of which
// one is slow keep much out of order, again and again, and the limit stays with
// what is read. Guard: tuneReceive makes room for what one round trip brings the
// reader, not for what the queue holds besides.
func TestOutOfOrderDoesNotGrowBuffer(t *testing.T) {
	l := newLab(t, 5, 2)
	l.paths[1].delay = 300 * time.Millisecond
	l.a.cfg.Scheduler = scheduler.RoundRobin(1)
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", 10*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	// 100 KB each 100 ms are up to 700 KB a longest round trip.
	most := 0
	for range 100 {
		l.a.write(100_000)
		l.idle(100 * time.Millisecond)
		l.b.readAll()
		most = max(most, l.b.conn.Info().ReadBuffer)
	}
	require.LessOrEqual(t, most, 8*700_000)
}

// Subflows that join and die at any time during the measurement: no round trip
// is known yet, or none any more, or it is 0; no division minds. Guard:
// tuneReceive waits for a round trip, which is never taken for 0.
func TestTuningMeetsJoin(t *testing.T) {
	for step := range 40 {
		l := newLab(t, 6, 2)
		for _, p := range l.paths {
			p.delay = time.Duration(step%3) * time.Microsecond
		}
		l.connect()
		l.a.write(1)
		l.b.write(1)
		n, failed := 0, false
		l.run("bytes", time.Minute, func() bool {
			if n++; n == step+2 {
				_, _ = l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(1), Remote: l.b.at(1)})
				l.a.pump()
			}
			if n > 2*step && !failed && l.a.conn.Info().Subflows == 2 && l.b.conn.Info().Subflows == 2 {
				failed = true
				for _, e := range []*end{l.a, l.b} {
					e.conn.FailSubflow(l.now, 0)
					e.pump()
				}
			}
			l.a.write(300_000 - l.a.wrote)
			l.a.readAll()
			l.b.readAll()
			require.LessOrEqual(t, l.b.conn.Info().ReadBuffer, 4*300_000)
			require.GreaterOrEqual(t, l.b.conn.receiveRTT(), minTuneRTT)
			return l.b.read == 300_000
		})
	}
}

// linuxEdge is the right edge of the data window as Linux sees it: the DATA_ACK of
// a segment and the window that its subflow goes by, which is not made smaller
// by a segment that neither acknowledges nor sends anything new.
type linuxEdge struct {
	shift uint8
	flows map[netip.AddrPort]*linuxWindow
}

type linuxWindow struct {
	ack, seq uint32
	wnd      uint16
}

// take returns the edge after a segment; 0 = it has none.
func (x *linuxEdge) take(s *wire.Segment) uint64 {
	if s.Has&wire.OptWScale != 0 {
		x.shift = s.WScale
	}
	if s.Flags&(wire.SYN|wire.RST) != 0 {
		return 0
	}
	w := x.flows[s.Src]
	if w == nil {
		w = &linuxWindow{ack: uint32(s.Ack) - 1}
		x.flows[s.Src] = w
	}
	if int32(uint32(s.Ack)-w.ack) > 0 || int32(uint32(s.Seq)-w.seq) > 0 ||
		uint32(s.Seq) == w.seq && (s.Wnd > w.wnd || s.Wnd == 0) {
		w.seq, w.wnd = uint32(s.Seq), s.Wnd
	}
	if int32(uint32(s.Ack)-w.ack) > 0 {
		w.ack = uint32(s.Ack)
	}
	if s.Has&wire.OptDSS == 0 || s.DSS.Flags&wire.DSSAck == 0 {
		return 0
	}
	return s.DSS.Ack + uint64(w.wnd)<<x.shift
}

// Linux takes the DATA_ACK of a duplicate ACK and not its smaller window. What
// it may send then must still be accepted, also when the window shrinks because
// of what another subflow brings. Guard: advertise keeps the window of such a
// segment, and putDataAck acknowledges less.
func TestDuplicateACKsDoNotWidenTheWindow(t *testing.T) {
	l := newLab(t, 5, 2)
	l.b.cfg.ReadBuffer = 200_000
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.paths[1].delay = 40 * time.Millisecond // what it brings is behind what the other has lost
	l.paths[0].loss, l.paths[1].reorder, l.paths[1].duplicate = 0.05, 0.05, 0.05
	x := linuxEdge{flows: make(map[netip.AddrPort]*linuxWindow)}
	seen, duplicates := 0, 0
	look := func() {
		for ; seen < len(l.b.sent); seen++ {
			s := &l.b.sent[seen]
			if edge := x.take(s); edge != 0 {
				require.LessOrEqual(t, edge, uint64(l.b.conn.rcv.dsn(l.b.conn.rcv.adv)), "%v", s)
			}
			if seen > 0 && s.Ack == l.b.sent[seen-1].Ack {
				duplicates++
			}
		}
	}
	for l.b.read < 3_000_000 {
		l.a.write(400_000)
		for range 20 {
			l.idle(3 * time.Millisecond)
			look()
		}
		l.b.readAll()
	}
	require.Greater(t, duplicates, 20)
	require.Zero(t, l.b.conn.Info().Stats.Drops[reason.DropDataWindow])
}
