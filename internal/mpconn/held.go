package mpconn

import (
	"slices"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// piece is a run of received payload.
type piece struct {
	off   uint64
	view  [1][]byte  // an array, to be delivered as a slice of views
	owner wire.Owner // released with it; may be nil
}

// skip drops the first n bytes, which are not all.
func (p *piece) skip(n uint64) { p.off, p.view[0] = p.off+n, p.view[0][n:] }

func (p *piece) release() {
	if p.owner != nil {
		p.owner.DecRef()
	}
}

// pieces is a queue of a subflow's payload, in order and without gaps, that waits
// for its mapping, or for the rest of it. A nil one is empty.
type pieces struct {
	q    []piece
	head int
}

func (s *pieces) all() []piece {
	if s == nil {
		return nil
	}
	return s.q[s.head:]
}

func (s *pieces) empty() bool { return s == nil || s.head == len(s.q) }

func (s *pieces) first() *piece { return &s.q[s.head] }

func (s *pieces) last() *piece { return &s.q[len(s.q)-1] }

func (s *pieces) push(p piece) {
	if s.head > 0 && len(s.q) == cap(s.q) {
		n := copy(s.q, s.q[s.head:])
		clear(s.q[n:])
		s.q, s.head = s.q[:n], 0
	}
	s.q = append(s.q, p)
}

func (s *pieces) pop() {
	*s.first() = piece{}
	if s.head++; s.empty() {
		s.q, s.head = s.q[:0], 0
	}
}

// intact reports whether a run that a mapping covers may be delivered at once: with
// checksums it must be all of it, and its checksum hold.
func (c *Conn) intact(f *flow, m *mapping, d *subflow.Data) bool {
	if !c.checksum {
		return true
	}
	return d.Off == m.off && f.got == m.end() && !f.fail.waiting && f.failed == reason.CloseNone &&
		c.sumHolds(f, m, wire.SumViews(d.Views, 0))
}

// copyBelow is the length in bytes of the shortest run that is held in the packet
// that brought it.
const copyBelow = 512

// hold keeps a run until its mapping, or the rest of it, is there.
func (f *flow) hold(d *subflow.Data) {
	off, n := d.Off, int(f.got-d.Off)
	if m, ok := f.in.find(d.Off); n < copyBelow && !(ok && m.end() <= f.got) {
		// It will wait, and a packet costs more than it carries.
		d.Views = [][]byte{slices.Concat(d.Views...)}
		if d.Owner != nil {
			d.Owner.DecRef()
			d.Owner = nil
		}
	}
	if f.held == nil {
		f.held = &pieces{}
	}
	for _, v := range d.Views {
		f.held.push(piece{off: off, view: [1][]byte{v}})
		off += uint64(len(v))
	}
	if len(d.Views) == 0 {
		return
	}
	// The owner goes with the last piece, which is used up last.
	f.held.last().owner = d.Owner
}

// flushHeld moves held payload on as far as mappings allow.
func (c *Conn) flushHeld(now mono.Time, f *flow) {
	if f.fail.waiting || f.failed != reason.CloseNone {
		c.boundHeld(now, f)
		return
	}
	for !f.held.empty() {
		p := f.held.first()
		m, ok := f.in.find(p.off)
		if !ok {
			if next, ok := f.in.after(p.off); ok && next.off <= f.got {
				c.skipHeld(f, next.off)
				continue
			}
			c.unmapped(now, f)
			return
		}
		if c.checksum && !c.verified(now, f, m) {
			return
		}
		k := min(uint64(len(p.view[0])), m.end()-p.off)
		if k == uint64(len(p.view[0])) {
			c.deliver(f, m.data+(p.off-m.off), p.view[:], p.owner)
			f.held.pop()
		} else {
			// The run spans two mappings: its head is copied, so that the
			// owner can go with the tail.
			head := slices.Clone(p.view[0][:k])
			c.deliver(f, m.data+(p.off-m.off), [][]byte{head}, nil)
			p.skip(k)
		}
	}
	if f.stuck.since.Set() {
		// The mapping came late, on a segment that may need no answer itself.
		f.stuck = stuck{}
		f.tcp.RequestAck()
	}
	c.forgetMappings(f)
}

// boundHeld gives up a flow that sends more than it may while its payload has
// to wait for the answer to an MP_FAIL.
func (c *Conn) boundHeld(now mono.Time, f *flow) {
	if f.fail.waiting && f.got-f.heldFrom() > uint64(c.rcv.buffer.limit)+maxMapping {
		c.failByReset(now, f)
	}
}

// skipHeld drops held payload up to a subflow offset at which a mapping
// begins: every segment before it has arrived, so that a mapping of theirs can
// no longer come. The connection does not acknowledge the bytes and gets them
// again.
func (c *Conn) skipHeld(f *flow, to uint64) {
	c.drop(reason.DropUnmapped)
	for !f.held.empty() && f.held.first().off < to {
		p := f.held.first()
		if k := to - p.off; k < uint64(len(p.view[0])) {
			p.skip(k)
			return
		}
		p.release()
		f.held.pop()
	}
}
