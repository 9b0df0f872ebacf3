//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bulk is what crosses in each direction of the transfers over two links.
const bulk = 64 * mebi

// leastShare is what each of two equal links has to carry.
const leastShare = 0.2

func TestOurClientToKernelServer(t *testing.T) {
	for _, f := range []family{ipv4, ipv6} {
		t.Run(f.String(), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				r := newRig(t, f, equal)
				r.announce(t)
				server := kernelServe(t, kernelListen(t, true), true, bulk)
				c := r.dial(t, nil)
				within(t, c, 100*time.Second)
				defer logSubflows(t, c)
				exchange(t, c, server, bulk)

				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 1, got["MPCapableACKRX"])
				require.Equal(t, 1, got["MPJoinAckRx"], "the kernel server saw one join to its end")
				requireNoFaults(t, got)
				r.requireShares(t, c, leastShare)
				r.requireCleanCapture(t)
			})
		})
	}
}

func TestKernelClientToOurServer(t *testing.T) {
	for _, f := range []family{ipv4, ipv6} {
		t.Run(f.String(), func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				r := newRig(t, f, equal)
				taken, done := r.serve(t, bulk)
				c := kernelDial(t, true, at(r.family.addr(1, ours)))
				within(t, c, 100*time.Second)
				server := <-taken
				defer logSubflows(t, server)
				exchange(t, c, done, bulk)

				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 1, got["MPCapableSYNACKRX"])
				require.Equal(t, 1, got["MPJoinSynAckRx"], "the kernel client saw one join answered")
				requireNoFaults(t, got)
				r.requireShares(t, server, leastShare)
				r.requireCleanCapture(t)
			})
		})
	}
}
