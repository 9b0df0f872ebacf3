package mpconn

import (
	"sort"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// mapping binds n bytes at the offset data of the stream to the offset off of
// one subflow's stream. The relative SSN of RFC 8684 is off+1, because the
// SYN has number 0 (Section 3.3.1), less what went along with the SYN.
//
// RFC 8684, Section 3.3.1: a mapping "MUST NOT" be changed once declared.
type mapping struct {
	off, data uint64
	n         int
	dssLen    uint16 // data-level length as declared: n, and 1 for a DATA_FIN
	checksum  uint16
}

func (m *mapping) end() uint64 { return m.off + uint64(m.n) }

// mappings is a queue of mappings in order of their subflow offsets, which do
// not overlap.
type mappings struct {
	q     []mapping
	head  int
	mixed int // of outgoing ones: how many do not come behind the one before in the stream, too
}

func (s *mappings) all() []mapping { return s.q[s.head:] }

func (s *mappings) empty() bool { return s.head == len(s.q) }

func (s *mappings) first() *mapping { return &s.q[s.head] }

func (s *mappings) last() *mapping { return &s.q[len(s.q)-1] }

func (s *mappings) push(m mapping) {
	if s.head > 0 && len(s.q) == cap(s.q) {
		n := copy(s.q, s.q[s.head:])
		s.q, s.head = s.q[:n], 0
	}
	if len(s.q) > s.head && m.data < s.last().data+uint64(s.last().n) {
		s.mixed++
	}
	s.q = append(s.q, m)
}

func (s *mappings) pop() {
	gone := s.first()
	s.head++
	switch {
	case s.head == len(s.q):
		s.q, s.head, s.mixed = s.q[:0], 0, 0
	case s.first().data < gone.data+uint64(gone.n):
		s.mixed--
	}
}

// searchData returns the index of the first mapping that ends behind a data
// offset, if none is mixed.
func (s *mappings) searchData(data uint64) int {
	live := s.all()
	return sort.Search(len(live), func(i int) bool { return live[i].data+uint64(live[i].n) > data })
}

// search returns the index of the first mapping that ends behind a subflow
// offset.
func (s *mappings) search(off uint64) int {
	live := s.all()
	return sort.Search(len(live), func(i int) bool { return live[i].end() > off })
}

// find returns the mapping that covers a subflow offset.
func (s *mappings) find(off uint64) (*mapping, bool) {
	live, i := s.all(), s.search(off)
	if i == len(live) || live[i].off > off {
		return nil, false
	}
	return &live[i], true
}

// after returns the first mapping that begins behind a subflow offset.
func (s *mappings) after(off uint64) (*mapping, bool) {
	live, i := s.all(), s.search(off)
	if i < len(live) && live[i].off <= off {
		i++
	}
	if i == len(live) {
		return nil, false
	}
	return &live[i], true
}

// carries reports whether a mapping covers a data offset.
func (s *mappings) carries(data uint64) bool {
	if s.mixed == 0 {
		i := s.searchData(data)
		return i < len(s.all()) && s.all()[i].data <= data
	}
	for i := range s.all() {
		m := &s.q[s.head+i]
		if m.data <= data && data < m.data+uint64(m.n) {
			return true
		}
	}
	return false
}

// lacks returns how many bytes from a data offset on, n at most, no mapping
// covers.
func (s *mappings) lacks(data uint64, n int) int {
	end := data + uint64(n)
	for i := range s.all() {
		m := &s.q[s.head+i]
		switch {
		case m.data >= end || m.data+uint64(m.n) <= data:
		case m.data <= data:
			return 0
		default:
			end = m.data
		}
	}
	return int(end - data)
}

// insertVerdict says what became of a received mapping.
type insertVerdict uint8

const (
	mappingAdded insertVerdict = iota
	mappingKnown
	mappingContradicts
)

// insert adds a received mapping in its place. Segments arrive out of order,
// and every packet of a super-segment repeats the same mapping.
func (s *mappings) insert(m mapping) insertVerdict {
	live := s.all()
	i := len(live)
	if i > 0 && live[i-1].end() > m.off {
		i = s.search(m.off)
	}
	if i < len(live) {
		next := &live[i]
		if next.off == m.off && next.data == m.data && next.n == m.n {
			// A DATA_FIN may have been added to it, which lengthens it by one.
			return mappingKnown
		}
		if next.off < m.end() {
			return mappingContradicts
		}
	}
	if i == len(live) {
		s.push(m)
		return mappingAdded
	}
	s.push(mapping{})
	live = s.all()
	copy(live[i+1:], live[i:])
	live[i] = m
	return mappingAdded
}

// bind gives n bytes at the offset data to a flow: a new mapping, or on a
// plain connection the continuation of the only one.
func (c *Conn) bind(f *flow, data uint64, n int) *mapping {
	c.snd.q.Ref(data, n)
	if f.runEnd != data {
		f.run = data
	}
	f.runEnd = data + uint64(n)
	if c.mode == modePlain && !f.out.empty() {
		if m := f.out.last(); m.data+uint64(m.n) == data && m.end() == f.tcp.Pushed() {
			m.n += n
			return m
		}
	}
	m := mapping{off: f.tcp.Pushed(), data: data, n: n, dssLen: uint16(n)}
	if c.checksum && c.mode != modePlain {
		m.checksum = c.checksumOf(f, &m)
	}
	f.out.push(m)
	return f.out.last()
}

// checksumOf computes the DSS checksum of an outgoing mapping.
func (c *Conn) checksumOf(f *flow, m *mapping) uint16 {
	// Room for two blocks, which 64 KiB mostly lie in: those it has on the stack.
	var room [2][]byte
	var owners [2]any
	views, _ := c.snd.q.Views(m.data, m.n, room[:0], owners[:0])
	return wire.DSSChecksum(wire.SumViews(views, 0), uint64(c.snd.dsn(m.data)), f.lead.ssn(m.off), m.dssLen)
}

// flowAcked drops the mappings that a subflow has got acknowledged.
func (c *Conn) flowAcked(f *flow) {
	acked := f.tcp.Acked()
	for !f.out.empty() {
		m := f.out.first()
		if m.end() > acked {
			break
		}
		c.snd.q.Unref(m.data, m.n)
		f.out.pop()
	}
	if f.riding {
		c.riderAcked(f)
	}
	if c.mode != modePlain {
		return
	}
	f.infiniteAcked(acked)
	c.tuneSend()
	if f.out.empty() {
		c.dataAcked(c.snd.nxt)
		return
	}
	m := f.out.first()
	if k := int(acked) - int(m.off); k > 0 {
		c.snd.q.Unref(m.data, k)
		m.off, m.data, m.n = m.off+uint64(k), m.data+uint64(k), m.n-k
	}
	c.dataAcked(m.data)
}

// releaseMappings gives up what a dead flow still carried: bytes that were
// not DATA_ACKed go to the others.
func (c *Conn) releaseMappings(f *flow) {
	for _, m := range f.out.all() {
		c.reinject(m.data, m.data+uint64(m.n))
		c.snd.q.Unref(m.data, m.n)
	}
	f.out = mappings{}
	c.riderLost(f)
}

// putMapping adds the DSS of the mapping to a data segment, with the DATA_ACK,
// once the peer's key is known: data that follows a fast open may come before.
func (c *Conn) putMapping(f *flow, seg *wire.Segment, m *mapping) {
	if c.mode == modeMPTCP {
		c.putDataAck(f, seg)
	} else {
		seg.Has |= wire.OptDSS
		seg.DSS = wire.DSS{}
	}
	d := &seg.DSS
	// Numbers of 8 bytes: a fast connection may wrap 2^32 within an MSL
	// (RFC 8684, Section 3.3.1), and the room is there.
	d.Flags |= wire.DSSMap | wire.DSSDSN8
	d.DSN = uint64(c.snd.dsn(m.data))
	d.SSN = f.lead.ssn(m.off)
	d.Len = m.dssLen
	d.HasChecksum, d.Checksum = c.checksum, m.checksum
}

// addMapping notes a mapping that the peer declared.
func (c *Conn) addMapping(now mono.Time, f *flow, m mapping) {
	if m.n == 0 || m.end() <= f.heldFrom() || f.failed != reason.CloseNone {
		return
	}
	// RFC 8684, Section 3.3.4: "A sanity check SHOULD be performed at the
	// subflow level to ensure that the subflow and mapped sequence numbers meet
	// the following test: SSN - SUBFLOW_ACK <= DSN - DATA_ACK". It decides what
	// is accepted at the connection level, where payload comes in the subflow's
	// order only: then SSN is SUBFLOW_ACK, and whatever is new meets the test.
	// Before its turn, reinjected data that follows data with higher numbers
	// fails it while it is good; it waits on its subflow. What is tested here is
	// that the subflow runs ahead by no more than the connection's window can
	// have allowed.
	if m.end() > f.got+uint64(c.rcv.buffer.limit)+maxMapping {
		c.oddity().FarMappings++
		c.drop(reason.DropMapping)
		return
	}
	if len(f.in.all()) >= max(minMappings, c.rcv.buffer.limit/bytesPerMapping) {
		c.drop(reason.DropMemory)
		return
	}
	f.noteLine(m)
	if f.in.insert(m) == mappingContradicts {
		// RFC 8684, Section 3.3.1: "A sender MUST NOT change this mapping after
		// it has been declared".
		c.drop(reason.DropMapping)
		c.abortFlow(now, f, reason.CloseLocalReset, reason.ResetMPTCP)
	}
}

// The mappings kept for one subflow's incoming data are bounded: one for so many
// bytes of receive buffer, but not too few.
const (
	minMappings     = 1 << 12
	bytesPerMapping = 512
)

// offsetOf returns the subflow offset of a relative SSN, near what is
// expected next.
func (f *flow) offsetOf(relSSN uint32) uint64 {
	return seq.SSN(relSSN-1).Expand(0, f.got-f.lead.in) + f.lead.in
}
