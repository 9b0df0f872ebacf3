//go:build linux

package interop

import (
	"testing"

	"github.com/gomptcp/gomptcp/mptcp"
)

// closes are subflows that a side ends because of their address, and withdraws
// nothing: Linux keeps what it says about subflows, other than of announced
// addresses, to itself when all endpoints are flushed.
func closes(by side, subflows int) counted { return removes(by, 0, subflows) }

// Addresses that go away in the middle of a transfer, with the subflows that
// they had.
func TestRemovals(t *testing.T) {
	signalled := func(n int, then ...step) []step {
		return append([]step{{want: joins(n, n, n).and(adds(server, n)), subflows: 1 + n}}, then...)
	}
	play(t, []scenario{
		{
			name: "client's subflow", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, capture: true,
			steps: append(joined(1), step{do: kernelDoes("endpoint delete id 2"), want: removes(client, 1, 1), subflows: 1}),
		},
		{
			name: "client's subflow", kernel: server, links: v4(1), capture: true,
			steps: append(joined(1), step{do: linkGoes(false, 2), want: removes(client, 1, 1), subflows: 1}),
		},
		{
			name: "client's three subflows", kernel: client, addresses: 4, endpoints: []string{"2 subflow", "3 subflow", "4 subflow"},
			steps: append(joined(3), step{
				do:   kernelDoes("endpoint delete id 2", "endpoint delete id 3", "endpoint delete id 4"),
				want: removes(client, 3, 3), subflows: 1,
			}),
		},
		{
			name: "client's three subflows", kernel: server, links: v4(3),
			steps: append(joined(3), step{do: linkGoes(false, 2, 3, 4), want: removes(client, 3, 3), subflows: 1}),
		},
		{
			name: "all of the client's", kernel: client, addresses: 4, endpoints: []string{"2 subflow", "3 subflow", "4 subflow"},
			steps: append(joined(3), step{do: kernelDoes("endpoint flush"), want: closes(client, 3), subflows: 1}),
		},
		{
			name: "server's address", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, capture: true,
			steps: signalled(1, step{do: kernelDoes("endpoint delete id 2"), want: removes(server, 1, 1), subflows: 1}),
		},
		{
			name: "server's address", kernel: client, links: v4(1), capture: true,
			steps: signalled(1, step{do: linkGoes(false, 2), want: removes(server, 1, 1), subflows: 1}),
		},
		{
			name: "server's three addresses", kernel: client, links: v4(3),
			steps: signalled(3, step{do: linkGoes(false, 2, 3, 4), want: removes(server, 3, 3), subflows: 1}),
		},
		{
			name: "server's three addresses", kernel: server, addresses: 4, endpoints: []string{"2 signal", "3 signal", "4 signal"},
			steps: signalled(3, step{
				do:   kernelDoes("endpoint delete id 2", "endpoint delete id 3", "endpoint delete id 4"),
				want: removes(server, 3, 3), subflows: 1,
			}),
		},
		{
			name: "all of the server's", kernel: server, addresses: 4, endpoints: []string{"2 signal", "3 signal", "4 signal"},
			steps: signalled(3, step{do: kernelDoes("endpoint flush"), want: removes(server, 3, 3), subflows: 1}),
		},
		{
			name: "one of either side", kernel: client, links: v4(1), addresses: 3, endpoints: []string{"3 subflow"},
			steps: []step{
				{want: joins(2, 2, 2).and(adds(server, 1)), subflows: 3},
				{do: kernelDoes("endpoint delete id 3"), want: removes(client, 1, 1), subflows: 2},
				{do: linkGoes(false, 2), want: removes(server, 1, 1), subflows: 1},
			},
		},
		{
			name: "announced and unused", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, config: mptcp.Config{MaxSubflows: 1},
			steps: []step{
				{want: adds(server, 1), subflows: 1},
				{do: kernelDoes("endpoint delete id 2"), want: removes(server, 1, 0), subflows: 1},
			},
		},
		{
			name: "announced and unused", kernel: client, links: v4(1), limits: "8 0",
			steps: []step{
				{want: adds(server, 1), subflows: 1},
				{do: linkGoes(false, 2), want: removes(server, 1, 0), subflows: 1},
			},
		},
	})
}

