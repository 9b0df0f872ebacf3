package pathmgr

import "time"

// DefaultDiffPorts is how many subflows the policy "ndiffports" keeps.
const DefaultDiffPorts = 2

// diffPorts keeps a number of subflows between one pair of addresses, each
// from a port of its own, so that a network that spreads flows over parallel
// ways by their ports spreads the connection. The pair is that of the first
// subflow; when its local address goes away or the peer withdraws the remote
// one, it is the first pair that can be used.
type diffPorts struct {
	memory memory
	n      int
	pair   pair // in use
}

// NDiffPorts returns the policy that keeps n subflows between one pair of
// addresses, the first included, as far as the limits allow. Numbers less than
// 1 mean 1.
func NDiffPorts(n int) Factory {
	return func() Policy { return &diffPorts{n: max(n, 1)} }
}

// Handle implements Policy.
func (d *diffPorts) Handle(v *View, e Event, cmds []Command) []Command {
	cmds, look := d.memory.begin(v, &e, cmds)
	if e.Kind == Established {
		d.pair = d.memory.initial
	}
	if !look || !v.Active {
		return cmds
	}
	return d.memory.rest(e.Now, d.open(v, e.Now, cmds))
}

func (d *diffPorts) open(v *View, now time.Duration, cmds []Command) []Command {
	c, ok := d.choose(v, now)
	if !ok {
		return cmds
	}
	d.pair = c.pair
	missing := d.n
	for i := range v.Subflows {
		if pairOf(v.Subflows[i].Local.Addr(), v.Subflows[i].Remote) == d.pair {
			missing--
		}
	}
	for range min(missing, v.room()) {
		cmds = append(cmds, c.command())
	}
	if missing > v.room() {
		cmds = append(cmds, c.withheld())
	}
	return cmds
}

// choose returns the pair to use: the one in use while its addresses are
// there. That it failed is no reason for another while a subflow is left.
func (d *diffPorts) choose(v *View, now time.Duration) (c candidate, ok bool) {
	there := d.pair.local.IsValid() && v.hasLocal(d.pair.local) && v.hasRemote(d.pair.remote)
	stay := there && len(v.Subflows) > 0
	d.memory.pairs(v, now, func(x candidate) {
		if x.pair == d.pair || !ok && !stay {
			c, ok = x, true
		}
	})
	return c, ok
}
