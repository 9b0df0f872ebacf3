//go:build linux

package interop

import (
	"net/netip"
	"testing"

	"github.com/gomptcp/gomptcp/mptcp"
)

// announcing is a configuration that announces our addresses of these numbers
// instead of those that our host has.
func announcing(numbers ...int) mptcp.Config {
	var c mptcp.Config
	for _, i := range numbers {
		c.Announce = append(c.Announce, netip.AddrPortFrom(ipv4.addr(i, ours), 0))
	}
	return c
}

// kernelDropsAddAddr makes the kernel drop all TCP packets with an ADD_ADDR, or its
// echo, that it receives (chain "input") or sends ("output").
func kernelDropsAddAddr(t *testing.T, chain string) {
	t.Helper()
	run(t, "nft", "add", "table", "inet", "box")
	run(t, "nft", "add", "chain", "inet", "box", chain, "{ type filter hook "+chain+" priority 0; }")
	run(t, "nft", "add", "rule", "inet", "box", chain, "tcp", "option", "mptcp", "subtype", "3", "drop")
}

// An announcement whose echo is lost is repeated: Linux sends it four times in
// all, we five times.
func TestAddAddrTimeout(t *testing.T) {
	repeated := func(addresses, times int) []step {
		n := addresses * times
		return []step{{
			want: joins(addresses, addresses, addresses).
				and(count(server, "AddAddrTx", n)).and(count(client, "AddAddr", n)).and(count(client, "EchoAddTx", n)),
			subflows: 1 + addresses,
		}}
	}
	const soon = "net.mptcp.add_addr_timeout=1"
	play(t, []scenario{
		{
			name: "one address", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, sysctl: []string{soon},
			before: func(t *testing.T) { kernelDropsAddAddr(t, "input") }, steps: repeated(1, 4), exact: true,
		},
		{
			name: "two addresses", kernel: server, addresses: 3, endpoints: []string{"2 signal", "3 signal"}, sysctl: []string{soon},
			before: func(t *testing.T) { kernelDropsAddAddr(t, "input") }, steps: repeated(2, 4), exact: true,
		},
		{
			name: "one address", kernel: client, links: v4(1),
			before: func(t *testing.T) { kernelDropsAddAddr(t, "output") }, steps: repeated(1, 5), exact: true,
		},
		{
			name: "two addresses", kernel: client, links: v4(2),
			before: func(t *testing.T) { kernelDropsAddAddr(t, "output") }, steps: repeated(2, 5), exact: true,
		},
	})
}

// kernelRejects makes the kernel answer SYNs from an address by RST, in the
// chain "input" or "output".
func kernelRejects(t *testing.T, chain string, from netip.Addr) {
	t.Helper()
	run(t, "nft", "add", "table", "inet", "box")
	run(t, "nft", "add", "chain", "inet", "box", chain, "{ type filter hook "+chain+" priority 0; }")
	run(t, "nft", "add", "rule", "inet", "box", chain, "ip", "saddr", from.String(), "tcp", "flags", "==", "syn", "reject", "with", "tcp", "reset")
}

// One of two joins is refused on its way. The other does not mind.
func TestRefusedSubflow(t *testing.T) {
	refused := []step{{want: joins(1, 1, 1).and(count(client, "MPJoinSynTx", 1)), subflows: 2}}
	play(t, []scenario{
		{
			name: "one of two", kernel: client, addresses: 3, endpoints: []string{"3 subflow", "2 subflow"},
			before: func(t *testing.T) { kernelRejects(t, "output", ipv4.addr(3, kernel)) }, steps: refused,
		},
		{
			name: "one of two", kernel: server, links: v4(2), retried: true,
			before: func(t *testing.T) { kernelRejects(t, "input", ipv4.addr(3, ours)) }, steps: refused,
		},
	})
}

// Of three addresses that the server announces the client can reach one. The
// others do no harm.
func TestUnreachableAddresses(t *testing.T) {
	play(t, []scenario{
		{
			name: "two of three", kernel: server, addresses: 2,
			endpoints: []string{"12 signal", "2 signal", "14 signal"},
			steps:     []step{{want: joins(1, 1, 1).and(adds(server, 3)).and(count(client, "MPJoinSynTx", 2)), subflows: 2}},
		},
		{
			name: "two of three", kernel: client, links: v4(1), config: announcing(12, 2, 14),
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 3)), subflows: 2}},
		},
	})
}
