//go:build !race

package mptcp_test

import (
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// In steady state a segment costs no allocation, whichever its size.
func TestSegmentsCostNoAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   mptcp.Config
		paths int
		path  mptcp.PathInfo
		write int
	}{
		"tcp":                    {mptcp.Config{Plain: true}, 1, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp":                  {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp, two subflows":    {mptcp.Config{}, 2, mptcp.PathInfo{MTU: 1480}, 64 << 10},
		"mptcp, super-segments":  {mptcp.Config{}, 2, mptcp.PathInfo{MTU: 1480, SegmentMax: 65000}, 256 << 10},
		"mptcp, small messages":  {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 64},
		"tcp, small messages":    {mptcp.Config{Plain: true}, 1, mptcp.PathInfo{MTU: 1480}, 64},
		"mptcp, medium messages": {mptcp.Config{}, 1, mptcp.PathInfo{MTU: 1480}, 700},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.ReadBuffer, c.cfg.WriteBuffer = 1<<20, 1<<20
			a, b := &cable{path: c.path}, &cable{path: c.path}
			for i := range c.paths {
				a.locals = append(a.locals, mptcp.LocalAddr{Addr: clientAddr(i), Link: "a"})
				b.locals = append(b.locals, mptcp.LocalAddr{Addr: serverAddr(i), Link: "b"})
			}
			client, server := mptcp.NewStack(a, &c.cfg), mptcp.NewStack(b, &c.cfg)
			a.peer, b.peer = server, client
			defer server.Close()
			defer client.Close()
			l, err := server.Listen("mptcp", ":80")
			require.NoError(t, err)
			from, err := client.Dial("mptcp", netip.AddrPortFrom(serverAddr(0), 80).String())
			require.NoError(t, err)
			to, err := l.Accept()
			require.NoError(t, err)
			out, in := make([]byte, c.write), make([]byte, c.write)
			round := func() {
				for _, way := range [][2]io.ReadWriter{{from, to}, {to, from}} {
					_, err := way[0].Write(out)
					if err == nil {
						_, err = io.ReadFull(way[1], in)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			round()
			require.Eventually(t, func() bool { return from.(*mptcp.Conn).Info().Subflows == c.paths }, 5*time.Second, time.Millisecond)
			for range 2000 {
				round()
			}
			// The average is rounded down, so that what the garbage collector
			// takes out of pools meanwhile does not count.
			require.Zero(t, testing.AllocsPerRun(200, round), "allocations to send %d bytes each way", c.write)
		})
	}
}
