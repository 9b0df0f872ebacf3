package host

import "net/netip"

// tuple names a subflow among all of a host. It is the key of the tables of
// live subflows and of those in TIME-WAIT.
type tuple struct{ local, remote netip.AddrPort }

// binding says whose segments a tuple's are.
type binding struct {
	conn *Conn
	id   int
}

// tupleTable maps the tuples of live subflows to their connections and counts
// how many of them use each local port.
type tupleTable struct {
	bindings map[tuple]binding
	ports    map[uint16]int
}

func newTupleTable() tupleTable {
	return tupleTable{bindings: make(map[tuple]binding), ports: make(map[uint16]int)}
}

// bind registers t for subflow id of c. Binding a tuple again to the same
// subflow changes nothing.
func (tt *tupleTable) bind(t tuple, c *Conn, id int) {
	if _, ok := tt.bindings[t]; !ok {
		tt.ports[t.local.Port()]++
		if t == c.first {
			c.bound = true
		} else {
			c.tuples = append(c.tuples, t)
		}
	}
	tt.bindings[t] = binding{c, id}
}

// unbind forgets t if it belongs to subflow id of c. It reports whether it did.
func (tt *tupleTable) unbind(t tuple, c *Conn, id int) bool {
	b, ok := tt.bindings[t]
	if !ok || b.conn != c || b.id != id {
		return false
	}
	tt.remove(t)
	if t == c.first {
		c.bound = false
	}
	for i, u := range c.tuples {
		if u == t {
			last := len(c.tuples) - 1
			c.tuples[i] = c.tuples[last]
			c.tuples = c.tuples[:last]
			break
		}
	}
	return true
}

// bound reports whether t belongs to subflow id of c.
func (tt *tupleTable) bound(t tuple, c *Conn, id int) bool {
	return tt.bindings[t] == binding{c, id}
}

// unbindAll forgets every tuple of c.
func (tt *tupleTable) unbindAll(c *Conn) {
	if c.bound {
		tt.remove(c.first)
	}
	for _, t := range c.tuples {
		tt.remove(t)
	}
	c.bound, c.tuples = false, nil
}

func (tt *tupleTable) remove(t tuple) {
	delete(tt.bindings, t)
	p := t.local.Port()
	if tt.ports[p]--; tt.ports[p] == 0 {
		delete(tt.ports, p)
	}
}

// portUsed reports whether some live subflow has local port p, whatever its
// address.
func (tt *tupleTable) portUsed(p uint16) bool { return tt.ports[p] > 0 }
