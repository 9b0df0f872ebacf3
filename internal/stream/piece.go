package stream

import "unsafe"

// piece is a stretch of received bytes in one view.
type piece struct {
	data   []byte // not yet read
	owner  Owner  // set in the last piece of a packet at most
	pinned int    // bytes of memory that go with the packet, in its last piece
	next   int32  // index of the next piece of the chain, 0 = none
	last   bool   // the last piece of a packet
	grows  bool   // data has its buffer to itself and ends where writing stopped
}

const pieceSize = int(unsafe.Sizeof(piece{}))

// chain is a list of pieces with contiguous bytes, by index; 0 = none.
type chain struct{ head, tail int32 }

// arena holds the pieces of all chains of a queue. Indexes stay good while
// it grows, and the garbage collector has one object to look at.
type arena struct {
	pieces []piece // pieces[0] stands for none
	unused int32   // head of the list of free pieces, linked by next
	live   int
}

// arenaKeep is how many pieces an arena keeps room for when it is empty: 512
// take a burst of 740 kB at MTU 1500 and cost an idle queue 32 KiB at most.
const arenaKeep = 512

func (a *arena) at(i int32) *piece { return &a.pieces[i] }

// push appends a piece to a chain.
func (a *arena) push(c *chain, p piece) {
	i := a.unused
	if i != 0 {
		a.unused = a.pieces[i].next
	} else {
		if len(a.pieces) == 0 {
			a.pieces = append(a.pieces, piece{})
		}
		i = int32(len(a.pieces))
		a.pieces = append(a.pieces, piece{})
	}
	a.live++
	a.pieces[i] = p
	a.join(c, chain{i, i})
}

// join appends the pieces of d to c.
func (a *arena) join(c *chain, d chain) {
	if c.tail == 0 {
		*c = d
		return
	}
	a.pieces[c.tail].next = d.head
	c.tail = d.tail
}

// free recycles a piece that is in no chain any more.
func (a *arena) free(i int32) {
	a.live--
	if a.live == 0 && len(a.pieces) > arenaKeep {
		*a = arena{}
		return
	}
	a.pieces[i] = piece{next: a.unused}
	a.unused = i
}
