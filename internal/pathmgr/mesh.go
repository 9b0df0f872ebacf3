package pathmgr

import (
	"slices"
	"time"
)

// mesh is the state of a round of opening.
type mesh struct {
	present []pair
	missing []candidate
}

// open opens subflows until the mesh is full or the limit is reached. The
// pair whose addresses are used least comes first, so that under a limit
// every address is used before any is used twice; equals keep the order in
// which addresses are listed.
func (m *memory) open(v *View, now time.Duration, cmds []Command) []Command {
	var x mesh
	m.pairs(v, now, func(c candidate) {
		if !v.has(c.pair) {
			x.missing = append(x.missing, c)
		}
	})
	if len(x.missing) == 0 {
		return cmds // as it is for most of the events of most connections
	}
	x.present = make([]pair, 0, len(v.Subflows)+len(x.missing))
	for i := range v.Subflows {
		x.present = append(x.present, v.pairAt(i))
	}
	room := v.room()
	for {
		c, ok := x.take()
		switch {
		case !ok:
			return cmds
		case room == 0:
			return append(cmds, c.withheld())
		}
		room--
		cmds = append(cmds, c.command())
	}
}

// pairAt returns the pair of the i-th subflow.
func (v *View) pairAt(i int) pair {
	return pairOf(v.Subflows[i].Local.Addr(), v.Subflows[i].Remote)
}

// has reports whether there is a subflow between a pair.
func (v *View) has(p pair) bool {
	for i := range v.Subflows {
		if v.pairAt(i) == p {
			return true
		}
	}
	return false
}

// take moves the missing pair whose addresses are used least to those present.
func (m *mesh) take() (candidate, bool) {
	best, least := -1, 0
	for i := range m.missing {
		if n := m.uses(m.missing[i].pair); best < 0 || n < least {
			best, least = i, n
		}
	}
	if best < 0 {
		return candidate{}, false
	}
	c := m.missing[best]
	m.missing = slices.Delete(m.missing, best, best+1)
	m.present = append(m.present, c.pair)
	// The same address may be listed twice.
	m.missing = slices.DeleteFunc(m.missing, func(o candidate) bool { return o.pair == c.pair })
	return c, true
}

// uses counts how often the addresses of a pair are in use.
func (m *mesh) uses(p pair) int {
	n := 0
	for _, o := range m.present {
		if o.local == p.local {
			n++
		}
		if o.remote == p.remote {
			n++
		}
	}
	return n
}