// The address that the connection began with, whose id is 0, goes away.
func TestRemovalOfTheFirst(t *testing.T) {
	play(t, []scenario{
		{
			name: "client's", kernel: client, addresses: 2, endpoints: []string{"2 subflow"},
			steps: append(joined(1), step{do: kernelDoes("endpoint delete id 0 10.10.1.1"), want: removes(client, 1, 1), subflows: 1}),
		},
		{
			name: "client's", kernel: server, links: v4(1),
			steps: append(joined(1), step{do: linkGoes(false, 1), want: removes(client, 1, 1), subflows: 1}),
		},
		{
			name: "server's", kernel: server, addresses: 2, endpoints: []string{"2 signal"},
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: kernelDoes("endpoint delete id 0 10.10.1.1"), want: removes(server, 1, 1), subflows: 1},
			},
		},
		{
			name: "server's", kernel: client, links: v4(1),
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: linkGoes(false, 1), want: removes(server, 1, 1), subflows: 1},
			},
		},
	})
}

// Addresses that come in the middle of a transfer, go and come again.
func TestAdditions(t *testing.T) {
	play(t, []scenario{
		{
			name: "client's subflow", kernel: client, addresses: 2,
			steps: append(joined(0),
				step{do: kernelDoes("endpoint add 10.10.2.1 id 2 subflow"), want: joins(1, 1, 1), subflows: 2},
				step{do: kernelDoes("endpoint delete id 2"), want: removes(client, 1, 1), subflows: 1},
				step{do: kernelDoes("endpoint add 10.10.2.1 id 2 subflow"), want: joins(1, 1, 1), subflows: 2}),
		},
		{
			name: "client's subflow", kernel: server, links: v4(1),
			steps: append(joined(1),
				step{do: linkGoes(false, 2), want: removes(client, 1, 1), subflows: 1},
				step{do: linkGoes(true, 2), want: joins(1, 1, 1), subflows: 2}),
		},
		{
			name: "server's address", kernel: server, addresses: 2,
			steps: append(joined(0),
				step{do: kernelDoes("endpoint add 10.10.2.1 id 2 signal"), want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				step{do: kernelDoes("endpoint delete id 2"), want: removes(server, 1, 1), subflows: 1},
				step{do: kernelDoes("endpoint add 10.10.2.1 id 2 signal"), want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}),
		},
		{
			name: "server's address", kernel: client, links: v4(1),
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: linkGoes(false, 2), want: removes(server, 1, 1), subflows: 1},
				{do: linkGoes(true, 2), want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
			},
		},
		{
			name: "client's first address again", kernel: server, links: v4(1),
			steps: append(joined(1),
				step{do: linkGoes(false, 1), want: removes(client, 1, 1), subflows: 1},
				step{do: linkGoes(true, 1), want: joins(1, 1, 1), subflows: 2}),
		},
		{
			name: "client's first address again", kernel: client, addresses: 2, endpoints: []string{"1 subflow", "2 subflow"},
			steps: append(joined(1),
				step{do: kernelDoes("endpoint delete id 1"), want: removes(client, 1, 1), subflows: 1},
				step{do: kernelDoes("endpoint add 10.10.1.1 id 9 subflow"), want: joins(1, 1, 1), subflows: 2}),
		},
		{
			name: "server's first address again", kernel: server, addresses: 2, endpoints: []string{"1 signal", "2 signal"},
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: kernelDoes("endpoint delete id 1"), want: removes(server, 1, 1), subflows: 1},
				{do: kernelDoes("endpoint add 10.10.1.1 id 9 signal"), want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
			},
		},
		{
			name: "server's first address again", kernel: client, links: v4(1),
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: linkGoes(false, 1), want: removes(server, 1, 1), subflows: 1},
				{do: linkGoes(true, 1), want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
			},
		},
		{
			name: "flushed and added", kernel: client, addresses: 3, endpoints: []string{"2 subflow", "3 subflow"},
			steps: append(joined(2),
				step{do: kernelDoes("endpoint flush"), want: closes(client, 2), subflows: 1},
				step{
					do:   kernelDoes("endpoint add 10.10.2.1 id 2 subflow", "endpoint add 10.10.3.1 id 3 subflow"),
					want: joins(2, 2, 2), subflows: 3,
				}),
		},
	})
}
