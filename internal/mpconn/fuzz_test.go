package mpconn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// FuzzConn plays a sequence of operations on two connected ends with up to
// four paths: writes, reads, passing time, dying and returning paths, joins,
// loss, and middleboxes that strip or alter. Whatever happens, every byte
// that is read is right and in order (the oracle), windows are kept, memory is
// bounded, deadlines move, and both ends finish once the network works again.
func FuzzConn(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x20, 0x40, 0x00, 0xff, 0x01, 0x7f, 0x02, 0x10, 0x05, 0x01, 0x00, 0xff})
	f.Add([]byte{0x21, 0x05, 0x01, 0x00, 0xff, 0x02, 0x08, 0x03, 0x00, 0x00, 0xff, 0x02, 0xff, 0x04, 0x00, 0x02, 0xff})
	f.Add([]byte{0x63, 0x05, 0x01, 0x05, 0x02, 0x06, 0x30, 0x00, 0xff, 0x01, 0xff, 0x02, 0x40, 0x07, 0x01, 0x02, 0xff, 0x08, 0x00})
	f.Add([]byte{0xa2, 0x09, 0x03, 0x00, 0xff, 0x02, 0x20, 0x09, 0x00, 0x01, 0x80, 0x02, 0xff})
	f.Add([]byte{0x10, 0x01, 0x0a, 0x00, 0x00, 0xff, 0x02, 0x40, 0x01, 0xff, 0x0e, 0x01, 0x00, 0xff})
	f.Add([]byte{0x92, 0x03, 0x05, 0x01, 0x0f, 0x02, 0x0e, 0x00, 0x03, 0x01, 0x02, 0xff, 0x10, 0x01})
	f.Add([]byte{0x12, 0x07, 0x05, 0x01, 0x0a, 0x00, 0x00, 0xff, 0x11, 0x00, 0x02, 0x40, 0x0f, 0x81})
	f.Add([]byte{0x12, 0x08, 0xa0, 0x14, 0x05, 0x01, 0x00, 0xff, 0x01, 0xff, 0x02, 0x60, 0x0a, 0x00, 0x00, 0xff})
	f.Add([]byte{0x01, 0x18, 0xff, 0x06, 0x00, 0x40, 0x05, 0x01, 0x02, 0xff, 0x01, 0xff})
	f.Add([]byte{0x12, 0x05, 0x01, 0x0a, 0x01, 0x00, 0xff, 0x02, 0x60, 0x0b, 0x00, 0x0c, 0x01})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 400 {
			return
		}
		newPlay(t, ops).run()
	})
}

type play struct {
	*lab
	ops   []byte
	purse *purse // what the connections share; nil = no bound
	fast  bool   // begins with data on the SYN
}

func newPlay(t *testing.T, ops []byte) *play {
	p := &play{ops: ops}
	set := p.next()
	p.lab = newLab(t, uint64(set), 1+int(set&3))
	p.a.cfg.Plain = set&0x0c == 0x04
	p.b.cfg.Plain = set&0x0c == 0x08
	p.a.cfg.Checksum = set&0x10 != 0
	if set&0x20 != 0 {
		p.b.cfg.ReadBuffer, p.a.cfg.WriteBuffer = 30_000, 50_000
	}
	more := p.next()
	p.a.cfg.FastCloseByACK, p.b.cfg.DenyJoinInitial = more&1 != 0, more&2 != 0
	if more&4 != 0 {
		p.purse = &purse{left: 300_000}
		p.a.cfg.Budget, p.b.cfg.Budget = p.purse, p.purse
	}
	if p.fast = more&8 != 0; p.fast {
		p.a.cfg.FastOpen = subflow.FastOpen{Send: true, Cookie: wire.FastOpen{Len: 8}, MSS: 1460}
		p.b.cfg.FastOpen.Take = more&16 == 0
	}
	for i, path := range p.paths {
		path.delay = time.Duration(1+i*int(set>>6)*8) * time.Millisecond
	}
	return p
}

