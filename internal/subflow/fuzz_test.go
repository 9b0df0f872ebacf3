package subflow_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// script reads a fuzzer's bytes; behind their end it reads zeros.
type script struct{ b []byte }

func (s *script) next() int {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return int(c)
}

// FuzzSubflow joins two subflows and does to the packets between them, and to
// the ends, what the bytes say. Bytes must arrive as they were sent, nothing
// may panic or break an invariant, and when the network behaves again both
// ends must finish.
func FuzzSubflow(f *testing.F) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := make([]byte, 20+r.IntN(400))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(fuzzOne)
}

func fuzzOne(t *testing.T, b []byte) {
	s := &script{b}
	knobs := s.next() | s.next()<<8
	p := newPair(t, pairConfig{
		seed: uint64(s.next()), ab: link{delay: 5 * time.Millisecond}, ba: link{delay: 7 * time.Millisecond},
		a: func(c *subflow.Config) { fuzzKnobs(c, knobs) }, b: func(c *subflow.Config) { fuzzKnobs(c, knobs>>1) },
	})
	p.transfer(s.next()*600, s.next()*50)
	for i := range p.ends {
		p.ends[i].closeAfter = false
		p.ends[i].buffer = 2000 + 2000*s.next()
		p.ends[i].held = len(p.ends[i].data)
	}
	p.pump(0)
	for len(s.b) > 0 && !p.over() {
		fuzzStep(p, s)
		p.check()
	}
	for i := range p.ends {
		p.ends[i].held, p.ends[i].closeAfter, p.ends[i].readRate = 0, true, 0
		p.pump(i)
	}
	p.run(30 * time.Minute)
	p.check()
	if p.aborted || p.spoofed {
		return
	}
	for i, e := range p.ends {
		if !p.over() || e.got != len(e.want) {
			t.Fatalf("end %d got %d of %d bytes; over %v; %+v", i, e.got, len(e.want), p.over(), p.stats())
		}
	}
}

// fuzzKnobs varies what the two ends are made from.
func fuzzKnobs(c *subflow.Config, k int) {
	c.NoSACK = k&1 != 0
	c.NoTimestamps = k&4 != 0
	if k&8 != 0 {
		c.SegmentMax = 10000
	}
	c.Nagle = k&16 != 0
	c.NoRACK = k&256 != 0
	c.ECN = k&512 != 0
	c.Pacing = k&2048 != 0
	if k&8192 != 0 {
		c.StartMTU = 300
	}
	if k&32 != 0 {
		c.MTU = 600
	}
	c.SYNRetries, c.Retries = 100, 1000 // only time and aborts may end them
	c.KeepAlive.Count, c.FinWait2 = 1000, 24*time.Hour
}

// fuzzStep does one thing.
func fuzzStep(p *pair, s *script) {
	i := s.next() & 1
	e := p.ends[i]
	switch op := s.next() % 16; op {
	case 0, 1, 2: // some bytes are written
		e.held = max(e.held-100*s.next(), 0)
		p.pump(i)
	case 3, 4, 5, 6, 7: // time passes
		p.tick(time.Duration(1+s.next()) * time.Millisecond)
	case 8: // much time passes
		p.tick(time.Duration(1+s.next()) * 50 * time.Millisecond)
	case 9: // a packet is lost
		if n := len(p.queue); n > 0 {
			heap.Remove(&p.queue, s.next()%n)
		}
	case 10: // a packet comes late
		if n := len(p.queue); n > 0 {
			k := heap.Remove(&p.queue, s.next()%n).(packet)
			p.enqueue(p.now.Add(time.Duration(s.next())*time.Millisecond), k.to, k.seg)
		}
	case 11: // a packet comes twice
		if n := len(p.queue); n > 0 {
			k := p.queue[s.next()%n]
			again := *k.seg
			again.Payload = append([][]byte(nil), k.seg.Payload...)
			p.enqueue(k.at.Add(time.Duration(s.next())*time.Millisecond), k.to, &again)
		}
	case 12: // a network message or a call
		fuzzCall(p, e, s)
		p.pump(i)
	case 13: // the reader stops or goes on
		e.readRate = []int{0, 1, 500, 3000}[s.next()%4]
		p.pump(i)
	case 14: // the writer closes, or a router marks a packet
		if n := len(p.queue); n > 0 && s.next()&3 != 0 {
			if seg := p.queue[s.next()%n].seg; seg.ECN == wire.ECT0 {
				seg.ECN = wire.CE
			}
			break
		}
		e.closeAfter = true
		p.pump(i)
	case 15: // somebody forges a segment
		if e.s == nil {
			break
		}
		if e.s.HandleSegment(p.now, forged(p, s)) == subflow.Accepted {
			p.spoofed = true
		}
		p.pump(i)
	}
}

