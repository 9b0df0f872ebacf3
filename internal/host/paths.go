package host

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
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
	LastUse      mono.Time // when a subflow last ended there
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
	*old = p
}

// Path returns what was last measured between two addresses.
func (h *Host) Path(local, remote netip.Addr) (Path, bool) {
	p := h.paths.get(addrPair{local, remote})
	if p == nil {
		return Path{}, false
	}
	return *p, true
}
