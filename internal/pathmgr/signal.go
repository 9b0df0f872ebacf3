package pathmgr

import (
	"slices"
	"time"
)

// signal announces the host's other addresses and opens nothing by itself:
// for each address that the peer announced, the side that opened the
// connection opens one subflow, from the local address of the first subflow if
// that can reach it, else from the first that can. So a client with many
// addresses makes no more subflows than its server asks for.
//
// A connection that lost all its subflows is opened again to whatever address
// is known, since nothing would come of it otherwise.
type signal struct{ memory memory }

func newSignal() Policy { return &signal{} }

// Handle implements Policy.
func (s *signal) Handle(v *View, e Event, cmds []Command) []Command {
	cmds, look := s.memory.begin(v, &e, cmds)
	if !look {
		return cmds
	}
	cmds = s.memory.announce(v, cmds)
	if v.Active {
		cmds = s.memory.rest(e.Now, s.open(v, e.Now, cmds))
	}
	return cmds
}

func (s *signal) open(v *View, now time.Duration, cmds []Command) []Command {
	var chosen []candidate // one for each remote
	s.memory.pairs(v, now, func(c candidate) {
		switch i := slices.IndexFunc(chosen, func(o candidate) bool { return o.pair.remote == c.pair.remote }); {
		case i < 0:
			chosen = append(chosen, c)
		case c.pair.local == s.memory.initial.local:
			chosen[i] = c
		}
	})
	orphan := len(v.Subflows) == 0
	room := v.room()
	for _, c := range chosen {
		if !orphan && (c.remoteID == 0 || v.reaches(c)) {
			continue
		}
		if room == 0 {
			return append(cmds, c.withheld())
		}
		orphan = false
		cmds = append(cmds, c.command())
		room--
	}
	return cmds
}

// reaches reports whether a subflow goes to the candidate's remote address.
func (v *View) reaches(c candidate) bool {
	return slices.ContainsFunc(v.Subflows, func(s Subflow) bool { return unmap(s.Remote) == c.pair.remote })
}
