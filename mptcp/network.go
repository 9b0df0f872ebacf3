package mptcp

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// Block is a piece of memory for data that waits to be sent: Bytes is all of
// its writable memory, Owner whatever its allocator knows it by.
type Block = stream.Block

// BlockAllocator supplies the memory of send queues. It is called under a
// connection's lock. After Free a block's memory may still be in use by packets
// that share it.
type BlockAllocator = stream.Allocator

// Packet is one TCP segment on its way between a Stack and its Network.
type Packet struct {
	Src, Dst netip.AddrPort

	// Header is the TCP header with its options. Outbound its checksum field
	// is zero and the Network completes it; inbound the Network has verified
	// the checksum.
	Header []byte

	// Payload is what follows the header.
	Payload [][]byte

	// Blocks are, outbound only, the Owners of the blocks behind each view of
	// Payload, for networks that share memory instead of copying it. The first
	// byte of a view lies cap(block.Bytes)-cap(view) bytes into its block. A
	// network whose Allocator returns nil finds nothing of use here.
	Blocks []any

	// Owner keeps the memory of an inbound Payload alive. Deliver takes over
	// one reference and gives it back with DecRef. Nil means that Payload is
	// never reused.
	Owner interface{ DecRef() }

	// ECN is the codepoint of the IP header (RFC 3168, Section 5).
	ECN uint8

	// SegSize, if above 0, makes this a super-segment: the network cuts its
	// payload into packets of that many bytes, or sends it whole over a link
	// that does so.
	SegSize int
}

// LocalAddr is an address that connections may use: Link names the link it
// belongs to, Backup says that it is to be used only when nothing else is left.
type LocalAddr = pathmgr.Local

// PathInfo describes the way from a local to a remote address.
type PathInfo struct {
	// MTU is the most bytes of TCP header, options and payload in one packet:
	// the link's MTU less the IP header.
	MTU int

	// SegmentMax is the most payload bytes of a super-segment; 0 means that
	// every Packet must fit the MTU.
	SegmentMax int
}

// Network carries the packets of a Stack. Its methods are called from many
// goroutines, under locks of the Stack: they must not wait, and must not call
// back, except that Send may call Deliver, HandlePacketTooBig and
// HandleUnreachable of any Stack, this one included.
type Network interface {
	// Send sends packets in order. It must not keep memory of a Packet after
	// it returns, except by sharing Blocks.
	Send(batch []Packet)

	// Locals returns the addresses now usable. The caller must not change it.
	Locals() []LocalAddr

	// Path describes the way from local to remote; false means that there is
	// none.
	Path(local, remote netip.Addr) (PathInfo, bool)

	// Source returns the local address to use towards remote when the
	// application leaves the choice to the network; false means no route.
	Source(remote netip.Addr) (netip.Addr, bool)

	// Allocator returns the source of send memory; nil means the Go heap.
	Allocator() BlockAllocator
}
