package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// FuzzNetwork plays a sequence of operations on two hosts with up to four
// paths: boxes of every kind come and go, links die, change and return,
// addresses go and come, readers stop. Whatever happens, every byte that is
// read is right, windows are kept, memory is bounded, and both ends finish.
func FuzzNetwork(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x03, 0x40, 2, 0, 30, 5, 1, 1, 40, 3, 2, 9, 50, 0, 0, 255})
	f.Add([]byte{0x13, 0x81, 8, 0, 12, 20, 0, 1, 20, 1, 0, 0, 60, 13, 1, 3, 80})
	f.Add([]byte{0x22, 0x02, 11, 0, 1, 30, 7, 1, 2, 30, 14, 0, 0, 90})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > maxSteps*stepLen {
			return
		}
		newPlay(t, ops).run()
	})
}

const (
	maxSteps = 24
	stepLen  = 4 // operation, path, argument, time
	// maxEvents is many times what a transfer of the fuzzer's size takes.
	maxEvents = 300_000
)

// play is one run of the fuzzer.
type play struct {
	*sim.Pair
	*sim.Transfer
	t   *testing.T
	ops []byte

	strips bool // a box took options away, or acknowledged by itself
	alters bool // a box may have altered bytes
	harm   bool // something happened that a connection need not survive
	nats   int
	events int
}

func (p *play) next() byte {
	if len(p.ops) == 0 {
		return 0
	}
	b := p.ops[0]
	p.ops = p.ops[1:]
	return b
}

// newPlay makes the network and the transfer: the first two bytes say which.
func newPlay(t *testing.T, ops []byte) *play {
	p := &play{t: t, ops: ops}
	set, size := p.next(), p.next()
	cfg := sim.PairConfig{Seed: uint64(set)<<8 | uint64(size), Mesh: set&0x04 != 0, IPv6: set&0x08 != 0}
	for i := range 1 + int(set&3) {
		cfg.Paths = append(cfg.Paths, symmetric(link.Config{
			Rate: float64(2+3*i) * 1.5e6, Delay: time.Duration(3+8*i) * time.Millisecond, QueueBytes: 60_000,
		}))
	}
	p.Pair = sim.TwoHosts(cfg)
	tr := sim.TransferConfig{
		AB: int64(size&15) * 60_000, BA: int64(size>>4) * 60_000,
		ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(),
		MayAlter: true,
	}
	tr.ConnA.Checksum = set&0x10 != 0
	tr.ConnB.Plain = set&0x60 == 0x60
	if set&0x80 != 0 {
		tr.ConnB.ReadBuffer, tr.ReadB = 40_000, 300_000
	}
	p.Transfer = p.Start(tr)
	return p
}

// run plays all operations, then lets the network heal and waits for the end.
func (p *play) run() {
	for range maxSteps {
		if len(p.ops) == 0 {
			break
		}
		op, path, arg := p.next(), p.next(), p.next()
		p.step(op, p.Links[int(path>>1)%len(p.Links)], sim.End(path&1), int(arg))
		p.pass(time.Duration(p.next())*time.Millisecond, never)
		p.check()
	}
	for _, l := range p.Links {
		l.SetUp(true)
		l.Insert(sim.EndA, sim.Middlebox{})
		p.A.SetAddrs(l, true)
		p.B.SetAddrs(l, true)
		for _, d := range []*sim.Direction{l.AB, l.BA} {
			d.SetShape(link.Config{Rate: 20e6, Delay: 5 * time.Millisecond})
		}
	}
	over := func() bool { return p.ConnA.Closed() && (p.ConnB == nil || p.ConnB.Closed()) }
	ended := p.pass(2*time.Hour, over)
	p.check()
	require.True(p.t, ended, "hangs: A %v, %d bytes, B %d bytes", p.ConnA.Err(), p.ProgramA.Received, p.ProgramB.Received)
	if p.harm {
		return
	}
	// A slow reader may have something left.
	p.pass(5*time.Minute, p.Delivered)
	require.True(p.t, p.Delivered(), "A: %v, %d of %d bytes; B: %d of %d bytes", p.ConnA.Err(),
		p.ProgramA.Received, p.ProgramA.Receive, p.ProgramB.Received, p.ProgramB.Receive)
}

func never() bool { return false }

// pass lets d pass, or less until done. A run has a budget of events: who
// needs more of them sends without sense.
func (p *play) pass(d time.Duration, done func() bool) bool {
	p.t.Helper()
	ok := p.RunUntil(d, func() bool {
		p.events++
		return p.events > maxEvents || done()
	})
	require.LessOrEqual(p.t, p.events, maxEvents, "a storm of packets")
	return ok
}

