package host

import (
	"container/list"
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

type pathKey struct{ local, remote netip.Addr }

type pathEntry struct {
	key  pathKey
	path Path
}

// pathTable keeps the measurements of recent paths, so that policies can
// choose before a connection has any subflow.
type pathTable struct {
	entries map[pathKey]*list.Element
	order   list.List // of *pathEntry, most recently used first
}

func newPathTable() pathTable {
	return pathTable{entries: make(map[pathKey]*list.Element)}
}

// record stores p. A measurement that p lacks keeps its older value.
func (pt *pathTable) record(local, remote netip.Addr, p Path) {
	k := pathKey{local, remote}
	el, ok := pt.entries[k]
	if !ok {
		if len(pt.entries) >= maxPaths {
			oldest := pt.order.Back()
			delete(pt.entries, pt.order.Remove(oldest).(*pathEntry).key)
		}
		pt.entries[k] = pt.order.PushFront(&pathEntry{key: k, path: p})
		return
	}
	old := &el.Value.(*pathEntry).path
	if p.SRTT == 0 {
		p.SRTT, p.MinRTT = old.SRTT, old.MinRTT
	}
	if p.Rate == 0 {
		p.Rate = old.Rate
	}
	*old = p
	pt.order.MoveToFront(el)
}

// Path returns what was last measured between two addresses.
func (h *Host) Path(local, remote netip.Addr) (Path, bool) {
	el, ok := h.paths.entries[pathKey{local, remote}]
	if !ok {
		return Path{}, false
	}
	return el.Value.(*pathEntry).path, true
}
