package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Pairs of addresses whose subflows end at one time are each tried again after
// the wait of a failure, none at once.
func TestPairsThatFailTogetherWait(t *testing.T) {
	var lost mono.Time
	lostSubflows := 0
	p := sim.TwoHosts(sim.PairConfig{Seed: 51, Paths: append(fastAndSlow(), fastAndSlow()[0]), Mesh: true, Host: host.Config{
		Observe: func(now mono.Time, c *host.Conn, e mpconn.Event) {
			if e.Kind == mpconn.EventSubflowLost && c.Active() {
				lost = now
				lostSubflows++
			}
		},
	}})
	attempts := make(map[[2]netip.AddrPort]mono.Time)
	for _, l := range p.Links {
		l.Insert(sim.EndA, sim.Middlebox{Out: func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
			if k := [2]netip.AddrPort{seg.Src, seg.Dst}; seg.Flags&(wire.SYN|wire.ACK) == wire.SYN && attempts[k] == 0 {
				attempts[k] = now
			}
			if seg.Src.Addr().As4()[2] == seg.Dst.Addr().As4()[2] {
				forward(seg)
			}
		}})
	}
	cfg := sim.DefaultConn()
	cfg.Limits.Subflows, cfg.Subflow.SYNRetries = 9, 1
	p.Start(sim.TransferConfig{AB: mib, ConnA: cfg, ConnB: cfg, StayOpen: true})
	require.True(t, p.RunUntil(time.Minute, func() bool { return lostSubflows >= 6 }))
	p.RunFor(900 * time.Millisecond)
	require.Len(t, attempts, 9, "three by three")
	p.RunFor(300 * time.Millisecond)
	require.Len(t, attempts, 15, "the six that failed again, a second later")
	for _, at := range attempts {
		require.False(t, at > lost && at < lost.Add(900*time.Millisecond))
	}
	require.Empty(t, p.Violations())
}