// fuzzCall makes one of the rarer calls.
func fuzzCall(p *pair, e *end, s *script) {
	if e.s == nil {
		return
	}
	quoted := seq.SSN(0)
	if len(p.queue) > 0 {
		quoted = p.queue[s.next()%len(p.queue)].seg.Seq
	}
	var seg wire.Segment
	switch s.next() % 10 {
	case 0, 1:
		e.s.HandlePacketTooBig(p.now, quoted, 6*s.next())
	case 2:
		e.s.HandleUnreachable(p.now, quoted, s.next()&1 != 0)
		p.aborted = p.aborted || e.s.State() == subflow.StateClosed
	case 3:
		e.s.RequestAck()
	case 4:
		if e.s.ForceAck(p.now, &seg, s.next()%40) {
			p.send(e.side(p), &seg)
		}
	case 5:
		e.s.Probe()
	case 6:
		e.s.SetRoom(subflow.Room{Data: uint8(s.next() % 32 &^ 3), ACK: uint8(s.next() % 32 &^ 3)})
	case 7:
		e.s.SetReceiveWindow(s.next() * s.next())
	case 8:
		e.s.SetBlocked(p.now, s.next()&1 != 0)
	case 9:
		if s.next() > 200 {
			e.s.Abort(p.now)
			p.aborted = true
		}
	}
}

// side returns which end e is.
func (e *end) side(p *pair) int {
	if e == p.ends[0] {
		return 0
	}
	return 1
}

// forged makes a segment of what the bytes say, half of the time near a
// genuine one.
func forged(p *pair, s *script) *wire.Segment {
	seg := &wire.Segment{Src: addrB, Dst: addrA}
	if len(p.queue) > 0 {
		near := p.queue[s.next()%len(p.queue)].seg
		seg.Header, seg.Options = near.Header, near.Options
	}
	word := func() uint32 {
		return uint32(s.next())<<24 | uint32(s.next())<<16 | uint32(s.next())<<8 | uint32(s.next())
	}
	what := s.next()
	if what&1 != 0 {
		seg.Seq += seq.SSN(word())
	}
	if what&2 != 0 {
		seg.Ack += seq.SSN(word())
	}
	if what&4 != 0 {
		seg.Flags = wire.Flags(s.next())
	}
	if what&8 != 0 {
		seg.Wnd = uint16(word())
	}
	if what&16 != 0 {
		seg.Has |= wire.OptSACK
		seg.NumSACK = uint8(1 + s.next()%4)
		for i := range seg.SACK[:seg.NumSACK] {
			left := seg.Ack.Add(s.next() * 100)
			seg.SACK[i] = wire.SACKBlock{Left: left, Right: left.Add(s.next()*100 - 1000)}
		}
	}
	if what&32 != 0 {
		seg.Has = wire.OptionSet(word()) & (wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted | wire.OptTimestamps | wire.OptSACK)
		seg.TSVal, seg.TSEcr, seg.MSS, seg.WScale = word(), word(), uint16(word()), uint8(s.next())
		seg.NumSACK = uint8(s.next() % 5)
	}
	if what&64 != 0 {
		seg.Payload = [][]byte{make([]byte, s.next()*16), make([]byte, s.next())}
	}
	return seg
}
