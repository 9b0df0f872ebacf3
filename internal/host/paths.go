package host

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// maxPaths bounds the table of path measurements; the path not used for the
// longest time is forgotten first.
const maxPaths = 1024

// Path is what was last measured on a pair of addresses. Zero values are
// unknown.
type Path struct {
	SRTT, MinRTT time.Duration
	Rate         float64   // bytes/s delivered
	LossRate     float64   // 0 to 1
	LastUse      mono.Time // when a subflow was last measured there
	LastTry      mono.Time // when one was last begun there
}

// pathTable keeps the measurements of recent paths, so that policies can
// choose before a connection has any subflow.
type pathTable struct{ lru[addrPair, Path] }

func newPathTable() pathTable { return pathTable{newLRU[addrPair, Path](maxPaths)} }

// record stores p. A measurement that p lacks keeps its older value.
func (pt *pathTable) record(local, remote netip.Addr, p Path) {
	old := pt.touch(addrPair{local, remote})
	if p.SRTT == 0 {
		p.SRTT, p.MinRTT = old.SRTT, old.MinRTT
	}
	if p.Rate == 0 {
		p.Rate = old.Rate
	}
	p.LastTry = max(p.LastTry, old.LastTry)
	*old = p
}

// measureEvery is the least time between two measurements that a connection
// with a policy that wants them contributes to the table.
const measureEvery = 20 * time.Millisecond

// forgetAfter is how old a measurement may be before a newer one takes its
// place instead of being averaged with it.
const forgetAfter = time.Second

// measureLive takes over what the subflows of c measure now.
func (h *Host) measureLive(now mono.Time, c *Conn) {
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		if s := &h.subflows[i]; s.Close == reason.CloseNone && s.Up {
			h.recordPath(s, true)
		}
	}
}

// recordPath takes over what a subflow measured, unless another has measured
// its path since. Of a live one that is its latest sample, averaged with those
// of all others with the gain of RFC 6298: the SRTT of a large window changes
// too slowly to compare paths by, and that of a subflow that sends nothing not
// at all.
func (h *Host) recordPath(s *mpconn.SubflowInfo, live bool) {
	if s.TCP.SRTT == 0 {
		return
	}
	old, _ := h.Path(s.Local.Addr(), s.Remote.Addr())
	srtt, at := s.TCP.SRTT, s.TCP.LastRTTAt
	switch {
	case at <= old.LastUse:
		return
	case live && old.SRTT > 0 && at.Sub(old.LastUse) < forgetAfter:
		srtt = old.SRTT + (s.TCP.LastRTT-old.SRTT)/8
	case live:
		srtt = s.TCP.LastRTT
	}
	h.paths.record(s.Local.Addr(), s.Remote.Addr(), Path{
		SRTT: srtt, MinRTT: s.TCP.MinRTT, Rate: s.TCP.DeliveryRate, LossRate: s.TCP.LossRate, LastUse: at,
	})
}

// measured is what path managers see of the table.
func (h *Host) measured(local, remote netip.Addr) pathmgr.Measurement {
	p, ok := h.Path(local, remote)
	if !ok {
		return pathmgr.Measurement{}
	}
	return pathmgr.Measurement{SRTT: p.SRTT, Rate: p.Rate, Age: h.viewAt.Sub(max(p.LastUse, p.LastTry))}
}

// Path returns what was last measured between two addresses.
func (h *Host) Path(local, remote netip.Addr) (Path, bool) {
	p := h.paths.get(addrPair{local, remote})
	if p == nil {
		return Path{}, false
	}
	return *p, true
}