func (p *play) next() byte {
	if len(p.ops) == 0 {
		return 0
	}
	b := p.ops[0]
	p.ops = p.ops[1:]
	return b
}

func (p *play) run() {
	p.begin()
	for len(p.ops) > 0 && !p.a.conn.Closed() && !p.b.conn.Closed() {
		p.op(p.next(), p.next())
		p.check(p.a)
		p.check(p.b)
	}
	p.finish()
}

// begin connects. A fast open loses some of the first five segments, and is
// answered at once.
func (p *play) begin() {
	if !p.fast {
		p.connect()
		return
	}
	size, losses := int(p.next())*8, p.next()&0x1f
	p.paths[0].box = func(*end, *wire.Segment) bool {
		lost := losses&1 != 0
		losses >>= 1
		return !lost
	}
	p.dial()
	p.a.write(size)
	p.lab.run("connect", 2*time.Minute, func() bool {
		if p.b.conn != nil && p.b.conn.Connected() && p.b.wrote == 0 {
			p.b.write(size)
		}
		return p.a.conn.Connected() && p.b.conn != nil && p.b.conn.Connected()
	})
	p.paths[0].box = nil
}

// op plays one operation with its argument.
func (p *play) op(op, arg byte) {
	path := p.paths[int(arg)%len(p.paths)]
	switch op % 18 {
	case 0:
		p.a.write(int(arg) * 251)
	case 1:
		p.b.write(int(arg) * 251)
	case 2:
		p.idle(time.Duration(arg) * 4 * time.Millisecond)
	case 3:
		path.down = true
	case 4:
		path.down = false
	case 5:
		i := int(arg) % len(p.paths)
		p.a.conn.Open(p.now, OpenArgs{Local: netip.AddrPortFrom(addr(i, 1), uint16(arg)+1000), Remote: p.b.at(i)})
		p.a.pump()
	case 6:
		path.loss, path.reorder, path.duplicate = float64(arg>>4)/50, float64(arg&15)/50, float64(arg&7)/50
	case 7:
		p.a.readAll()
		p.b.readAll()
	case 8:
		p.a.closeWrite()
	case 9:
		p.strip(path, arg)
	case 10:
		p.alter(path)
	case 11:
		p.b.conn.CloseSubflow(p.now, int(arg)%4, reason.Reset(arg>>4)%7)
		p.b.pump()
	case 12:
		p.a.conn.SetBackup(p.now, int(arg)%4, arg&16 != 0)
		p.b.conn.Announce(p.now, p.b.at(int(arg)%len(p.paths)))
		p.a.pump()
		p.b.pump()
	case 13:
		path.box = nil
	case 14:
		p.b.conn.Withdraw(p.now, p.b.at(int(arg)%len(p.paths)).Addr())
		p.b.pump()
	case 15:
		p.forge(path, arg)
	case 16:
		e := []*end{p.a, p.b}[arg&1]
		e.conn.FailSubflow(p.now, int(arg>>1)%4)
		e.pump()
	case 17:
		p.loseSignals(path, arg)
	}
}

// strip makes a box take MPTCP options away, from some or all segments.
func (p *play) strip(path *path, arg byte) {
	n := 0
	every := 1 + int(arg>>4)
	path.box = func(_ *end, seg *wire.Segment) bool {
		n++
		if n%every == 0 {
			seg.Has &^= wire.OptMPTCP
		}
		return true
	}
}

// alter makes a box change payload: only a DSS checksum can tell.
func (p *play) alter(path *path) {
	if !p.a.cfg.Checksum {
		return
	}
	p.a.tolerate, p.b.tolerate = true, true
	n := 0
	path.box = func(_ *end, seg *wire.Segment) bool {
		n++
		if n%7 == 0 && seg.PayloadLen() > 10 && seg.Has&wire.OptDSS != 0 && seg.DSS.HasChecksum {
			// Counting up, since two flips of one bit may cancel out in the sum.
			seg.Payload[0][5]++
		}
		return true
	}
}

