package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// witness is a path manager that does nothing and remembers what it saw.
type witness struct {
	events   []pathmgr.Event
	subflows []pathmgr.Subflow // at the last event
}

func (w *witness) Handle(v *pathmgr.View, e pathmgr.Event, cmds []pathmgr.Command) []pathmgr.Command {
	w.events = append(w.events, e)
	w.subflows = append(w.subflows[:0], v.Subflows...)
	return cmds
}

// A path manager hears of the peer's MP_PRIO, and sees which subflows the peer
// wants as backup and which do not answer.
func TestPathManagerSeesPriorities(t *testing.T) {
	l := newLab(t, host.Config{})
	var w witness
	seeing := config(t)
	seeing.PathManager = func() pathmgr.Policy { return &w }
	c, s := l.connect(config(t), l.listen(seeing, 0))
	l.exchange(c, s)
	id, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
	require.NoError(t, err)
	l.run()
	require.True(t, c.SetBackup(l.now, id, true))
	l.run()
	last := w.events[len(w.events)-1]
	require.Equal(t, pathmgr.PriorityChanged, last.Kind)
	require.Equal(t, id, last.Subflow)
	require.Equal(t, clientAddr2, last.Remote.Addr())
	require.True(t, w.subflows[id].PeerBackup)
	require.False(t, w.subflows[0].Stale || w.subflows[id].Backup || w.subflows[0].PeerBackup)

	l.lost = func(*wire.Segment) bool { return true }
	s.Write(l.now, []byte("nobody hears this"))
	l.advance(time.Second)
	l.server.Feed(l.now, s, pathmgr.Event{Kind: pathmgr.DataQueued})
	require.True(t, w.subflows[0].Stale)
}
