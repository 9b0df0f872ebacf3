//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

func TestListenerServesPlainTCPAndMPTCP(t *testing.T) {
	isolated(t, 2*time.Minute, func(t *testing.T) {
		r := newRig(t, ipv4, equal)
		taken, done := r.serve(t, 4*mebi)
		for _, multipath := range []bool{false, true, false} {
			conn := kernelDial(t, multipath, at(r.family.addr(1, ours)))
			within(t, conn, 30*time.Second)
			server := <-taken
			is, err := server.MultipathTCP()
			require.NoError(t, err)
			require.Equal(t, multipath, is, "what our server says")
			require.Equal(t, multipath, server.Info().Fallback == "", server.Info().Fallback)
			exchange(t, conn, done, 4*mebi)
		}
	})
}

func TestOurClientFallsBackToPlainTCP(t *testing.T) {
	isolated(t, 2*time.Minute, func(t *testing.T) {
		r := newRig(t, ipv4, equal)
		server := kernelServe(t, kernelListen(t, false), false, 4*mebi)
		conn := r.dial(t, nil)
		within(t, conn, 30*time.Second)
		defer logSubflows(t, conn)
		is, err := conn.MultipathTCP()
		require.NoError(t, err)
		require.False(t, is)
		require.NotEmpty(t, conn.Info().Fallback)
		exchange(t, conn, server, 4*mebi)
		logCounters(t, kernelCounters(t))
	})
}

// lossy is a link that hurts TCP: a round-trip time of 20 ms, one packet of a
// hundred lost and two reordered.
var lossy = netstack.Shape{Rate: 100e6, Delay: 10 * time.Millisecond, Loss: 0.01, Reorder: 0.02}

func TestPlainTCPOverALossyLink(t *testing.T) {
	isolated(t, 3*time.Minute, func(t *testing.T) {
		r := newRig(t, ipv4, []netstack.Shape{lossy})
		server := kernelServe(t, kernelListen(t, false), false, 16*mebi)
		conn := r.dial(t, &mptcp.Config{Plain: true})
		within(t, conn, 170*time.Second)
		defer logSubflows(t, conn)
		exchange(t, conn, server, 16*mebi)
		got := kernelCounters(t)
		logCounters(t, got)
		requireNoFaults(t, got)
		require.NoError(t, r.host.Close())
		require.NoError(t, r.pcap.Flush())
		require.Empty(t, tshark(t, r.capture, malformed))
	})
}
