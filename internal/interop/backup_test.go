//go:build linux

package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// weAsk is a step of ours: the peer is asked to use a subflow as a last resort,
// or not so any more.
func weAsk(id int, backup bool) func(*testing.T, *session) {
	return func(t *testing.T, s *session) { require.NoError(t, s.conn.SetBackup(id, backup)) }
}

// kernelAsks checks that the kernel asked us to use a subflow as a last resort,
// or did not.
func kernelAsks(id int, backup bool) func(*testing.T, *session) {
	return func(t *testing.T, s *session) {
		for _, f := range s.conn.Subflows() {
			if f.ID == id {
				require.Equal(t, backup, f.PeerBackup)
				return
			}
		}
		require.FailNow(t, "no such subflow")
	}
}

// backupsSpared checks that one subflow is a backup at the kernel's wish, that we
// sent nothing there, and that the kernel sent no more than the self-test allows.
func backupsSpared(t *testing.T, s *session) {
	n := 0
	for _, f := range s.conn.Subflows() {
		if !f.PeerBackup {
			continue
		}
		n++
		require.Zero(t, f.BytesSent)
		require.LessOrEqual(t, f.BytesReceived, uint64(s.amount/20))
	}
	require.Equal(t, 1, n)
}

// Subflows that become backups, and what says so: a flag in MP_JOIN, or MP_PRIO.
func TestBackupFlags(t *testing.T) {
	play(t, []scenario{
		{
			name: "client's subflow", kernel: client, addresses: 2, endpoints: []string{"2 subflow backup"},
			steps: []step{{want: joins(1, 1, 1).and(count(server, "MPJoinSynBackupRx", 1)), subflows: 2, check: kernelAsks(1, true)}},
		},
		{
			name: "client's subflow is spared", kernel: client, addresses: 3, endpoints: []string{"2 subflow", "3 subflow backup"},
			shape: narrow, amount: 2 * mebi, after: backupsSpared,
			steps: []step{{want: joins(2, 2, 2).and(count(server, "MPJoinSynBackupRx", 1)), subflows: 3}},
		},
		{
			name: "client's subflow", kernel: server, links: v4(1), backup: 2,
			steps: []step{{want: joins(1, 1, 1).and(count(server, "MPJoinSynBackupRx", 1)), subflows: 2}},
		},
		{
			name: "change and change back", kernel: client, addresses: 2, endpoints: []string{"2 subflow"},
			steps: append(joined(1),
				step{do: kernelDoes("endpoint change id 2 backup"), want: prios(client, 1), subflows: 2, check: kernelAsks(1, true)},
				step{do: kernelDoes("endpoint change id 2 nobackup"), want: prios(client, 1), subflows: 2, check: kernelAsks(1, false)}),
		},
		{
			name: "change and change back", kernel: server, links: v4(1),
			steps: append(joined(1),
				step{do: weAsk(1, true), want: prios(client, 1), subflows: 2},
				step{do: weAsk(1, false), want: prios(client, 1), subflows: 2}),
		},
		{
			name: "server changes", kernel: server, addresses: 2, endpoints: []string{"2 signal"},
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: kernelDoes("endpoint change id 2 backup"), want: prios(server, 1), subflows: 2, check: kernelAsks(1, true)},
			},
		},
		{
			name: "server changes", kernel: client, links: v4(1),
			steps: []step{
				{want: joins(1, 1, 1).and(adds(server, 1)), subflows: 2},
				{do: weAsk(1, true), want: prios(server, 1), subflows: 2},
			},
		},
	})
}
