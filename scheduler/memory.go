package scheduler

// PerSubflow is memory of a scheduler for each subflow. The zero value is
// ready. It allocates only while a connection has more subflows than ever
// before.
type PerSubflow[T any] struct {
	ids  []int
	mine []T
}

// Sync returns the memory of each of v's subflows, in their order: zero for
// those that it sees for the first time. What belonged to others is
// forgotten. The result is valid until the next call.
func (p *PerSubflow[T]) Sync(v *View) []T {
	n := len(v.Subflows)
	if len(p.ids) == n {
		same := true
		for i := range v.Subflows {
			same = same && p.ids[i] == v.Subflows[i].ID
		}
		if same {
			return p.mine
		}
	}
	kept := 0
	for i := range v.Subflows {
		for kept < len(p.ids) && p.ids[kept] < v.Subflows[i].ID {
			p.forget(kept)
		}
		if kept == len(p.ids) || p.ids[kept] != v.Subflows[i].ID {
			p.insert(kept, v.Subflows[i].ID)
		}
		kept++
	}
	p.ids, p.mine = p.ids[:kept], p.mine[:kept]
	return p.mine
}

func (p *PerSubflow[T]) forget(i int) {
	p.ids = append(p.ids[:i], p.ids[i+1:]...)
	p.mine = append(p.mine[:i], p.mine[i+1:]...)
}

func (p *PerSubflow[T]) insert(i, id int) {
	var zero T
	p.ids, p.mine = append(p.ids, 0), append(p.mine, zero)
	copy(p.ids[i+1:], p.ids[i:])
	copy(p.mine[i+1:], p.mine[i:])
	p.ids[i], p.mine[i] = id, zero
}
