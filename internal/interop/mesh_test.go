//go:build linux

package interop

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Subflows between every two addresses.
func TestFullMesh(t *testing.T) {
	mesh := func(pairs, added int) []step {
		return []step{{want: joins(pairs, pairs, pairs).and(adds(server, added)), subflows: 1 + pairs}}
	}
	play(t, []scenario{
		{name: "2 to 2", kernel: server, links: v4(1), endpoints: []string{"2 signal"}, steps: mesh(3, 1)},
		{name: "3 to 2", kernel: server, links: v4(2), endpoints: []string{"2 signal"}, steps: mesh(5, 1)},
		{name: "2 to 3", kernel: server, links: v4(1), addresses: 3, endpoints: []string{"2 signal", "3 signal"}, steps: mesh(5, 2)},
		{
			name: "3 to 3, limited", kernel: server, links: v4(2), endpoints: []string{"2 signal", "3 signal"},
			config: mptcp.Config{MaxSubflows: 5}, steps: mesh(4, 2),
		},
		{
			name: "2 to 2", kernel: client, links: v4(1),
			endpoints: []string{"1 subflow fullmesh", "2 subflow fullmesh"}, steps: mesh(3, 1),
		},
		{
			name: "3 to 2", kernel: client, links: v4(1), addresses: 3,
			endpoints: []string{"1 subflow fullmesh", "2 subflow fullmesh", "3 subflow fullmesh"}, steps: mesh(5, 1),
		},
		{
			name: "2 to 3", kernel: client, links: v4(2),
			endpoints: []string{"1 subflow fullmesh", "2 subflow fullmesh"}, steps: mesh(5, 2),
		},
		{
			// By us: Linux, as client, looks at its own limit before it opens the
			// subflows to one address, not at each of them.
			name: "2 to 3, limited", kernel: client, links: v4(2), config: mptcp.Config{MaxSubflows: 4},
			endpoints: []string{"1 subflow fullmesh", "2 subflow fullmesh"},
			steps:     []step{{want: joins(5, 3, 3).and(adds(server, 2)), subflows: 4}},
		},
	})
}

// A server that denies joins to the address the connection began with: only
// those that it announces are joined. A client that does so changes nothing.
func TestJoinToTheFirstAddressDenied(t *testing.T) {
	const deny = "net.mptcp.allow_join_initial_addr_port=0"
	denying := mptcp.Config{DenyJoinInitial: true}
	announced := func(n int) []step {
		return []step{{want: joins(n, n, n).and(adds(server, 1)), subflows: 1 + n}}
	}
	play(t, []scenario{
		{name: "subflow", kernel: server, links: v4(1), sysctl: []string{deny}, steps: joined(0)},
		{name: "subflow", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, config: denying, steps: joined(0)},
		{
			name: "announced", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, sysctl: []string{deny},
			steps: announced(1),
		},
		{name: "announced", kernel: client, links: v4(1), config: denying, steps: announced(1)},
		// From both of our addresses, but only to the one announced.
		{
			name: "subflow and announced", kernel: server, links: v4(1), endpoints: []string{"2 signal"}, sysctl: []string{deny},
			steps: announced(2),
		},
		{
			name: "subflow and announced", kernel: client, links: v4(1), addresses: 3, endpoints: []string{"3 subflow"}, config: denying,
			steps: announced(1),
		},
		{name: "client denies", kernel: server, links: v4(1), config: denying, steps: joined(1)},
		{name: "client denies", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, sysctl: []string{deny}, steps: joined(1)},
	})
}

// An announced address with a port of its own.
func TestAnnouncedPort(t *testing.T) {
	withPort := mptcp.Config{Announce: []netip.AddrPort{netip.AddrPortFrom(ipv4.addr(2, ours), 10100)}}
	steps := func(port step) []step {
		port.want = port.want.and(joins(1, 1, 1)).and(adds(server, 1))
		port.subflows = 2
		return []step{port}
	}
	play(t, []scenario{
		{
			name: "one", kernel: server, addresses: 2, endpoints: []string{"2 port 10100 signal"},
			steps: steps(step{want: count(server, "MPJoinPortSynRx", 1).and(count(server, "MPJoinPortAckRx", 1))}),
		},
		{
			name: "one", kernel: client, links: v4(1), config: withPort,
			steps: steps(step{want: count(client, "PortAdd", 1).and(count(client, "MPJoinPortSynAckRx", 1))}),
		},
	})
}

// An announced address with a port of its own goes away, with its subflow.
func TestRemovalOfAPort(t *testing.T) {
	withPort := mptcp.Config{Announce: []netip.AddrPort{netip.AddrPortFrom(ipv4.addr(2, ours), 10100)}}
	announced := step{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}
	play(t, []scenario{
		{
			name: "one", kernel: server, addresses: 2, endpoints: []string{"2 port 10100 signal"},
			steps: []step{announced, {do: kernelDoes("endpoint delete id 2"), want: removes(server, 1, 1), subflows: 1}},
		},
		{
			name: "one", kernel: client, links: v4(1), config: withPort,
			steps: []step{announced, {do: linkGoes(false, 2), want: removes(server, 1, 1), subflows: 1}},
		},
	})
}

