//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/mptcp"
)

// Every congestion control takes 64 MiB to the kernel over two shaped links
// and uses both. Goodput is listed beside that of the kernel's own, which is
// CUBIC on each subflow.
func TestCongestionControls(t *testing.T) {
	for _, name := range cc.Names() {
		t.Run(name, func(t *testing.T) {
			isolated(t, 3*time.Minute, func(t *testing.T) {
				congestion, err := cc.ByName(name)
				require.NoError(t, err)
				r := newRig(t, ipv4, equal)
				r.announce(t)
				server := kernelServe(t, kernelListen(t, true), true, 0)
				c := r.dial(t, &mptcp.Config{Congestion: congestion})
				within(t, c, 160*time.Second)
				defer logSubflows(t, c)
				upload(t, name, c, server)
				requireNoFaults(t, kernelCounters(t))
				sent, _ := bytesByLink(c)
				require.Len(t, sent, 2)
				for link, n := range sent {
					require.NotZero(t, n, link)
				}
			})
		})
	}
	t.Run("kernel", func(t *testing.T) {
		isolated(t, 2*time.Minute, func(t *testing.T) {
			r := newRig(t, ipv4, equal)
			_, done := r.serve(t, 0)
			c := kernelDial(t, true, at(r.family.addr(1, ours)))
			within(t, c, 100*time.Second)
			upload(t, "kernel", c, done)
		})
	})
}

// upload sends bulk bytes to a server that answers with none, and logs the
// goodput.
func upload(t *testing.T, name string, c halfCloser, server <-chan received) {
	t.Helper()
	defer c.Close()
	start := time.Now()
	require.NoError(t, send(c, payload(bulk, clientSeed)))
	requireWhole(t, "nothing comes back", receive(c), 0, serverSeed)
	t.Logf("%s: %.1f Mb/s", name, bulk*8/1e6/time.Since(start).Seconds())
	require.NoError(t, c.Close())
	select {
	case got := <-server:
		requireWhole(t, "client to server", got, bulk, clientSeed)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the server did not finish")
	}
}
