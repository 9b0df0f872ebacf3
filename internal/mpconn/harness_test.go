package mpconn

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// lab is two hosts joined by paths, in virtual time. Every segment crosses
// as bytes, so that what a test sees is what a peer would see.
type lab struct {
	t     testing.TB
	now   mono.Time
	rng   *rand.Rand
	a, b  *end // a opens, b accepts
	paths []*path
	queue packets
	seq   int
}

// path is a pair of addresses and what happens between them.
type path struct {
	delay     time.Duration
	loss      float64
	reorder   float64
	duplicate float64
	down      bool
	// box may change a segment on its way or drop it.
	box func(from *end, seg *wire.Segment) (keep bool)
}

// end is one host with its connection.
type end struct {
	lab    *lab
	name   string
	host   byte // last byte of its addresses
	cfg    Config
	conn   *Conn
	tuples map[[2]netip.AddrPort]int
	events []Event
	wrote  int // bytes of the oracle's stream written
	read   int // bytes read and found right
	salt   byte
	wrong  int // bytes read that a box altered; see tolerate
	// tolerate lets altered bytes pass once the connection has fallen back: from
	// then on the stream is that of plain TCP.
	tolerate bool
	sent     []wire.Segment // headers of everything sent
}

type packet struct {
	at     mono.Time
	n      int
	to     *end
	path   *path
	src    netip.AddrPort
	dst    netip.AddrPort
	header []byte
	data   []byte
}

type packets []*packet

func (q packets) Len() int { return len(q) }
func (q packets) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q packets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *packets) Push(x any)   { *q = append(*q, x.(*packet)) }
func (q *packets) Pop() any {
	old := *q
	p := old[len(old)-1]
	*q = old[:len(old)-1]
	return p
}

// keyA and keyB are the keys of RFC 8684 test vectors in package key.
var (
	keyA = key.Key{1, 2, 3, 4, 5, 6, 7, 8}
	keyB = key.Key{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
)

func newLab(t testing.TB, seed uint64, paths int) *lab {
	l := &lab{t: t, now: mono.Time(time.Second), rng: rand.New(rand.NewPCG(seed, 1))}
	for range paths {
		l.paths = append(l.paths, &path{delay: 10 * time.Millisecond})
	}
	l.a = l.newEnd("a", 1, keyA, 0x5a)
	l.b = l.newEnd("b", 2, keyB, 0xa5)
	return l
}

func (l *lab) newEnd(name string, host byte, k key.Key, salt byte) *end {
	sched, err := scheduler.ByName("minrtt")
	require.NoError(l.t, err)
	control, err := cc.ByName("reno")
	require.NoError(l.t, err)
	iss := seq.SSN(0xfffff000 + uint32(host))
	return &end{
		lab: l, name: name, host: host, salt: salt, tuples: map[[2]netip.AddrPort]int{},
		cfg: Config{Key: k, Settings: &Settings{
			Scheduler: sched, Congestion: cc.Factory(control), Alloc: stream.Heap{},
			Path: func(_, _ netip.Addr) (int, int) { return 1480, 0 },
			ISS:  func(mono.Time, netip.AddrPort, netip.AddrPort) (seq.SSN, uint32) { iss += 1 << 20; return iss, 7 },
			Rand: l.rng.Uint64,
		}},
	}
}

// schedule sets the policy of a connection to come.
func (e *end) schedule(policy string) {
	var err error
	e.cfg.Scheduler, err = scheduler.ByName(policy)
	require.NoError(e.lab.t, err)
}

func addr(path int, host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(path), host}) }

// at returns the end's address and port on a path.
func (e *end) at(path int) netip.AddrPort {
	port := uint16(80)
	if e.host == 1 {
		port = uint16(40000 + path)
	}
	return netip.AddrPortFrom(addr(path, e.host), port)
}

// dial makes a open a connection to b on path 0.
func (l *lab) dial() {
	l.a.cfg.Local, l.a.cfg.Remote = l.a.at(0), l.b.at(0)
	l.a.conn = Dial(l.now, &l.a.cfg)
	l.a.pump()
}

