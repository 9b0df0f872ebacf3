package mpconn

// Trim gives up the memory that only data on its way, and what is told about
// addresses, needs, as far as there is none. What comes later gets it anew. A
// driver calls it now and then when nothing happens.
func (c *Conn) Trim() {
	for _, f := range c.flows {
		f.tcp.Trim()
		f.out.trim()
		f.in.trim()
		if f.held.empty() {
			f.held = nil
		}
		if *f.trouble == (trouble{}) {
			f.trouble = &noTrouble
		}
	}
	c.snd.q.Trim()
	c.snd.holes.Trim()
	c.snd.reinject.Trim()
	c.rcv.q.Trim()
	c.look = nil
	c.events = trim(c.events)
	if c.addrs.signaling == &noSignaling {
		return
	}
	a := c.addrs.signaling
	a.announce, a.echoes, a.withdraw = trim(a.announce), trim(a.echoes), trim(a.withdraw)
}

// trim returns a slice without memory that it does not use, if it is empty.
func trim[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

// trim gives up the memory of an empty queue.
func (s *mappings) trim() {
	if s.empty() {
		*s = mappings{}
	}
}
