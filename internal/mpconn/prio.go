package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// SetBackup asks the peer, by MP_PRIO, to send on subflow id only when no
// other works, or takes that back. It returns false if there is no such
// subflow.
//
// RFC 8684, Section 3.3.8: the request is about one direction.
func (c *Conn) SetBackup(_ mono.Time, id int, backup bool) bool {
	f := c.flow(id)
	if f == nil || c.mode != modeMPTCP {
		return false
	}
	if f.backupLocal != backup {
		f.backupLocal = backup
		f.prio.start()
	}
	return true
}

// putPrio adds MP_PRIO for the subflow that the segment goes out on.
func (c *Conn) putPrio(f *flow, seg *wire.Segment) {
	seg.Has |= wire.OptMPPrio
	seg.PrioBackup = f.backupLocal
}