// join makes a open a subflow on a path.
func (l *lab) join(path int) int {
	l.t.Helper()
	id, ok := l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(path), Remote: l.b.at(path)})
	require.True(l.t, ok, "join on path %d", path)
	l.a.pump()
	return id
}

// pump polls a connection the way a driver does.
func (e *end) pump() {
	var seg wire.Segment
	for i := 0; ; i++ {
		require.Less(e.lab.t, i, 100000, "%s never stops sending", e.name)
		for e.conn.PollSegment(e.lab.now, &seg) {
			e.lab.send(e, &seg)
		}
		ev, ok := e.conn.PollEvent()
		if !ok {
			break
		}
		e.take(ev)
	}
}

func (e *end) take(ev Event) {
	e.events = append(e.events, ev)
	tuple := [2]netip.AddrPort{ev.Local, ev.Remote}
	switch ev.Kind {
	case EventSubflowOpened:
		e.tuples[tuple] = ev.ID
	case EventSubflowLost:
		delete(e.tuples, tuple)
	}
}

// send puts a segment on the path of its addresses.
func (l *lab) send(from *end, seg *wire.Segment) {
	head := *seg
	head.Payload, head.Blocks = nil, nil
	from.sent = append(from.sent, head)
	p := l.paths[seg.Src.Addr().As4()[2]]
	var data []byte
	for _, v := range seg.Payload {
		data = append(data, v...)
	}
	cp := head
	cp.Payload = [][]byte{data}
	if p.box != nil && !p.box(from, &cp) {
		return
	}
	data = cp.Payload[0]
	if p.down || l.rng.Float64() < p.loss {
		return
	}
	var b [wire.MaxHeader]byte
	n := wire.Build(&b, &cp)
	to := l.a
	if from == l.a {
		to = l.b
	}
	copies := 1
	if l.rng.Float64() < p.duplicate {
		copies = 2
	}
	for range copies {
		at := l.now.Add(p.delay)
		if l.rng.Float64() < p.reorder {
			at = at.Add(p.delay / 2)
		}
		l.seq++
		heap.Push(&l.queue, &packet{
			at: at, n: l.seq, to: to, path: p, src: cp.Src, dst: cp.Dst,
			header: append([]byte(nil), b[:n]...), data: data,
		})
	}
}

// receive gives a packet to its end.
func (e *end) receive(p *packet) {
	var seg wire.Segment
	require.Zero(e.lab.t, wire.Parse(p.header, &seg), "own header must parse")
	seg.Src, seg.Dst = p.src, p.dst
	if len(p.data) > 0 {
		seg.Payload = append(seg.Payload, p.data)
	}
	id, known := e.tuples[[2]netip.AddrPort{seg.Dst, seg.Src}]
	switch {
	case known:
		e.conn.HandleSegment(e.lab.now, id, &seg)
	case seg.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.SYN:
		return
	case e.conn == nil:
		e.cfg.Local, e.cfg.Remote = seg.Dst, seg.Src
		e.conn = Accept(e.lab.now, &e.cfg, &seg)
	case seg.Has&wire.OptMPJoin != 0 && seg.Join.Token == uint32(e.conn.Token()):
		e.conn.HandleJoin(e.lab.now, &seg)
	}
	e.pump()
}

// next returns when the next packet arrives or deadline comes; 0 = never.
func (l *lab) next() mono.Time {
	var at mono.Time
	if len(l.queue) > 0 {
		at = l.queue[0].at
	}
	for _, e := range []*end{l.a, l.b} {
		if e.conn != nil {
			at = mono.Earliest(at, e.conn.Deadline())
		}
	}
	return at
}

// step advances to the next packet or deadline and reports whether there was
// one.
func (l *lab) step() bool {
	at := l.next()
	if !at.Set() {
		return false
	}
	l.now = max(l.now, at)
	if len(l.queue) > 0 && l.queue[0].at <= l.now {
		p := heap.Pop(&l.queue).(*packet)
		if !p.path.down {
			p.to.receive(p)
		}
		return true
	}
	for _, e := range []*end{l.a, l.b} {
		if e.conn != nil && e.conn.Deadline().Reached(l.now) {
			e.conn.HandleTimeout(l.now)
			e.pump()
		}
	}
	return true
}

