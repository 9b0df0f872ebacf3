package mptcp

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// deliverBatch is how many packets are looked up under one lock.
const deliverBatch = 32

// noOwner stands for memory that is never reused.
type noOwner struct{}

func (noOwner) DecRef() {}

// Deliver takes packets from the network, in order. It never waits for a
// connection or an application, and may be called from within Network.Send.
// The slices of batch may be reused once it has returned; payload memory is
// kept until Owner.DecRef.
func (s *Stack) Deliver(batch []Packet) {
	for len(batch) > 0 {
		n := min(len(batch), deliverBatch)
		s.deliver(batch[:n])
		batch = batch[n:]
	}
}

// deliver looks up whose the packets are, and hands each run of packets of
// one connection to it.
func (s *Stack) deliver(batch []Packet) {
	var (
		items [deliverBatch]*item
		conns [deliverBatch]*Conn
		drops [deliverBatch]reason.Drop
	)
	for i := range batch {
		items[i], drops[i] = parse(&batch[i])
	}
	replies := s.sort(items[:len(batch)], conns[:], drops[:])
	if replies != nil {
		replies.flush(s.network)
		replies.free()
	}
	for i := 0; i < len(batch); {
		c, run := conns[i], queue{}
		for ; i < len(batch) && conns[i] == c; i++ {
			if items[i] != nil {
				run.push(items[i])
			}
		}
		if c != nil {
			c.accept(run)
		}
	}
}

// parse makes an item of a packet.
func parse(p *Packet) (*item, reason.Drop) {
	it := itemPool.Get().(*item)
	seg := &it.seg
	seg.Src, seg.Dst = p.Src, p.Dst
	seg.Payload = append(seg.Payload, p.Payload...)
	seg.ECN = wire.ECN(p.ECN)
	seg.SegSize = p.SegSize
	seg.Owner = p.Owner
	if p.Owner == nil {
		seg.Owner = noOwner{}
	}
	return it, wire.Parse(p.Header, seg)
}

// sort finds the connections of items. Those that belong to none, or are done
// with, are recycled and set nil. It returns the answers to them, nil if there
// are none.
func (s *Stack) sort(items []*item, conns []*Conn, drops []reason.Drop) *batch {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := false
	for i, it := range items {
		drop := drops[i]
		if s.closed {
			drop = reason.DropNoConn
		}
		if drop != reason.DropNone {
			s.drops[drop]++
			it.recycle()
			items[i] = nil
			continue
		}
		v := s.host.Lookup(now, &it.seg)
		switch v.Kind {
		case host.VerdictSegment:
			it.task, it.id = taskSegment, v.ID
		case host.VerdictJoin:
			it.task = taskJoin
		case host.VerdictAccept:
			s.newConn(v.Conn, &v.Conn.Listener().User.(*Listener).config)
			it.task = taskNone
		default:
			answer = answer || v.Kind == host.VerdictReply
			it.recycle()
			items[i] = nil
			continue
		}
		conns[i] = v.Conn.User.(*Conn)
	}
	s.arm(now)
	if !answer {
		return nil
	}
	return s.replies(now)
}

// replies takes the host's answers. s.mu must be held. What does not fit one
// batch is left for the next call.
func (s *Stack) replies(now mono.Time) *batch {
	b := batchPool.Get().(*batch)
	b.fill(now, s.host.PollSegment)
	return b
}

// accept takes items for the connection and lets it act on them.
func (c *Conn) accept(run queue) {
	if lost := c.inbox.put(run); lost > 0 {
		c.stack.mu.Lock()
		c.stack.drops[reason.DropInbox] += uint64(lost)
		c.stack.mu.Unlock()
	}
	c.kick()
}

// handle acts on one item of the inbox. c.mu must be held.
func (c *Conn) handle(now mono.Time, it *item) {
	switch it.task {
	case taskSegment:
		c.trace.received(&it.seg)
		c.core.HandleSegment(now, it.id, &it.seg)
	case taskJoin:
		c.trace.received(&it.seg)
		c.join(now, &it.seg)
	case taskTooBig:
		c.core.HandlePacketTooBig(now, it.id, it.seg.Seq, it.mtu)
	case taskUnreachable, taskUnreachableHard:
		c.core.HandleUnreachable(now, it.id, it.seg.Seq, it.task == taskUnreachableHard)
	}
}

// join lets a SYN with MP_JOIN in, or has the host refuse it.
func (c *Conn) join(now mono.Time, seg *wire.Segment) {
	s := c.stack
	s.mu.Lock()
	var refusal *batch
	if _, ok := s.host.Join(now, c.core, seg); !ok {
		refusal = s.replies(now)
	}
	s.mu.Unlock()
	if refusal != nil {
		refusal.flush(s.network)
		refusal.free()
	}
}

// HandlePacketTooBig reports an ICMP message that packets from local to
// remote must not exceed mtu bytes of TCP header and payload. quotedSeq is
// the sequence number in the packet that it quotes.
func (s *Stack) HandlePacketTooBig(local, remote netip.AddrPort, quotedSeq uint32, mtu int) {
	s.icmp(local, remote, quotedSeq, taskTooBig, mtu)
}

// HandleUnreachable reports an ICMP message that remote can't be reached from
// local. hard says that waiting will not help: an unreachable protocol or
// port, or communication prohibited.
func (s *Stack) HandleUnreachable(local, remote netip.AddrPort, quotedSeq uint32, hard bool) {
	t := taskUnreachable
	if hard {
		t = taskUnreachableHard
	}
	s.icmp(local, remote, quotedSeq, t, 0)
}

func (s *Stack) icmp(local, remote netip.AddrPort, quotedSeq uint32, t task, mtu int) {
	s.mu.Lock()
	hc, id, ok := s.host.LookupICMP(local, remote)
	s.mu.Unlock()
	if !ok {
		return
	}
	it := itemPool.Get().(*item)
	it.task, it.id, it.mtu = t, id, mtu
	it.seg.Seq = it.seg.Seq.Add(int(quotedSeq))
	var run queue
	run.push(it)
	hc.User.(*Conn).accept(run)
}
