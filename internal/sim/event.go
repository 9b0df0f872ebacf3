package sim

import "github.com/gomptcp/gomptcp/internal/mono"

// eventKind says who handles an event.
type eventKind uint8

const (
	eventArrive eventKind = iota + 1 // a packet reaches the end of a link
	eventConn                        // a connection's deadline
	eventNode                        // a host's deadline
	eventCall                        // a step of the scenario
)

// event is something due at a time. Which fields count depends on the kind.
type event struct {
	at     mono.Time
	n      uint64 // order among events of the same time
	kind   eventKind
	epoch  uint32 // of dir, when the packet was sent
	dir    *Direction
	packet *packet
	conn   *Conn
	node   *Node
	call   func()
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.n < f.n
}

// eventHeap is a binary heap of events by time, then by order of insertion.
type eventHeap []event

func (h *eventHeap) push(e event) {
	q := append(*h, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q[i].before(&q[up]) {
			break
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
	*h = q
}

func (h *eventHeap) pop() event {
	q := *h
	top, last := q[0], len(q)-1
	q[0] = q[last]
	q[last] = event{}
	q = q[:last]
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < len(q); down++ {
			if q[down].before(&q[least]) {
				least = down
			}
		}
		if least == i {
			break
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
	*h = q
	return top
}
