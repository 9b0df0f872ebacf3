package mpconn

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// SetBackup asks the peer, by MP_PRIO, to send on subflow id only when no
// other works, and does so itself, or takes that back. It returns false if there
// is no such subflow.
//
// RFC 8684, Section 3.3.8: the request is about one direction.
func (c *Conn) SetBackup(_ mono.Time, id int, backup bool) bool {
	f := c.flow(id)
	if f == nil || c.mode != modeMPTCP {
		return false
	}
	if f.backupLocal != backup {
		f.backupLocal = backup
		c.snd.idle = false
		f.inTrouble().prio.start()
	}
	return true
}

// Bequeath has one subflow take the place of another on the same path, if the
// congestion control can do that. It reports false if one of them is not up.
func (c *Conn) Bequeath(from, to int) bool {
	f, heir := c.flow(from), c.flow(to)
	if f == nil || heir == nil || f.phase != phaseUp || heir.phase != phaseUp {
		return false
	}
	c.snd.idle = false
	f.tcp.Bequeath(heir.tcp)
	return true
}

// standby reports whether a flow carries data only when no other can.
//
// RFC 8684, Section 3.3.8: the B flag binds the peer that receives it; what we
// do about our own is left to us. Like Linux, we keep off a path that we asked
// the peer to keep off.
func (f *flow) standby() bool { return f.backupRemote || f.backupLocal }

// peerSetBackup acts on the peer's MP_PRIO.
func (c *Conn) peerSetBackup(f *flow, backup bool) {
	if f.backupRemote != backup {
		f.backupRemote = backup
		c.emit(pending{kind: EventPriority, f: f, backup: backup})
	}
}

// putPrio adds MP_PRIO for the subflow that the segment goes out on.
func (c *Conn) putPrio(f *flow, seg *wire.Segment) {
	seg.Has |= wire.OptMPPrio
	seg.PrioBackup = f.backupLocal
}
