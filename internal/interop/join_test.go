//go:build linux

package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// joined is all that comes of n joins of the client.
func joined(n int) []step { return []step{{want: joins(n, n, n), subflows: 1 + n}} }

// Joins by the client from its own addresses.
func TestSubflows(t *testing.T) {
	play(t, []scenario{
		{name: "none", kernel: server, steps: joined(0)},
		{name: "none", kernel: client, addresses: 2, steps: joined(0)},
		{name: "one", kernel: server, links: v4(1), steps: joined(1)},
		{name: "one", kernel: client, addresses: 2, endpoints: []string{"2 subflow"}, steps: joined(1)},
		{name: "two", kernel: server, links: v4(2), steps: joined(2)},
		{name: "two", kernel: client, addresses: 3, endpoints: []string{"2 subflow", "3 subflow"}, steps: joined(2)},
		{name: "limited by the client", kernel: server, links: v4(2), config: mptcp.Config{MaxSubflows: 1}, steps: joined(0)},
		{
			name: "limited by the client", kernel: client, addresses: 2, limits: "0 0", endpoints: []string{"2 subflow"},
			steps: joined(0),
		},
		// The kernel refuses at the third ACK, we at the SYN.
		{
			name: "limited by the server", kernel: server, links: v4(1), limits: "0 0",
			steps: []step{{want: joins(1, 1, 0), subflows: 1}},
		},
		{
			name: "limited by the server", kernel: client, addresses: 2, endpoints: []string{"2 subflow"},
			config: mptcp.Config{MaxSubflows: 1}, steps: []step{{want: joins(1, 0, 0), subflows: 1}},
		},
		{
			name: "one of two over the server's limit", kernel: server, links: v4(2), limits: "1 0",
			steps: []step{{want: joins(2, 2, 1), subflows: 2}},
		},
		{
			name: "one of two over the server's limit", kernel: client, addresses: 3, endpoints: []string{"2 subflow", "3 subflow"},
			config: mptcp.Config{MaxSubflows: 2}, steps: []step{{want: joins(2, 1, 1), subflows: 2}},
		},
	})
}

// Both sides announce an address at once: neither the announcements nor their
// echoes get into each other's way. Linux opens a subflow to an announced address
// also as the server, we as the client only, so that there are three in one
// role and two in the other.
func TestBothAnnounce(t *testing.T) {
	signals, err := mptcp.PathManagerByName("signal")
	require.NoError(t, err)
	announced := joins(1, 1, 1).and(adds(client, 1)).and(adds(server, 1))
	back := counted{
		server: {"MPJoinSynTx": 1, "MPJoinSynAckRx": 1},
		client: {"MPJoinSynRx": 1, "MPJoinAckRx": 1},
	}
	play(t, []scenario{
		{
			name: "both", kernel: server, links: v4(1), addresses: 3, endpoints: []string{"3 signal"},
			config: mptcp.Config{PathManager: signals}, steps: []step{{want: announced.and(back), subflows: 3}},
		},
		{
			name: "both", kernel: client, links: v4(1), addresses: 3, endpoints: []string{"3 signal"},
			config: mptcp.Config{PathManager: signals}, steps: []step{{want: announced, subflows: 2}},
		},
	})
}

// Addresses that the server announces.
func TestSignals(t *testing.T) {
	play(t, []scenario{
		// The kernel sends an ADD_ADDR back that it makes no use of.
		{
			name: "unused", kernel: client, links: v4(1), limits: "8 0",
			steps: []step{{want: adds(server, 1), subflows: 1}},
		},
		{
			name: "unused", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, config: mptcp.Config{MaxSubflows: 1},
			steps: []step{{want: adds(server, 1), subflows: 1}},
		},
		{
			name: "one", kernel: client, links: v4(1), capture: true,
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}},
		},
		{
			name: "one", kernel: server, addresses: 2, endpoints: []string{"2 signal"}, capture: true,
			steps: []step{{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2}},
		},
		{
			name: "one and a subflow", kernel: client, links: v4(1), addresses: 3, endpoints: []string{"3 subflow"},
			steps: []step{{want: joins(2, 2, 2).and(adds(server, 1)), subflows: 3}},
		},
		{
			name: "one and two subflows", kernel: client, links: v4(1), addresses: 4, endpoints: []string{"3 subflow", "4 subflow"},
			steps: []step{{want: joins(3, 3, 3).and(adds(server, 1)), subflows: 4}},
		},
		// Ours opens no second subflow from an address to one that is used.
		{
			name: "one and two subflows", kernel: server, apart: true, links: v4(2), addresses: 4, endpoints: []string{"2 signal", "3 signal"},
			steps: []step{{want: joins(2, 2, 2).and(adds(server, 2)), subflows: 3}},
		},
		{
			name: "three", kernel: client, links: v4(3),
			steps: []step{{want: joins(3, 3, 3).and(adds(server, 3)), subflows: 4}},
		},
		{
			name: "three", kernel: server, addresses: 4, endpoints: []string{"2 signal", "3 signal", "4 signal"},
			steps: []step{{want: joins(3, 3, 3).and(adds(server, 3)), subflows: 4}},
		},
	})
}
