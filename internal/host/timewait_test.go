package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
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
