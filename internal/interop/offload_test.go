//go:build linux

package interop

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/netstack"
)

// Over two TUNs with offload super-segments cross the border both ways, and
// both directions arrive whole.
func TestSuperSegmentsToAndFromTheKernel(t *testing.T) {
	for _, f := range []family{ipv4, ipv6} {
		t.Run(f.String(), func(t *testing.T) {
			isolated(t, time.Minute, func(t *testing.T) {
				r := newRig(t, f, nil)
				for i := 1; i <= 2; i++ {
					r.addOffloadedLink(t, i)
				}
				r.announce(t)
				server := kernelServe(t, kernelListen(t, true), true, bulk)
				c := r.dial(t, nil)
				within(t, c, 50*time.Second)
				defer logSubflows(t, c)
				exchange(t, c, server, bulk)

				got := kernelCounters(t)
				logCounters(t, got)
				requireNoFaults(t, got)
				for _, l := range r.links {
					in, out := l.Stats()
					t.Logf("%s: %d packets of %d bytes in, %d of %d out", l.Name(), in.Packets, in.Bytes, out.Packets, out.Bytes)
				}
				in, out := r.links[0].Stats()
				require.Greater(t, out.Bytes, 3000*out.Packets, "mean size of packets to the kernel, ACKs among them")
				require.Greater(t, in.Bytes, 3000*in.Packets, "mean size of packets from the kernel, ACKs among them")
			})
		})
	}
}

// addOffloadedLink adds a link whose packets nobody shapes or records.
func (r *rig) addOffloadedLink(t *testing.T, i int) {
	t.Helper()
	name := fmt.Sprintf("tun%d", i)
	tun, err := netstack.OpenTUN(netstack.TUNConfig{Name: name})
	require.NoError(t, err)
	r.links = append(r.links, tun)
	addressLink(t, r.family, i, name)
	require.NoError(t, r.host.AddLink(netstack.LinkConfig{
		Name:  name,
		Link:  tun,
		Addrs: []netip.Prefix{netip.PrefixFrom(r.family.addr(i, ours), r.family.bits())},
	}))
}
