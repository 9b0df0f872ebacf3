package mptcp

import (
	"sync"
	"sync/atomic"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// An inbox holds at most this much, counted like a network card's ring. It
// fills only while the owner of the connection's lock is busy.
const (
	inboxItems = 2048
	inboxBytes = 8 << 20 // of payload
)

// task says what is to be done with an item of an inbox.
type task uint8

const (
	taskNone        task = iota // only look at the connection, which is new
	taskSegment                 // give it to subflow id
	taskJoin                    // a SYN with MP_JOIN
	taskTooBig                  // ICMP: packets of at most mtu bytes reach the peer
	taskUnreachable             // ICMP: the peer can't be reached
	taskUnreachableHard
)

// item is something that came from the network for a connection.
type item struct {
	next *item
	task task
	id   int          // subflow; not for taskJoin
	mtu  int          // taskTooBig
	seg  wire.Segment // ICMP: only Seq, the quoted sequence number
}

var itemPool = sync.Pool{New: func() any { return new(item) }}

// recycle releases what nobody took of an item, and the item.
func (it *item) recycle() {
	if it.seg.Owner != nil {
		it.seg.Owner.DecRef()
	}
	it.seg.Reset()
	it.next = nil
	itemPool.Put(it)
}

// queue is a list of items.
type queue struct {
	head, tail *item
	n, bytes   int
}

func (q *queue) push(it *item) {
	if q.tail == nil {
		q.head = it
	} else {
		q.tail.next = it
	}
	q.tail = it
	q.n++
	q.bytes += it.seg.PayloadLen()
}

// inbox is where the network leaves items for the owner of a connection's
// lock. Whoever leaves something tries to become the owner (Conn.kick);
// whoever gives the lock up looks here once more. So nothing stays behind,
// and the network never waits for a connection.
type inbox struct {
	mu    sync.Mutex // leaf
	items queue
	alarm bool        // the timer fired
	any   atomic.Bool // there is something to fetch; written under mu
}

// put moves the items of q into the inbox and returns how many did not fit
// and were dropped.
func (b *inbox) put(q queue) (lost int) {
	b.mu.Lock()
	for it := q.head; it != nil; {
		next := it.next
		it.next = nil
		if b.items.n >= inboxItems || b.items.bytes >= inboxBytes {
			it.recycle()
			lost++
		} else {
			b.items.push(it)
		}
		it = next
	}
	b.any.Store(true)
	b.mu.Unlock()
	return lost
}

// ring notes that the timer fired. It reports whether that is news.
func (b *inbox) ring() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := !b.alarm
	b.alarm = true
	b.any.Store(true)
	return news
}

// fetchItems is how many items are fetched at a time.
const fetchItems = 64

// fetch takes items out, in order, and whether the timer fired.
func (b *inbox) fetch() (head *item, alarm bool) {
	if !b.any.Load() {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	alarm, b.alarm = b.alarm, false
	head = b.items.cut(fetchItems)
	b.any.Store(b.items.head != nil)
	return head, alarm
}

// cut takes the first n items out, or all if there are fewer.
func (q *queue) cut(n int) (head *item) {
	head = q.head
	var last *item
	for ; n > 0 && q.head != nil; n-- {
		last = q.head
		q.n--
		q.bytes -= last.seg.PayloadLen()
		q.head = last.next
	}
	if q.head == nil {
		q.tail = nil
	}
	if last != nil {
		last.next = nil
	}
	return head
}
