package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
