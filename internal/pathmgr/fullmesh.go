package pathmgr

// fullMesh opens a subflow between every usable local and every known remote
// address that have a route and are of one family.
//
// Only the side that opened the connection opens subflows. The other one
// announces its addresses and leaves the opening to its peer: RFC 8684,
// Section 2.7: "Setting up a new TCP flow is not possible if the receiver of
// the SYN is behind a NAT; to allow subflows to be created when either end is
// behind a NAT, MPTCP uses the ADD_ADDR message." If both sides opened, each
// pair would also get two subflows.
type fullMesh struct{ memory memory }

func newFullMesh() Policy { return &fullMesh{} }

// Handle implements Policy. It returns at most as many commands as there are
// subflows and local addresses, and one Wake.
func (f *fullMesh) Handle(v *View, e Event, cmds []Command) []Command {
	cmds, look := f.memory.begin(v, &e, cmds)
	switch {
	case !look:
		return cmds
	case v.Active:
		return f.memory.rest(e.Now, f.memory.open(v, e.Now, cmds))
	}
	return f.memory.announce(v, cmds)
}
