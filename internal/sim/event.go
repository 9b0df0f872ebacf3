package sim

import "github.com/gomptcp/gomptcp/internal/mono"

// handler is whatever something can be due for but the next packet of a link: a
// connection's or a host's timer, a late packet, a step of the scenario.
type handler interface {
	// fire is called at the time that was asked for. Earlier events may have
	// made it superfluous.
	fire(at mono.Time)
}

// call is a step of the scenario.
type call func()

func (f call) fire(mono.Time) { f() }

// due is the place of an event among all.
type due struct {
	at mono.Time
	n  uint64 // order among events of the same time
}

func (e *due) before(f *due) bool {
	return e.at < f.at || e.at == f.at && e.n < f.n
}

// event is something due at a time.
type event[W any] struct {
	due
	who W
}

// eventHeap is a heap of events by time, then by order of insertion. Each node
// has four children: fewer levels, and siblings that share cache lines.
type eventHeap[W any] []event[W]

const fanOut = 4

func (h *eventHeap[W]) push(e event[W]) {
	q := append(*h, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / fanOut
		if !e.before(&q[up].due) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
	*h = q
}

// pop takes the first event out.
func (h *eventHeap[W]) pop() {
	q := *h
	last := len(q) - 1
	e := q[last]
	q[last] = event[W]{}
	*h = q[:last]
	if last > 0 {
		h.replace(e)
	}
}

// replace puts an event in the place of the first one.
func (h *eventHeap[W]) replace(e event[W]) {
	q := *h
	i := 0
	for {
		first := fanOut*i + 1
		if first >= len(q) {
			break
		}
		least := first
		for down := first + 1; down < min(first+fanOut, len(q)); down++ {
			if q[down].before(&q[least].due) {
				least = down
			}
		}
		if !q[least].before(&e.due) {
			break
		}
		q[i] = q[least]
		i = least
	}
	q[i] = e
}
