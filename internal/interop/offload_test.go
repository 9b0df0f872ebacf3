//go:build linux

package interop

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gomptcp/gomptcp/netstack"
)

// Over two TUNs with offload super-segments cross the border both ways, and
// both directions arrive whole: whether a thread of the kernel takes them from a
// TUN or who sends them has to.
func TestSuperSegmentsToAndFromTheKernel(t *testing.T) {
	for _, s := range []struct {
		name     string
		family   family
		noThread bool
	}{
		{"ipv4", ipv4, false},
		{"ipv6", ipv6, false},
		{"ipv4 without thread", ipv4, true},
	} {
		t.Run(s.name, func(t *testing.T) {
			isolated(t, time.Minute, func(t *testing.T) {
				r := newRig(t, s.family, nil)
				for i := 1; i <= 2; i++ {
					r.addOffloadedLink(t, i, s.noThread)
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
func (r *rig) addOffloadedLink(t *testing.T, i int, noThread bool) {
	t.Helper()
	name := fmt.Sprintf("tun%d", i)
	tun, err := netstack.OpenTUN(netstack.TUNConfig{Name: name, NoThread: noThread})
	require.NoError(t, err)
	require.Equal(t, !noThread, hasThread(t, name), "a thread of the kernel's for the device")
	r.links = append(r.links, tun)
	addressLink(t, r.family, i, name)
	require.NoError(t, r.host.AddLink(netstack.LinkConfig{
		Name:  name,
		Link:  tun,
		Addrs: []netip.Prefix{netip.PrefixFrom(r.family.addr(i, ours), r.family.bits())},
	}))
}

// hasThread reports whether a thread of the kernel's takes what is written to a
// device.
func hasThread(t *testing.T, device string) bool {
	t.Helper()
	sys := t.TempDir() // one of this namespace
	require.NoError(t, unix.Mount("sysfs", sys, "sysfs", unix.MS_RDONLY, ""))
	threaded, err := os.ReadFile(filepath.Join(sys, "class/net", device, "threaded"))
	require.NoError(t, errors.Join(err, unix.Unmount(sys, 0)))
	return strings.TrimSpace(string(threaded)) == "1"
}