// Sockets of IPv6 that speak IPv4. Those on which the kernel listens are such,
// too.
func TestMappedAddresses(t *testing.T) {
	play(t, []scenario{
		{name: "subflow", kernel: client, mapped: true, addresses: 2, endpoints: []string{"2 subflow"}, steps: joined(1)},
		{
			name: "announced", kernel: client, mapped: true, links: v4(1),
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}},
		},
	})
}

// IPv6, and both families in one connection.
func TestFamilies(t *testing.T) {
	announced := func(n int) []step {
		return []step{{want: joins(n, n, n).and(adds(server, n)), subflows: 1 + n}}
	}
	removed := func(do func(*testing.T, *session)) []step {
		return append(announced(1), step{do: do, want: removes(server, 1, 1), subflows: 1})
	}
	play(t, []scenario{
		{name: "IPv6 subflow", kernel: server, family: ipv6, links: []family{ipv6}, steps: joined(1)},
		{name: "IPv6 subflow", kernel: client, family: ipv6, addresses: 2, endpoints: []string{"2 subflow"}, steps: joined(1)},
		{
			name: "IPv6 address", kernel: server, family: ipv6, addresses: 2, endpoints: []string{"2 signal"}, capture: true,
			steps: removed(kernelDoes("endpoint delete id 2")),
		},
		{name: "IPv6 address", kernel: client, family: ipv6, links: []family{ipv6}, capture: true, steps: removed(linkGoes(false, 2))},
		{name: "IPv4, then IPv6", kernel: server, links: []family{ipv6}, endpoints: []string{"2 signal"}, steps: announced(1)},
		{name: "IPv6, then IPv4", kernel: server, family: ipv6, links: v4(1), endpoints: []string{"2 signal"}, steps: announced(1)},
		{name: "IPv6, then IPv4", kernel: client, family: ipv6, links: v4(1), steps: announced(1)},
		// A socket of IPv4 has no IPv6 in Linux.
		{name: "IPv4, then IPv6", kernel: client, mapped: true, links: []family{ipv6}, steps: announced(1)},
	})
}

// DSS checksums are used if either side asks, and hold.
func TestChecksums(t *testing.T) {
	const kernelAsks = "net.mptcp.checksum_enabled=1"
	weAskFor := mptcp.Config{Checksum: true}
	steps := joined(1)
	steps[0].check = func(t *testing.T, s *session) { require.True(t, s.conn.Info().Checksum) }
	play(t, []scenario{
		{name: "kernel asks", kernel: server, links: v4(1), sysctl: []string{kernelAsks}, steps: steps},
		{name: "kernel asks", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, sysctl: []string{kernelAsks}, steps: steps},
		{name: "we ask", kernel: server, links: v4(1), config: weAskFor, steps: steps},
		{name: "we ask", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, config: weAskFor, steps: steps},
		{name: "both ask", kernel: server, links: v4(1), config: weAskFor, sysctl: []string{kernelAsks}, steps: steps},
		{
			name: "both ask", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, config: weAskFor,
			sysctl: []string{kernelAsks}, steps: steps,
		},
	})
}

// halfOpen begins a connection to our host that nobody answers for.
func halfOpen(r *rig) {
	syn := make(header.TCP, header.TCPMinimumSize)
	syn.Encode(&header.TCPFields{SrcPort: 1000, DstPort: port, DataOffset: header.TCPMinimumSize, Flags: header.TCPFlagSyn, WindowSize: 65535})
	r.host.Deliver([]mptcp.Packet{{
		Src:    netip.AddrPortFrom(ipv4.addr(1, 77), 1000),
		Dst:    netip.AddrPortFrom(ipv4.addr(1, ours), port),
		Header: syn,
	}})
}

// SYN cookies carry MPTCP, and joins work after them.
func TestSYNCookies(t *testing.T) {
	const always = "net.ipv4.tcp_syncookies=2"
	kernels, cookies := joined(1), joined(1)
	kernels[0].check = func(t *testing.T, s *session) {
		got := kernelCounters(t)
		require.NotZero(t, got["TcpExt.SyncookiesSent"])
		require.NotZero(t, got["TcpExt.SyncookiesRecv"])
	}
	cookies[0].check = func(t *testing.T, s *session) {
		got := s.host.Counters().MIB
		require.Equal(t, uint64(1), got["SyncookiesSent"])
		require.Equal(t, uint64(1), got["SyncookiesRecv"])
	}
	play(t, []scenario{
		{name: "one join", kernel: server, links: v4(1), sysctl: []string{always}, steps: kernels},
		{
			name: "one join", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, backlog: 2, listening: halfOpen,
			steps: cookies,
		},
		{
			name: "two joins over the server's limit", kernel: server, links: v4(2), sysctl: []string{always}, limits: "1 0",
			steps: []step{{want: joins(2, 2, 1), subflows: 2}},
		},
		{
			name: "two joins over the server's limit", kernel: client, addresses: 3, endpoints: []string{"2 subflow", "3 subflow"},
			backlog: 2, listening: halfOpen, config: mptcp.Config{MaxSubflows: 2},
			steps: []step{{want: joins(2, 1, 1), subflows: 2}},
		},
		{
			name: "announced", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, sysctl: []string{always},
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}},
		},
		{
			name: "announced", kernel: client, links: v4(1), backlog: 2, listening: halfOpen,
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}},
		},
	})
}
