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
	x := mesh{present: make([]pair, 0, DefaultSubflows)}
	for i := range v.Subflows {
		x.present = append(x.present, pairOf(v.Subflows[i].Local.Addr(), v.Subflows[i].Remote))
	}
	m.pairs(v, now, func(c candidate) {
		if !slices.Contains(x.present, c.pair) {
			x.missing = append(x.missing, c)
		}
	})
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
