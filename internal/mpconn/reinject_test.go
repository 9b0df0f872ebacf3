package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// Bytes that a subflow acknowledged before it died, but that never were
// DATA_ACKed, come again at once when the data-level timer fires, not an
// initial window each time. The guard is lostTo in dataTimeout.
func TestAcknowledgedBytesLostWithSubflow(t *testing.T) {
	l := joined(t, 8)
	// On path 1 mappings vanish: b's subflow acknowledges what its connection
	// cannot use.
	l.strip(1, l.a)
	for l.a.wrote < 150_000 {
		l.a.write(150_000 - l.a.wrote)
	}
	var lost int
	l.run("loss", 10*time.Second, func() bool {
		l.b.readAll()
		lost = int(l.a.conn.AppendSubflows(nil)[1].TCP.BytesAcked)
		return lost > 40_000 || l.a.count(EventSubflowLost) > 0
	})
	for _, e := range []*end{l.a, l.b} {
		e.conn.FailSubflow(l.now, 1)
		e.pump()
	}
	require.Greater(t, lost, 40_000)
	start := l.now
	l.run("all", 10*time.Second, func() bool { l.b.readAll(); return l.b.read == l.a.wrote })
	require.Less(t, l.now.Sub(start), 450*time.Millisecond, "one data-level timeout and a round trip")
}

// RFC 8684, Section 3.3.6: the data-level timer waits for the slowest subflow
// with data in flight and is stopped by the DATA_ACK: data that merely takes
// long is not sent twice.
func TestDataTimerWaitsForSlowPath(t *testing.T) {
	l := newLab(t, 9, 2)
	l.paths[1].delay = 400 * time.Millisecond
	l.a.schedule("minrtt-plain")
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", 10*time.Second, func() bool { return l.a.count(EventSubflowUp) == 2 && l.b.count(EventSubflowUp) == 2 })
	l.transfer(l.a, l.b, 1_000_000, time.Minute, nil)
	l.idle(5 * time.Second)
	require.NotZero(t, l.a.conn.AppendSubflows(nil)[1].TCP.BytesSent)
	require.Zero(t, l.a.conn.Info().Stats.BytesReinjected)
}

// Oddities are counted once for each time they happen.
func TestOddities(t *testing.T) {
	l := newLab(t, 1, 2)
	l.connect()
	l.prove()
	l.join(1)
	l.run("join", time.Second, func() bool { return l.b.count(EventSubflowUp) == 2 })
	require.Zero(t, l.b.conn.Info().Stats.Oddities)

	// The first segment is lost, all others pass: on the other path they are
	// out of order, each behind the one before.
	lost := false
	l.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if from == l.a && seg.PayloadLen() > 0 && !lost {
			lost = true
			return false
		}
		return true
	}
	l.paths[1].delay = 30 * time.Millisecond
	l.transfer(l.a, l.b, 40_000, time.Minute, nil)
	l.idle(time.Second)
	got := l.b.conn.Info().Stats
	require.True(t, lost)
	require.NotZero(t, got.OutOfOrder)
	require.Equal(t, got.OutOfOrder, got.OutOfOrderTail, "nothing came between")
	require.Equal(t, got.OutOfOrder-1, got.OutOfOrderMerged, "each goes on where the one before ended")
	require.Zero(t, got.Duplicates)

	// A path that is silent for a while goes stale once, and recovers once;
	// what was reinjected comes twice.
	l.paths[0].box = nil
	l.paths[0].down = true
	l.transfer(l.a, l.b, 100_000, time.Minute, nil)
	require.EqualValues(t, 1, l.a.conn.Info().Stats.Stale)
	require.Zero(t, l.a.conn.Info().Stats.Recovered)
	l.paths[0].down = false
	l.idle(20 * time.Second)
	require.EqualValues(t, 1, l.a.conn.Info().Stats.Stale)
	require.EqualValues(t, 1, l.a.conn.Info().Stats.Recovered)
	require.NotZero(t, l.b.conn.Info().Stats.Duplicates)
	require.Zero(t, l.a.conn.Info().Stats.FallbacksFailed)
}
