package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// timeWait brings the server into TIME-WAIT with a plain TCP client and
// returns the client's last FIN.
func timeWait(t *testing.T, cfg host.Config, noTimestamps bool) (l *lab, fin *wire.Segment) {
	t.Helper()
	l = newLab(t, cfg)
	plain := config(t)
	plain.Plain = true
	plain.Subflow.NoTimestamps = noTimestamps
	c, s := l.connect(plain, l.listen(plain, 0))
	s.Close(l.now)
	l.advance(time.Second)
	c.Close(l.now)
	l.advance(time.Second)
	require.True(t, c.Closed() && s.Closed())
	require.Equal(t, 1, l.server.Counters().TimeWait)
	require.Zero(t, l.client.Counters().TimeWait)
	for _, seg := range l.client.sent {
		if seg.Flags.Has(wire.FIN) {
			fin = copyOf(seg)
		}
	}
	require.NotNil(t, fin)
	return l, fin
}

// A FIN that has the DATA_FIN with it may be acknowledged by a TIME-WAIT, which
// knows of no DATA_ACK: the connection is over all the same, well and at once.
func TestTimeWaitAnswersDataFin(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	l.advance(time.Second)
	c.Close(l.now)
	l.advance(10 * time.Millisecond)
	l.lost = func(seg *wire.Segment) bool { return seg.Dst == service }
	s.Close(l.now)
	l.run()
	require.True(t, c.Closed())
	require.False(t, s.Closed(), "the last ACK was lost")
	l.lost = nil
	l.advance(5 * time.Second)
	require.True(t, s.Closed())
	require.Equal(t, reason.CloseDone, s.Err())
}

// RFC 9293, Section 3.10.7.4: "The only thing that can arrive in this state
// is a retransmission of the remote FIN. Acknowledge it, and restart the 2 MSL
// timeout."
func TestTimeWaitAcknowledgesARepeatedFIN(t *testing.T) {
	l, fin := timeWait(t, host.Config{}, false)
	last := l.server.sent[len(l.server.sent)-1]
	ends := l.server.Deadline()
	l.now = l.now.Add(20 * time.Second)

	require.Equal(t, host.VerdictReply, l.server.deliver(fin).Kind)
	got := l.server.poll()
	require.Equal(t, wire.ACK, got.Flags)
	require.Equal(t, fin.Seq+1, got.Ack)
	require.Equal(t, last.Seq, got.Seq)
	require.Equal(t, fin.TSVal, got.TSEcr)
	require.Equal(t, last.TSVal+uint32(l.now.Sub(ends.Add(-time.Minute))/time.Millisecond), got.TSVal)
	require.Equal(t, l.now.Add(time.Minute), l.server.Deadline(), "the wait starts again")

	l.server.HandleTimeout(l.now.Add(time.Minute - 1))
	require.Equal(t, 1, l.server.Counters().TimeWait)
	l.server.HandleTimeout(l.now.Add(time.Minute))
	require.Zero(t, l.server.Counters().TimeWait)
	l.server.deliver(fin)
	require.True(t, l.server.poll().Flags.Has(wire.RST), "then the tuple is free")
}

func TestTimeWaitIsSilentOtherwise(t *testing.T) {
	l, fin := timeWait(t, host.Config{}, false)
	ends := l.server.Deadline()
	l.now = l.now.Add(time.Second)
	for _, fl := range []wire.Flags{wire.RST, wire.RST | wire.ACK, wire.ACK} {
		seg := *fin
		seg.Flags = fl
		require.Equal(t, host.VerdictDrop, l.server.deliver(&seg).Kind)
	}
	require.Nil(t, l.server.poll())
	require.Equal(t, ends, l.server.Deadline())
	require.Equal(t, 1, l.server.Counters().TimeWait)
}

// RFC 6191, Section 2.
func TestTimeWaitGivesWayToANewerSYN(t *testing.T) {
	for _, tt := range []struct {
		name       string
		old, fresh bool // incarnations with timestamps
		seq        int  // relative to the old FIN's number + 1
		ts         int  // relative to the last timestamp
		accepted   bool
	}{
		{"newer timestamp, old number", true, true, -5000, 1, true},
		{"same timestamp, newer number", true, true, 1, 0, true},
		{"same timestamp, old number", true, true, -5000, 0, false},
		{"older timestamp, newer number", true, true, 5000, -1, false},
		{"timestamps before only, newer number", true, false, 1, 0, true},
		{"timestamps before only, old number", true, false, -1, 0, false},
		{"timestamps now only", false, true, -5000, 0, true},
		{"none, newer number", false, false, 1, 0, true},
		{"none, old number", false, false, -1, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, fin := timeWait(t, host.Config{}, !tt.old)
			last := l.server.sent[len(l.server.sent)-1]
			syn := &wire.Segment{Src: fin.Src, Dst: fin.Dst}
			syn.Header = wire.Header{Seq: fin.Seq.Add(1 + tt.seq), Flags: wire.SYN, Wnd: 65535}
			if tt.fresh {
				syn.Has = wire.OptTimestamps
				syn.TSVal = fin.TSVal + uint32(tt.ts)
			}
			if tt.fresh && !tt.old {
				l.relisten()
			}
			v := l.server.deliver(syn)
			got := l.server.poll()
			if !tt.accepted {
				require.Equal(t, host.VerdictDrop, v.Kind)
				require.Nil(t, got)
				require.Equal(t, 1, l.server.Counters().TimeWait)
				return
			}
			require.Equal(t, host.VerdictAccept, v.Kind)
			require.Equal(t, wire.SYN|wire.ACK, got.Flags)
			require.Equal(t, syn.Seq+1, got.Ack)
			// RFC 9293, Section 3.6.1: the initial number must be "larger than
			// the largest sequence number it used on the previous" one.
			require.True(t, last.Seq.Less(got.Seq))
			require.Zero(t, l.server.Counters().TimeWait)
		})
	}
}

