package sim

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// BlackHole drops outgoing packets of more than mtu bytes and says nothing.
func BlackHole(mtu int) Middlebox {
	return Drop(func(seg *wire.Segment) bool { return packetSize(seg) > mtu })
}

// TooBig drops outgoing packets of more than mtu bytes and lets their sender
// know by ICMP.
func TooBig(mtu int, sender *Node) Middlebox {
	return Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if packetSize(seg) <= mtu {
			forward(seg)
			return
		}
		src, dst, quoted := seg.Src, seg.Dst, seg.Seq
		sender.sim.After(0, func() { sender.PacketTooBig(src, dst, quoted, mtu) })
	}}
}

// PacketTooBig gives the node an ICMP message about a packet that it sent: a
// link takes packets of mtu bytes at most.
func (n *Node) PacketTooBig(local, remote netip.AddrPort, quoted seq.SSN, mtu int) {
	hc, id, ok := n.Host.LookupICMP(local, remote)
	if !ok {
		return
	}
	header := headerIPv4
	if !local.Addr().Is4() {
		header = headerIPv6
	}
	c := hc.User.(*Conn)
	c.HandlePacketTooBig(n.sim.now, id, quoted, mtu-header)
	c.pump()
}
