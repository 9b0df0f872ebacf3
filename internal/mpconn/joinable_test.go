package mpconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// refusesJoins checks that an end neither begins nor takes a join.
func (e *end) refusesJoins() {
	l := e.lab
	l.t.Helper()
	syn := joinSYN(e, 9)
	_, took := e.conn.HandleJoin(l.now, &syn)
	_, began := e.conn.Open(l.now, OpenArgs{Local: e.at(1), Remote: e.at(2)})
	require.False(l.t, took || began)
}

// A connection takes no join once it is over, while it waits for the answer to an
// MP_FASTCLOSE, or when both its streams are at an end and only subflows have to
// be closed. Guards: the conditions of Joinable, one each.
func TestEndedConnectionsTakeNoJoin(t *testing.T) {
	t.Run("over", func(t *testing.T) {
		l := proven(t, 3)
		l.a.conn.FailSubflow(l.now, 0)
		l.a.conn.HandleTimeout(l.now.Add(time.Hour)) // nobody came to its rescue
		l.a.pump()
		require.True(t, l.a.conn.Closed())
		l.a.refusesJoins()
	})
	t.Run("reset by the peer", func(t *testing.T) {
		l := proven(t, 3)
		l.b.conn.Abort(l.now)
		l.b.pump()
		l.run("end", time.Second, l.a.conn.Closed)
		l.a.refusesJoins()
	})
	t.Run("disowned by the peer", func(t *testing.T) {
		l := proven(t, 3)
		l.forge(l.a, func(seg *wire.Segment) {
			seg.Flags |= wire.RST
			seg.Has |= wire.OptMPTCPRst
			seg.TCPRst.Reason = reason.ResetProhibited
		})
		require.True(t, l.a.conn.Closed())
		l.a.refusesJoins()
	})
	t.Run("fast close", func(t *testing.T) {
		l := newLab(t, 1, 3)
		l.a.cfg.FastCloseByACK = true
		l.connect()
		l.prove()
		l.a.conn.Abort(l.now)
		l.a.pump()
		require.False(t, l.a.conn.Closed())
		l.a.refusesJoins()
	})
	t.Run("streams ended", func(t *testing.T) {
		l := proven(t, 3)
		l.a.closeWrite()
		l.b.closeWrite()
		l.run("end", time.Second, func() bool { return l.a.conn.State() == StateTimeWait })
		require.False(t, l.a.conn.Closed())
		l.a.refusesJoins()
	})
	t.Run("closed by an orderly end", func(t *testing.T) {
		l := proven(t, 3)
		l.a.close()
		l.b.close()
		l.wantClosed(reason.CloseDone, reason.CloseDone)
		l.a.refusesJoins()
	})
}
