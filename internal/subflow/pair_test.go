package subflow_test

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:1000")
	addrB = netip.MustParseAddrPort("10.0.0.2:80")
)

// end plays the connection above one subflow: it holds the bytes to send,
// fills them into segments and checks those that come.
type end struct {
	s          *subflow.Subflow
	data       []byte // to send, known to the other end as want
	borders    int    // push at most so many bytes at once; 0 = no limit
	extend     bool   // plain TCP: Extend instead of Push
	closeAfter bool   // Close once everything is pushed
	held       int    // bytes at the end of data that are not written yet

	want     []byte // what must come
	got      int
	eof      bool
	buffer   int // receive buffer
	unread   int
	edge     int // of the window offered
	readRate int // bytes read at each wake-up; 0 = all

	closed bool
	events []subflow.Event
	final  int // EventClosed and EventTimeWait seen
	late   int // consecutive HandleTimeout calls that left a past deadline
}

// link is one direction of the network between two ends.
type link struct {
	rate                   float64 // bytes a second; 0 = no limit
	delay                  time.Duration
	queue                  int // bytes; 0 = no limit
	loss, reorder, dup     float64
	reorderBy              time.Duration
	drop                   func(n int, seg *wire.Segment) bool // by hand; n counts from 0
	mark                   int                                 // bytes of queue beyond which ECN-capable packets are marked; 0 = never
	mtu                    int                                 // larger packets are dropped with an ICMP message; 0 = no limit
	busy                   mono.Time
	n, dropped, duplicated int
	marked                 int
}

// packet is one packet under way.
type packet struct {
	at    mono.Time
	order int
	to    int
	seg   *wire.Segment
}

type flight []packet

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].order < f[j].order
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(packet)) }
func (f *flight) Pop() any {
	p := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return p
}

// pair is two subflows joined back to back in virtual time.
type pair struct {
	t     testing.TB
	now   mono.Time
	rand  *rand.Rand
	ends  [2]*end
	links [2]link // links[i] carries what ends[i] sends
	queue flight
	order int
	mtu   int // no packet may be larger
	trace bool

	// aborted and spoofed tell that the transfer need not finish, and that the
	// bytes need not be right either.
	aborted, spoofed bool

	makePassive func(syn *wire.Segment) *subflow.Subflow
}

// pairConfig is what both ends of a pair are made from.
type pairConfig struct {
	seed   uint64
	cc     string
	ab, ba link
	a, b   func(*subflow.Config)
	both   bool // both ends open actively
}

func baseConfig(local, remote netip.AddrPort) subflow.Config {
	return subflow.Config{
		Ends: &subflow.Ends{Local: local, Remote: remote}, ISS: 1, MTU: 1480,
		Room: subflow.Room{Data: 20, ACK: 12}, Knobs: &subflow.Knobs{MaxWindow: 4 << 20},
	}
}

func controller(t testing.TB, name string, cfg subflow.Config) cc.Controller {
	f, err := cc.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return f().Add(cc.Params{MSS: cfg.MTU - 20 - 12 - int(cfg.Room.Data)})
}

// newPair opens a connection from end 0 to end 1, which comes to life with
// the first SYN.
func newPair(t testing.TB, c pairConfig) *pair {
	if c.cc == "" {
		c.cc = "reno"
	}
	p := &pair{t: t, now: mono.Time(time.Second), rand: rand.New(rand.NewPCG(c.seed, 1))}
	p.links = [2]link{c.ab, c.ba}
	for i := range p.ends {
		p.ends[i] = &end{buffer: 1 << 20, closeAfter: true}
	}
	a, b := baseConfig(addrA, addrB), baseConfig(addrB, addrA)
	a.ISS, b.ISS = 0xfffffff0, 0xffff0000
	a.TSOffset, b.TSOffset = 0xfffffff0, 77
	if c.a != nil {
		c.a(&a)
	}
	if c.b != nil {
		c.b(&b)
	}
	p.mtu = min(a.MTU, b.MTU)
	p.ends[0].s = subflow.Open(p.now, a, controller(t, c.cc, a))
	if c.both {
		p.ends[1].s = subflow.Open(p.now, b, controller(t, c.cc, b))
	}
	p.makePassive = func(syn *wire.Segment) *subflow.Subflow {
		return subflow.Accept(p.now, b, controller(t, c.cc, b), syn)
	}
	return p
}

// transfer sets what the two ends send to each other.
func (p *pair) transfer(ab, ba int) {
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(p.rand.Uint32())
		}
		return b
	}
	p.ends[0].data, p.ends[1].data = fill(ab), fill(ba)
	p.ends[0].want, p.ends[1].want = p.ends[1].data, p.ends[0].data
}

// run steps the pair until both ends are over or the time is up, and reports
// whether they are over.
func (p *pair) run(limit time.Duration) bool {
	p.t.Helper()
	until := p.now.Add(limit)
	for i := range p.ends {
		p.pump(i)
	}
	for p.now < until {
		if p.over() {
			return true
		}
		if !p.step(until) {
			break
		}
	}
	return p.over()
}

