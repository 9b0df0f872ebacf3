package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// firstNATPort is the first port that a NAT gives to a flow.
const firstNATPort = 20000

// NAT translates addresses and ports of one end of a link (RFC 3022): the
// outside sees flows of the inside as coming from one public address.
type NAT struct {
	Public netip.Addr

	out  map[flowKey]uint16 // public port of a flow of the inside
	in   map[flowKey]netip.AddrPort
	next uint16

	// Forward, if set, is where flows from outside lead that the inside did
	// not begin: the same port there. Others are dropped.
	Forward netip.Addr
}

// NewNAT puts a NAT on the link and makes its public address known to the
// other end.
func (l *Link) NewNAT(inside End, public netip.Addr) *NAT {
	n := &NAT{Public: public, next: firstNATPort}
	n.Rebind()
	l.From(inside.Other()).to.publish(public)
	l.Insert(inside, n.Box())
	return n
}

// Rebind forgets every flow: what follows of it gets another port, and what
// comes for the old one is dropped.
func (n *NAT) Rebind() {
	n.out, n.in = make(map[flowKey]uint16), make(map[flowKey]netip.AddrPort)
}

// Box returns the NAT as a middlebox.
func (n *NAT) Box() Middlebox { return Middlebox{Out: n.translate, In: n.restore} }

func (n *NAT) translate(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	k := flowKey{seg.Src, seg.Dst}
	port, ok := n.out[k]
	if !ok {
		port = n.next
		n.next++
		n.learn(seg.Src, seg.Dst, port)
	}
	seg.Src = netip.AddrPortFrom(n.Public, port)
	forward(seg)
}

func (n *NAT) restore(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
	inside, ok := n.in[flowKey{seg.Dst, seg.Src}]
	if !ok {
		// Nobody outside knows the addresses inside.
		if seg.Dst.Addr() != n.Public || !n.Forward.IsValid() || seg.Flags&(wire.SYN|wire.ACK) != wire.SYN {
			return
		}
		inside = netip.AddrPortFrom(n.Forward, seg.Dst.Port())
		n.learn(inside, seg.Src, seg.Dst.Port())
	}
	seg.Dst = inside
	forward(seg)
}

func (n *NAT) learn(inside, outside netip.AddrPort, port uint16) {
	n.out[flowKey{inside, outside}] = port
	n.in[flowKey{netip.AddrPortFrom(n.Public, port), outside}] = inside
}
