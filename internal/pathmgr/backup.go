package pathmgr

import (
	"cmp"
	"math"
	"slices"
)

// backup keeps the mesh of fullMesh, but asks the peer to send on one subflow
// only; the others stand by, joined with the B flag. When the regular one is
// lost the best of the others takes its place, and gives it back when the
// better one is there again. Best is a subflow of a link that is not for
// backup, then one of the pair that the connection began with, then one whose
// local address is listed first.
//
// RFC 8684, Section 3.3.8: the B flag binds the peer that receives it; this side
// obeys its own, too, so that one side with this policy is enough.
// The side that did not open the connection opens nothing and changes by
// MP_PRIO.
type backup struct {
	memory memory
	first  pair // that the connection began with
}

func newBackup() Policy { return &backup{} }

// Handle implements Policy.
func (b *backup) Handle(v *View, e Event, cmds []Command) []Command {
	cmds, look := b.memory.begin(v, &e, cmds)
	if e.Kind == Established {
		b.first = b.memory.initial
	}
	if b.memory.joinable {
		cmds = b.balance(v, cmds)
	}
	switch {
	case !look:
		return cmds
	case !v.Active:
		return b.memory.announce(v, cmds)
	}
	opened := len(cmds)
	cmds = b.memory.open(v, e.Now, cmds)
	for i := opened; i < len(cmds); i++ {
		// With nothing left, the first to be opened is regular.
		cmds[i].Backup = len(v.Subflows) > 0 || i > opened
	}
	return b.memory.rest(e.Now, cmds)
}

// balance makes the best established subflow regular and the others backup.
func (b *backup) balance(v *View, cmds []Command) []Command {
	best := -1
	for i := range v.Subflows {
		if v.Subflows[i].Established && !b.closing(cmds, v.Subflows[i].ID) &&
			(best < 0 || b.compare(v, &v.Subflows[i], &v.Subflows[best]) < 0) {
			best = i
		}
	}
	if best < 0 {
		return cmds
	}
	// The new regular one first: the peer always has one to send on.
	if s := &v.Subflows[best]; s.Backup {
		cmds = append(cmds, Command{Verb: SetBackup, Subflow: s.ID})
	}
	for i := range v.Subflows {
		if s := &v.Subflows[i]; i != best && s.Established && !s.Backup && !b.closing(cmds, s.ID) {
			cmds = append(cmds, Command{Verb: SetBackup, Subflow: s.ID, Backup: true})
		}
	}
	return cmds
}

// closing reports whether a command closes the subflow.
func (b *backup) closing(cmds []Command, id int) bool {
	return slices.ContainsFunc(cmds, func(c Command) bool { return c.Verb == CloseSubflow && c.Subflow == id })
}

// compare is negative if s is better than o.
func (b *backup) compare(v *View, s, o *Subflow) int {
	sLink, sOrder := v.local(s)
	oLink, oOrder := v.local(o)
	return cmp.Or(
		cmp.Compare(sLink, oLink),
		cmp.Compare(b.began(o), b.began(s)),
		cmp.Compare(sOrder, oOrder),
		cmp.Compare(s.ID, o.ID),
	)
}

// local returns 1 if the link of a subflow is for backup, and the place of its
// address in the list.
func (v *View) local(s *Subflow) (link, order int) {
	for i, l := range v.Locals {
		if l.Addr.Unmap() == s.Local.Addr().Unmap() {
			if l.Backup {
				link = 1
			}
			return link, i
		}
	}
	return 1, math.MaxInt
}

// began returns 1 if the connection began with the pair of a subflow.
func (b *backup) began(s *Subflow) int {
	if pairOf(s.Local.Addr(), s.Remote) == b.first {
		return 1
	}
	return 0
}