// over reports whether both ends had their last event.
func (p *pair) over() bool {
	return p.ends[0].final > 0 && (p.ends[1].s == nil || p.ends[1].final > 0)
}

// tick lets time pass.
func (p *pair) tick(d time.Duration) {
	p.t.Helper()
	for until := p.now.Add(d); p.now < until && p.step(until); {
	}
}

// check looks for broken invariants.
func (p *pair) check() {
	p.t.Helper()
	for i, e := range p.ends {
		if e.s != nil {
			if err := e.s.CheckInvariants(); err != nil {
				p.t.Fatalf("end %d: %v", i, err)
			}
		}
	}
}

// step moves to the next arrival or deadline.
func (p *pair) step(until mono.Time) bool {
	next := mono.Time(0)
	if len(p.queue) > 0 {
		next = p.queue[0].at
	}
	for _, e := range p.ends {
		if e.s != nil {
			next = mono.Earliest(next, e.s.Deadline())
		}
		if e.readRate > 0 && e.unread > 0 {
			next = mono.Earliest(next, p.now.Add(10*time.Millisecond))
		}
	}
	if !next.Set() {
		p.now = until
		return false
	}
	p.now = max(p.now, min(next, until))
	for i, e := range p.ends {
		if e.s != nil && e.s.Deadline().Reached(p.now) {
			e.s.HandleTimeout(p.now)
			if e.s.Deadline().Reached(p.now) {
				e.late++
				if e.late > 1 {
					p.t.Fatalf("end %d: deadline in the past after HandleTimeout, twice", i)
				}
			} else {
				e.late = 0
			}
			p.pump(i)
		}
	}
	for i, e := range p.ends {
		if e.readRate > 0 && e.unread > 0 {
			p.pump(i)
		}
	}
	for len(p.queue) > 0 && p.queue[0].at <= p.now {
		k := heap.Pop(&p.queue).(packet)
		p.deliver(k.to, k.seg)
	}
	return true
}

// deliver hands a packet to an end.
func (p *pair) deliver(i int, seg *wire.Segment) {
	e := p.ends[i]
	if e.s == nil {
		if seg.Flags&(wire.SYN|wire.ACK|wire.RST|wire.FIN) != wire.SYN {
			return
		}
		e.s = p.makePassive(seg)
	} else {
		e.s.HandleSegment(p.now, seg)
	}
	p.pump(i)
}

// pump does what a driver does after every call: give the subflow what it has
// room for, poll segments, data and events.
func (p *pair) pump(i int) {
	p.t.Helper()
	e := p.ends[i]
	if e.s == nil {
		return
	}
	e.take(p)
	e.push(p)
	var seg wire.Segment
	for n := 0; ; n++ {
		e.s.SetReceiveWindow(e.window())
		r, ok := e.s.PollSegment(p.now, &seg)
		if !ok {
			if !e.push(p) {
				break
			}
			continue
		}
		if n > 100000 {
			p.t.Fatalf("end %d sends without end: %v", i, &seg)
		}
		if r.Len > 0 {
			if r.Off+uint64(r.Len) > uint64(len(e.data)) {
				p.t.Fatalf("end %d: range %+v beyond the %d bytes pushed", i, r, len(e.data))
			}
			if e.borders > 0 && r.Off/uint64(e.borders) != (r.Off+uint64(r.Len)-1)/uint64(e.borders) {
				p.t.Fatalf("end %d: range %+v crosses the border of a push", i, r)
			}
			seg.Payload = append(seg.Payload, e.data[r.Off:][:r.Len])
		}
		p.send(i, &seg)
	}
	for {
		ev, ok := e.s.PollEvent()
		if !ok {
			break
		}
		if e.final > 0 {
			p.t.Fatalf("end %d: event %+v after the last one", i, ev)
		}
		if ev.Kind == subflow.EventClosed || ev.Kind == subflow.EventTimeWait {
			e.final++
		}
		e.events = append(e.events, ev)
	}
}

// window returns what to offer, moved by steps worth telling.
func (e *end) window() int {
	if edge := e.got + e.buffer - e.unread; edge >= e.edge+min(e.buffer/2, 1460) {
		e.edge = edge
	}
	return e.edge - e.got
}

// take receives data and compares it with what was sent.
func (e *end) take(p *pair) {
	var d subflow.Data
	for e.s.NextData(&d) {
		if d.Off != uint64(e.got) && !p.spoofed {
			p.t.Fatalf("data at offset %d, want %d", d.Off, e.got)
		}
		for _, v := range d.Views {
			if p.spoofed {
				continue
			}
			if e.got+len(v) > len(e.want) || !bytes.Equal(v, e.want[e.got:][:len(v)]) {
				p.t.Fatalf("wrong bytes at offset %d", e.got)
			}
			e.got += len(v)
			e.unread += len(v)
		}
		if d.Owner != nil {
			d.Owner.DecRef()
		}
	}
	if e.readRate == 0 {
		e.unread = 0
	}
	e.unread = max(e.unread-e.readRate, 0)
	if e.s.PeerClosed() {
		e.eof = true
		if e.got != len(e.want) && !p.spoofed {
			p.t.Fatalf("end of stream after %d bytes of %d", e.got, len(e.want))
		}
	}
}