// run steps until done, and fails when nothing is left to happen or d has
// passed before.
func (l *lab) run(why string, d time.Duration, done func() bool) {
	l.t.Helper()
	limit := l.now.Add(d)
	for steps := 0; !done(); steps++ {
		if l.now > limit || !l.step() || steps > 5_000_000 {
			l.t.Fatalf("%s: not after %v\na: %s\nb: %s", why, l.now.Sub(limit.Add(-d)), l.a.dump(), l.b.dump())
		}
	}
}

// idle runs for d, whatever happens.
func (l *lab) idle(d time.Duration) {
	limit := l.now.Add(d)
	for l.next().Reached(limit) && l.step() {
	}
	l.now = max(l.now, limit)
}

func (e *end) dump() string {
	if e.conn == nil {
		return "no connection"
	}
	s := fmt.Sprintf("wrote %d read %d %+v deadline %v", e.wrote, e.read, e.conn.Info(), e.conn.Deadline().Duration())
	for _, f := range e.conn.AppendSubflows(nil) {
		s += fmt.Sprintf("\n   %+v", f)
	}
	return s
}

// connect dials and waits until both ends are connected.
func (l *lab) connect() {
	l.t.Helper()
	l.dial()
	l.run("connect", 20*time.Second, func() bool {
		return l.a.conn.Connected() && l.b.conn != nil && l.b.conn.Connected()
	})
}

// prove exchanges a byte each way, after which joins are allowed.
func (l *lab) prove() {
	l.t.Helper()
	l.a.write(1)
	l.b.write(1)
	l.run("first bytes", 20*time.Second, func() bool {
		l.a.readAll()
		l.b.readAll()
		return l.a.read == 1 && l.b.read == 1
	})
}

// at position i the stream of an end with this salt has this byte.
func oracle(salt byte, i int) byte { return byte(i) ^ byte(i>>8)*31 ^ byte(i>>16)*17 ^ salt }

// write writes up to n more bytes of the oracle's stream.
func (e *end) write(n int) int {
	p := make([]byte, max(min(n, e.conn.WriteRoom()), 0))
	for i := range p {
		p[i] = oracle(e.salt, e.wrote+i)
	}
	n = e.conn.Write(e.lab.now, p)
	e.wrote += n
	e.pump()
	return n
}

// readAll reads and checks everything there is.
func (e *end) readAll() {
	if e.conn == nil || e.conn.Readable() == 0 {
		return
	}
	peer := e.lab.a
	if e == e.lab.a {
		peer = e.lab.b
	}
	p := make([]byte, e.conn.Readable())
	n := e.conn.Read(e.lab.now, p)
	for i := range n {
		if p[i] == oracle(peer.salt, e.read+i) {
			continue
		}
		if e.wrong++; !e.tolerate || e.conn.Fallback() == reason.FallbackNone {
			e.lab.t.Fatalf("%s: byte %d is %#x, want %#x", e.name, e.read+i, p[i], oracle(peer.salt, e.read+i))
		}
	}
	e.read += n
	e.pump()
}

// transfer moves n bytes from one end to the other, calling at each step.
func (l *lab) transfer(from, to *end, n int, limit time.Duration, each func()) {
	l.t.Helper()
	goal, start := from.wrote+n, to.read
	l.run("transfer", limit, func() bool {
		if from.wrote < goal {
			from.write(min(goal-from.wrote, 64<<10))
		}
		to.readAll()
		if each != nil {
			each()
		}
		return to.read == start+n
	})
}

// count returns how many events of a kind came.
func (e *end) count(k EventKind) int {
	n := 0
	for _, ev := range e.events {
		if ev.Kind == k {
			n++
		}
	}
	return n
}

// wantClosed runs until both ends are over and checks how.
func (l *lab) wantClosed(a, b reason.Close) {
	l.t.Helper()
	l.run("close", 200*time.Second, func() bool { return l.a.conn.Closed() && l.b.conn.Closed() })
	require.Equal(l.t, a, l.a.conn.Err(), "a")
	require.Equal(l.t, b, l.b.conn.Err(), "b")
}
