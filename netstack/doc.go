// Package netstack puts the MPTCP stack of package mptcp on top of gVisor's
// network stack, which supplies IPv4 and IPv6, ICMP, routes and links. gVisor
// is used as it is: the stack is registered with it in the place of TCP. Between
// links of this package's making whole TCP packets pass its IP layer by, unless
// Host.GVisor was called.
//
// A Host is a computer of its own inside the process. It gets addresses by
// links, and every link whose address can reach the peer is a path:
//
//	a1, b1 := netstack.NewPipe(netstack.PipeConfig{})
//	server, err := netstack.New(netstack.Config{})
//	...
//	err = server.AddLink(netstack.LinkConfig{
//		Name:  "wifi",
//		Link:  b1,
//		Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.1.2/24")},
//	})
//	...
//	listener, err := server.Listen("mptcp", ":80")
//
// and likewise a client host with a1, whose Dial("mptcp", "10.0.1.2:80")
// reaches that listener. Links are pipes between two hosts of a process
// (NewPipe), TUN devices towards the operating system (OpenTUN), or any
// stack.LinkEndpoint of gVisor's. Pipes and TUNs can be shaped to a rate, a
// delay, a loss and so on; NewTap records what crosses a link for Wireshark.
//
// Links come and go: AddLink, RemoveLink and SetLinkUp work while connections
// live, which lose and gain subflows at once, and outlive a time without any
// link. Watch tells a program what happens to the interfaces of the operating
// system, for it to pass on.
//
// # Handover, interactive, aggregate
//
// What Apple's systems call the service types of multipath connections are
// settings here:
//
//	handover     LinkConfig.Backup of the link to be spared, which the peer
//	             obeys, too. It carries nothing until the first retransmission
//	             timeout on the other, after 0.4 s where round trips are 20 and
//	             60 ms, and what this host sends at once when SetLinkUp or
//	             RemoveLink tells of it; and nothing again when the other answers.
//	interactive  mptcp.Config.Scheduler "redundant-idle" at both ends: messages
//	             also take the second link while there is room, and the first
//	             copy counts. This costs as many bytes there.
//	aggregate    the zero Config: all links, and the sum of their rates.
//
// Apple's handover goes by the first timeout, too, if the system also finds
// Wi-Fi unusable. Its interactive service spares the cellular link until Wi-Fi
// has a round trip of 600 ms, a timeout, or a timer of 1.5 s (XNU,
// mptcp_get_subflow); that takes a scheduler of one's own, of which
// examples/customscheduler is one.
//
// # Strong hosts
//
// A host takes packets for an address only over the link that has it, and
// sends from an address only over that link (RFC 1122, Section 3.3.4.2: the
// strong ES model), so that every path is what it seems to be.
//
// Hosts that are joined by pipes work in the virtual time of testing/synctest.
// gVisor's own TCP does not.
//
// # How packets travel
//
// A link's goroutine, for a perfect pipe that of the sender, brings a packet
// up to Stack.Deliver, over a perfect pipe many at once if they were sent at
// once; the payload stays where it lies, held by a reference.
// Outbound, the blocks of send queues are gVisor's buffer views and packets
// share them, so that between the application's two buffers nothing is copied
// on the way. Links that take super-segments (gVisor: host GSO) get them
// whole.
//
// Counters of packets are gVisor's: Host.GVisor().Stats().TCP tells of segments
// sent and received, wrong checksums, and packets that could not be sent.
package netstack