// push gives the subflow as much as it has room for and reports whether that
// was anything.
func (e *end) push(p *pair) bool {
	any := false
	for {
		waiting := len(e.data) - e.held - int(e.s.Pushed())
		n := e.s.Room(p.now, waiting)
		if n > waiting {
			p.t.Fatalf("room %d of %d waiting", n, waiting)
		}
		if e.borders > 0 {
			n = min(n, e.borders-int(e.s.Pushed())%e.borders)
		}
		if n == 0 {
			e.s.SetBlocked(p.now, waiting > 0 && e.s.InFlight() == 0)
			break
		}
		any = true
		if e.extend && e.s.Pushed() > 0 {
			e.s.Extend(p.now, n)
		} else {
			e.s.Push(p.now, n)
		}
	}
	if e.closeAfter && !e.closed && e.s.State().Synchronized() && int(e.s.Pushed()) == len(e.data) {
		e.closed = true
		e.s.Close(p.now)
		any = true
	}
	return any
}

// send cuts a segment into packets, builds and parses each, and puts it on
// the link unless that loses it.
func (p *pair) send(from int, seg *wire.Segment) {
	l := &p.links[from]
	cutter := wire.Split(seg)
	var cut wire.Segment
	for cutter.Next(&cut) {
		var head [60]byte
		n := wire.Build(&head, &cut)
		out := &wire.Segment{Src: cut.Src, Dst: cut.Dst, ECN: cut.ECN}
		if why := wire.Parse(head[:n], out); why != reason.DropNone {
			p.t.Fatalf("own segment does not parse: %v: %v", why, &cut)
		}
		var payload []byte
		for _, v := range cut.Payload {
			payload = append(payload, v...)
		}
		if len(payload) > 0 {
			out.Payload = [][]byte{payload}
		}
		size := n + len(payload)
		if size > p.mtu && !p.spoofed {
			p.t.Fatalf("packet of %d bytes, path of %d: %v", size, p.mtu, out)
		}
		if p.trace {
			fmt.Printf("%v %v\n", p.now.Duration(), out)
		}
		l.carry(p, 1-from, out, size)
	}
}

// carry offers one packet of size bytes (TCP header and payload) to the link.
func (l *link) carry(p *pair, to int, seg *wire.Segment, size int) {
	l.n++
	if l.mtu > 0 && size > l.mtu {
		// The router in front of the narrow link says so.
		p.ends[1-to].s.HandlePacketTooBig(p.now, seg.Seq, l.mtu)
		l.dropped++
		return
	}
	if l.drop != nil && l.drop(l.n-1, seg) || p.rand.Float64() < l.loss {
		l.dropped++
		return
	}
	size += 20
	at := p.now
	if l.rate > 0 {
		start := max(l.busy, p.now)
		if l.queue > 0 && start.Sub(p.now).Seconds()*l.rate > float64(l.queue) {
			l.dropped++
			return
		}
		if l.mark > 0 && seg.ECN == wire.ECT0 && start.Sub(p.now).Seconds()*l.rate > float64(l.mark) {
			seg.ECN = wire.CE
			l.marked++
		}
		l.busy = start.Add(time.Duration(float64(size) / l.rate * float64(time.Second)))
		at = l.busy
	}
	at = at.Add(l.delay)
	if p.rand.Float64() < l.reorder {
		at = at.Add(l.reorderBy)
	}
	p.enqueue(at, to, seg)
	if p.rand.Float64() < l.dup {
		l.duplicated++
		again := *seg
		again.Payload = append([][]byte(nil), seg.Payload...)
		p.enqueue(at.Add(time.Duration(p.rand.IntN(int(time.Millisecond)))), to, &again)
	}
}

func (p *pair) enqueue(at mono.Time, to int, seg *wire.Segment) {
	p.order++
	heap.Push(&p.queue, packet{at: at, order: p.order, to: to, seg: seg})
}

// finish runs the pair and checks that everything arrived and both ends are
// over.
func (p *pair) finish(limit time.Duration) {
	p.t.Helper()
	over := p.run(limit)
	for i, e := range p.ends {
		if e.s == nil || !e.eof || e.got != len(e.want) {
			p.t.Fatalf("at %v end %d got %d of %d bytes, eof %v; over %v; stats %+v", p.now.Duration(), i, e.got, len(e.want), e.eof, over, p.stats())
		}
	}
	if !over {
		p.t.Fatalf("at %v not over: %+v", p.now.Duration(), p.stats())
	}
}

func (p *pair) stats() (out [2]subflow.Stats) {
	for i, e := range p.ends {
		if e.s != nil {
			out[i] = e.s.Stats()
		}
	}
	return out
}