// forge makes a box put signals of the peer's on segments, true or not: none
// may cost a byte.
func (p *play) forge(path *path, arg byte) {
	n := 0
	path.box = func(_ *end, seg *wire.Segment) bool {
		if n++; n%5 != 0 || seg.Flags&(wire.SYN|wire.RST) != 0 || seg.Has&wire.OptDSS == 0 {
			return true
		}
		switch arg % 5 {
		case 0:
			seg.Has |= wire.OptRemoveAddr
			seg.RemoveAddr.N, seg.RemoveAddr.IDs[0], seg.RemoveAddr.IDs[1] = 2, arg>>5, arg>>3&3
		case 1:
			seg.Has |= wire.OptAddAddr
			seg.AddAddr = wire.AddAddr{ID: arg >> 4, Addr: addr(int(arg>>4), 1)}
		case 2:
			seg.Has |= wire.OptFastClose
			seg.FastClose = [8]byte{arg}
		case 3:
			seg.Has |= wire.OptMPPrio
			seg.PrioBackup = n&8 != 0
		case 4:
			seg.Has |= wire.OptMPTCPRst
		}
		return true
	}
}

// loseSignals makes a box drop every segment, or every second one, that has an
// option of the given kinds.
func (p *play) loseSignals(path *path, arg byte) {
	kinds := []wire.OptionSet{wire.OptMPFail, wire.OptAddAddr, wire.OptRemoveAddr, wire.OptFastClose, wire.OptMPJoin, wire.OptMPPrio}
	n := 0
	path.box = func(_ *end, seg *wire.Segment) bool {
		if seg.Has&kinds[int(arg)%len(kinds)] == 0 {
			return true
		}
		n++
		return arg&0x80 == 0 && n%2 == 0
	}
}

// check holds at any time.
func (p *play) check(e *end) {
	info := e.conn.Info()
	buffer := info.ReadBuffer
	if info.Fallback > reason.FallbackRequested {
		// The subflow's window also reached over what waited for a mapping.
		buffer *= 2
	}
	require.LessOrEqual(p.t, info.Readable+info.OutOfOrder, buffer, "receive buffer")
	require.LessOrEqual(p.t, info.SendMemory, 2*info.WriteBuffer+128<<10, "send buffer")
	require.LessOrEqual(p.t, info.Subflows, e.conn.cfg.MaxSubflows)
	if info.Fallback != reason.FallbackNone {
		require.LessOrEqual(p.t, info.Subflows, 1, "plain TCP has one subflow")
		require.False(p.t, info.Joinable)
	}
	if p.purse != nil {
		require.GreaterOrEqual(p.t, p.purse.left, 0, "budget")
	}
}

// finish mends the network and demands that both ends come to an end.
func (p *play) finish() {
	for _, path := range p.paths {
		path.down, path.loss, path.reorder, path.duplicate, path.box = false, 0, 0, 0, nil
	}
	p.a.closeWrite()
	p.b.closeWrite()
	limit := p.now.Add(2 * time.Hour)
	for steps := 0; !(p.a.conn.Closed() && p.b.conn.Closed()); steps++ {
		if p.now > limit || steps > 300_000 || !p.step() {
			p.t.Fatalf("does not end\na: %s\nb: %s", p.a.dump(), p.b.dump())
		}
		p.a.readAll()
		p.b.readAll()
	}
	if p.a.conn.Err() == reason.CloseDone && p.b.conn.Err() == reason.CloseDone {
		require.Equal(p.t, p.a.wrote, p.b.read, "bytes from a to b")
		require.Equal(p.t, p.b.wrote, p.a.read, "bytes from b to a")
	}
	p.a.close()
	p.b.close()
	if p.purse != nil {
		require.Equal(p.t, 300_000, p.purse.left, "budget given back")
	}
}