// check looks at what must hold at any time.
func (p *play) check() {
	require.Empty(p.t, p.Violations())
	for _, c := range []*sim.Conn{p.ConnA, p.ConnB} {
		if c == nil {
			continue
		}
		const most = 8 << 20 // the largest window, and what it takes to hold it
		i := c.Info()
		require.LessOrEqual(p.t, i.SendMemory, most)
		require.LessOrEqual(p.t, i.RecvMemory, most)
		switch f := c.Fallback(); f {
		case reason.FallbackNone, reason.FallbackRequested, reason.FallbackPeerSYN, reason.FallbackPeerSYNACK, reason.FallbackSYNTimeout:
		case reason.FallbackChecksum:
			require.True(p.t, p.alters, "%v", f)
		default:
			require.True(p.t, p.strips || p.alters, "%v", f)
		}
		if c.Fallback() != reason.FallbackNone && c.Fallback() != reason.FallbackChecksum {
			require.LessOrEqual(p.t, i.Subflows, 1, "a plain connection has one path")
		}
	}
	for i, prog := range []*sim.Program{p.ProgramA, p.ProgramB} {
		require.False(p.t, prog.Wrong > 0 && !p.alters, "%d wrong bytes", prog.Wrong)
		// One end may be plain already while the other waits for its answer.
		if p.checksummed() && []*sim.Conn{p.ConnA, p.ConnB}[i].Fallback() == reason.FallbackNone {
			require.Zero(p.t, prog.Wrong, "checksums let a byte through")
		}
	}
}

func (p *play) checksummed() bool {
	return p.ConnB != nil && p.ConnA.IsMPTCP() && p.ConnA.Info().Checksum
}

// step does one operation on a link.
func (p *play) step(op byte, l *sim.Link, inside sim.End, arg int) {
	if op%20 < 14 {
		l.Insert(inside, p.box(op%20, l, inside, arg))
		return
	}
	d := l.From(inside)
	switch op % 20 {
	case 14:
		l.SetUp(arg&1 != 0)
	case 15:
		node := []*sim.Node{p.A, p.B}[inside]
		node.SetAddrs(l, arg&1 != 0)
		p.harm = p.harm || len(p.Links) == 1 || arg&1 == 0
	case 16:
		d.SetShape(link.Config{Rate: float64(1+arg) * 200e3, Delay: time.Duration(arg) * time.Millisecond / 2, Loss: float64(arg&7) / 100})
	case 17:
		d.SetShape(link.Config{Rate: 10e6, Delay: 10 * time.Millisecond, Reorder: float64(arg&15) / 100, Duplicate: float64(arg>>4) / 200})
	case 18:
		p.ProgramB.ReadRate = float64(1+arg) * 4000
	case 19:
		p.pass(time.Duration(arg)*20*time.Millisecond, never)
	}
}

// stripped are the options that box 0 takes away, one at a time or all.
var stripped = []wire.OptionSet{
	wire.OptMPTCP, wire.OptDSS, wire.OptMPCapable, wire.OptMPJoin, wire.OptAddAddr, wire.OptRemoveAddr,
	wire.OptMPPrio, wire.OptMPFail, wire.OptFastClose, wire.OptMPTCPRst, wire.OptTimestamps, wire.OptSACK | wire.OptSACKPermitted,
}

// box makes the middlebox that an operation asks for.
func (p *play) box(op byte, l *sim.Link, inside sim.End, arg int) sim.Middlebox {
	switch op {
	case 0, 1:
		match := []sim.Match{sim.Any, sim.IsSYN, notSYN, sim.IsThirdACK()}[arg>>4&3]
		p.strips, p.harm = true, true
		return sim.Strip(stripped[arg&15%len(stripped)], match)
	case 2:
		return sim.Split(100 + 8*arg)
	case 3:
		return sim.Coalesce(p.Sim, 1000+200*arg)
	case 4:
		p.strips, p.harm = true, true // a mapping that is lost is an option that is
		return sim.CoalesceBlindly(p.Sim, 1000+50*arg)
	case 5:
		return sim.Resegment(p.Sim, 200+8*arg)
	case 6:
		p.harm = true
		return sim.Offset(uint32(arg)<<20, uint32(arg)<<12)
	case 7:
		p.alters, p.harm = true, true
		return sim.Alter(500 + 20*arg)
	case 8, 9:
		p.harm = true
		return p.nat(l, inside).Box()
	case 10:
		p.strips = true // in the eyes of a sender
		p.harm = true
		return sim.PreAck(p.Sim, l.From(inside.Other()), sim.Any)
	case 11:
		p.harm = true
		return sim.Drop(sim.HasUnknown)
	case 12:
		p.harm = true
		return sim.BlackHole(600 + 4*arg)
	case 13:
		return sim.TooBig(700+3*arg, []*sim.Node{p.A, p.B}[inside])
	}
	return sim.Middlebox{}
}

func (p *play) nat(l *sim.Link, inside sim.End) *sim.NAT {
	p.nats++
	public := netip.AddrFrom4([4]byte{192, 0, 2, byte(p.nats)})
	if !l.From(sim.EndA).Addr().Is4() {
		public = netip.AddrFrom16([16]byte{0: 0xfd, 1: 0xff, 15: byte(p.nats)})
	}
	return l.NewNAT(inside, public)
}
