package spec

import (
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// selfApp is the application on a connection of a self target.
type selfApp struct {
	t      *self
	conn   *host.Conn
	queue  []byte // written, not yet taken by the connection
	ending ending
}

// ending is what the application wants once its queue is taken.
type ending uint8

const (
	endingNone ending = iota
	endingWrite
	endingAll
)

// feed gives the connection what the application wrote. It reports whether
// there was anything to give.
func (a *selfApp) feed() bool {
	n := 0
	if len(a.queue) > 0 && (a.conn.Connected() || a.conn.Held()) && a.conn.Err() == reason.CloseNone {
		n = a.conn.Write(a.t.now, a.queue)
		a.queue = a.queue[n:]
	}
	if len(a.queue) > 0 || a.ending == endingNone {
		return n > 0
	}
	if a.ending == endingWrite {
		a.conn.CloseWrite(a.t.now)
	} else {
		a.conn.Close(a.t.now)
	}
	a.ending = endingNone
	return true
}

func (a *selfApp) Write(p []byte) error {
	a.queue = append(a.queue, p...)
	a.t.pump()
	return nil
}

func (a *selfApp) Read(n int, within time.Duration) ([]byte, error) {
	end := a.t.now.Add(within)
	var got []byte
	for {
		a.t.pump()
		buf := make([]byte, n-len(got))
		got = append(got, buf[:a.conn.Read(a.t.now, buf)]...)
		a.t.pump()
		switch {
		case len(got) == n && n > 0:
			return got, nil
		case a.conn.EOF():
			return got, io.EOF
		case a.conn.Err() == reason.CloseTimeout, a.conn.Err() == reason.CloseKeepalive, a.conn.Err() == reason.CloseOrphan:
			return got, ErrTimeout
		case a.conn.Err() != reason.CloseNone && a.conn.Err() != reason.CloseDone:
			return got, ErrReset
		case !a.t.advance(end):
			return got, nil
		}
	}
}

func (a *selfApp) CloseWrite() error { return a.end(endingWrite) }
func (a *selfApp) Close() error      { return a.end(endingAll) }

func (a *selfApp) end(e ending) error {
	a.ending = e
	a.t.pump()
	return nil
}

func (a *selfApp) Abort() error {
	a.conn.Abort(a.t.now)
	a.t.pump()
	return nil
}

func (a *selfApp) CloseSubflow(remote netip.AddrPort) error {
	all := a.conn.AppendSubflows(nil)
	i := slices.IndexFunc(all, func(s mpconn.SubflowInfo) bool { return s.Remote == remote && s.Close == reason.CloseNone })
	if i < 0 || !a.conn.CloseSubflow(a.t.now, all[i].ID, reason.ResetUnspecified) {
		return ErrUnsupported
	}
	a.t.pump()
	return nil
}
