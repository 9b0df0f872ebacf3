package mptcp_test

import (
	"net/netip"
	"sync"

	"github.com/gomptcp/gomptcp/mptcp"
)

// cable joins two Stacks without allocating: packets are copied into frames
// that serve again, and arrive before Send returns.
type cable struct {
	locals []mptcp.LocalAddr
	path   mptcp.PathInfo
	peer   *mptcp.Stack

	mu     sync.Mutex
	frames []*frame      // guarded by mu
	blocks []mptcp.Block // guarded by mu
}

// frame is the memory of one packet on the cable.
type frame struct {
	home   *cable
	batch  [1]mptcp.Packet
	view   [1][]byte
	header [60]byte
	mem    [64 << 10]byte
}

func (f *frame) DecRef() {
	f.home.mu.Lock()
	f.home.frames = append(f.home.frames, f)
	f.home.mu.Unlock()
}

func (c *cable) frame() *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.frames)
	if n == 0 {
		return &frame{home: c}
	}
	f := c.frames[n-1]
	c.frames = c.frames[:n-1]
	return f
}

func (c *cable) Send(batch []mptcp.Packet) {
	for i := range batch {
		p, f := &batch[i], c.frame()
		n := 0
		for _, v := range p.Payload {
			n += copy(f.mem[n:], v)
		}
		f.view[0] = f.mem[:n]
		f.batch[0] = mptcp.Packet{
			Src: p.Src, Dst: p.Dst, Header: f.header[:copy(f.header[:], p.Header)],
			Payload: f.view[:], Owner: f, ECN: p.ECN, SegSize: p.SegSize,
		}
		c.peer.Deliver(f.batch[:])
	}
}

func (c *cable) Locals() []mptcp.LocalAddr { return c.locals }

func (c *cable) Path(local, remote netip.Addr) (mptcp.PathInfo, bool) {
	return c.path, local.As4()[2] == remote.As4()[2]
}

func (c *cable) Source(netip.Addr) (netip.Addr, bool) { return c.locals[0].Addr, true }

func (c *cable) Allocator() mptcp.BlockAllocator { return c }

func (c *cable) Alloc() mptcp.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.blocks)
	if n == 0 {
		return mptcp.Block{Bytes: make([]byte, 64<<10)}
	}
	b := c.blocks[n-1]
	c.blocks = c.blocks[:n-1]
	return b
}

func (c *cable) Free(b mptcp.Block) {
	c.mu.Lock()
	c.blocks = append(c.blocks, b)
	c.mu.Unlock()
}

// forget gives up what is kept for further packets.
func (c *cable) forget() {
	c.mu.Lock()
	c.frames, c.blocks = nil, nil
	c.mu.Unlock()
}