// relisten replaces the service's listener by one that takes timestamps.
func (l *lab) relisten() {
	l.t.Helper()
	l.server.CloseListener(l.listener)
	l.listen(config(l.t), 0)
}

func TestTimeWaitTuplesAreNotDialedFrom(t *testing.T) {
	l, fin := timeWait(t, host.Config{}, false)
	_, err := l.server.Dial(l.now, host.DialArgs{Local: fin.Dst, Remote: fin.Src, Conn: config(t)})
	require.ErrorIs(t, err, host.ErrAddrInUse)
}

func TestTimeWaitIsBounded(t *testing.T) {
	plain := config(t)
	plain.Plain = true
	l := newLab(t, host.Config{MaxTimeWait: 2})
	ln := l.listen(plain, 0)
	for range 3 {
		c, s := l.connect(plain, ln)
		s.Close(l.now)
		l.run()
		c.Close(l.now)
		l.run()
		require.True(t, c.Closed() && s.Closed())
	}
	require.Equal(t, 2, l.server.Counters().TimeWait)
}

// cycle dials, closes from the client first, and forgets what the harness
// keeps of it.
func (l *lab) cycle(cfg host.ConnConfig, ln *host.Listener) (from uint16) {
	l.t.Helper()
	c, s := l.connect(cfg, ln)
	c.Close(l.now)
	l.run()
	s.Close(l.now)
	l.run()
	require.True(l.t, c.Closed() && s.Closed())
	for _, n := range []*node{l.client, l.server} {
		n.conns, n.sent = nil, nil
	}
	return c.LocalAddr().Port()
}

func TestTenThousandDialsAtOnce(t *testing.T) {
	for name, plain := range map[string]bool{"mptcp": false, "tcp": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, host.Config{})
			cfg := config(t)
			cfg.Plain = plain
			ln := l.listen(cfg, 0)
			for range 10_000 {
				l.cycle(cfg, ln)
			}
			require.Equal(t, 10_000, l.client.Counters().TimeWait)
			require.Zero(t, l.client.Counters().Conns+l.server.Counters().Conns)
		})
	}
}

// TestTenThousandDialsFromFewPorts needs each port a hundred times within the
// time that it takes a single TIME-WAIT to pass three times.
func TestTenThousandDialsFromFewPorts(t *testing.T) {
	l := newLab(t, host.Config{EphemeralLo: 40000, EphemeralHi: 40099})
	ln := l.listen(config(t), 0)
	used := make(map[uint16]int)
	for range 10_000 {
		used[l.cycle(config(t), ln)]++
		l.advance(20 * time.Millisecond)
	}
	require.Len(t, used, 100)
	require.LessOrEqual(t, l.client.Counters().TimeWait, 100)
}

func TestTimeWaitIsLeftOnlyWithTimestampsAndInTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		old    bool // incarnation with timestamps
		fresh  bool
		passed time.Duration
		ok     bool
	}{
		{"in time", true, true, time.Second, true},
		{"too early", true, true, 999 * time.Millisecond, false},
		{"none before", false, true, 10 * time.Second, false},
		{"none now", true, false, 10 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, host.Config{EphemeralLo: 40000, EphemeralHi: 40000})
			ln := l.listen(config(t), 0)
			cfg := config(t)
			cfg.Subflow.NoTimestamps = !tt.old
			c, s := l.connect(cfg, ln)
			c.Close(l.now)
			l.run()
			s.Close(l.now)
			l.run()
			last := l.client.sent[len(l.client.sent)-1]
			l.now = l.now.Add(tt.passed)
			cfg.Subflow.NoTimestamps = !tt.fresh
			_, err := l.client.Dial(l.now, host.DialArgs{Remote: service, Conn: cfg})
			if !tt.ok {
				require.ErrorIs(t, err, host.ErrNoPort)
				return
			}
			require.NoError(t, err)
			var syn wire.Segment
			l.client.Conns(func(c *host.Conn) { require.True(t, c.PollSegment(l.now, &syn)) })
			require.Equal(t, wire.SYN, syn.Flags)
			require.True(t, last.Seq.Less(syn.Seq), "the numbers go on")
			require.Positive(t, int32(syn.TSVal-last.TSVal), "and so does the clock")
		})
	}
}
