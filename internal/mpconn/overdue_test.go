package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// laggard has b acknowledge on its subflows only, until a sends something without
// payload that gets through.
func laggard(t *testing.T, lose int) (l *lab, questions *int) {
	l = joined(t, 1)
	l.transfer(l.a, l.b, 10_000, time.Minute, nil)
	l.idle(time.Second)
	known, asked := l.b.sent[len(l.b.sent)-1].DSS.Ack, 0
	for _, p := range l.paths {
		p.box = func(from *end, seg *wire.Segment) bool {
			switch {
			case from == l.a && seg.PayloadLen() == 0:
				asked++
				return asked > lose
			case from == l.b && asked <= lose:
				seg.DSS.Ack = known
			}
			return true
		}
	}
	return l, &asked
}

// acked is how long it takes until everything is acknowledged.
func (l *lab) acked() time.Duration {
	begin := l.now
	l.run("acknowledgement", time.Minute, func() bool { l.b.readAll(); return l.a.conn.outstanding() == 0 })
	return l.now.Sub(begin)
}

// A DATA_ACK that does not come along with the ACKs is asked for after two round
// trips of 20 ms more.
func TestDataAckIsAskedFor(t *testing.T) {
	l, questions := laggard(t, 0)
	l.a.write(2 * l.a.conn.flows[0].tcp.MSS()) // acknowledged at once
	require.InDelta(t, 80*time.Millisecond, l.acked(), float64(10*time.Millisecond))
	require.Equal(t, 1, *questions)
	require.Zero(t, l.a.conn.Info().Stats.BytesReinjected)
	// The next one that is late is asked for, too.
	require.Equal(t, overdueNot, l.a.conn.snd.overdue)
}

// A question that is lost is not repeated: bytes are sent again.
func TestDataIsSentAgainAfterQuestion(t *testing.T) {
	l, questions := laggard(t, 1)
	for _, p := range l.paths {
		box := p.box
		p.box = func(from *end, seg *wire.Segment) bool {
			if from == l.a && *questions == 1 && seg.PayloadLen() > 0 {
				*questions++ // b answers what is sent again
			}
			return box(from, seg)
		}
	}
	l.a.write(2 * l.a.conn.flows[0].tcp.MSS()) // acknowledged at once
	require.Less(t, l.acked(), 300*time.Millisecond)
	require.Equal(t, 2, *questions)
	require.EqualValues(t, 2*l.a.conn.flows[0].tcp.MSS(), l.a.conn.Info().Stats.BytesReinjected)
}
